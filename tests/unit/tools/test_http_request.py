"""What request an HTTP tool's arguments become, and what they can never become (TOOL-4)."""

import json
import string
from collections.abc import Mapping
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from psych_runtime.core.http_template import BadTemplate, Slot, read_template, read_url
from psych_runtime.tools._http_request import HttpRequest, RequestPlan, Unfit
from psych_schema.spec import HttpTool

ORDERS = "https://shop.example.com/orders"


def declared(**fields: JsonValue) -> HttpTool:
    """Return a tool with the fields that a test is about."""
    whole = {"kind": "http", "name": "t", "description": "d", "method": "GET", "url": ORDERS}
    return HttpTool.model_validate_json(json.dumps(whole | fields))


def takes(*names: str, **more: JsonValue) -> JsonValue:
    """Return an input schema with these arguments, of any kind."""
    return {"type": "object", "properties": {name: {} for name in names}, **more}


def request(arguments: Mapping[str, JsonValue], **fields: JsonValue) -> HttpRequest:
    """Return the request of one call."""
    fields.setdefault("input_schema", takes(*arguments))
    return RequestPlan(declared(**fields)).request(arguments)


def body(made: HttpRequest) -> JsonValue:
    """Return the body as JSON."""
    assert made.body is not None
    value: JsonValue = json.loads(made.body)
    return value


def test_tool_4_a_path_segment_holds_its_argument_quoted() -> None:
    """Reserved characters, blanks and letters of any script become %XX."""
    made = request({"order": "a/b?c#d é&=+%"}, url=f"{ORDERS}/{{order}}/items")
    assert made.url == f"{ORDERS}/a%2Fb%3Fc%23d%20%C3%A9%26%3D%2B%25/items"


@pytest.mark.parametrize(
    ("value", "text"), [(7, "7"), (1.5, "1.5"), (True, "true"), ("x", "x"), (10**20, str(10**20))]
)
def test_tool_4_scalars_are_written_as_json_has_them(value: JsonValue, text: str) -> None:
    """In the path, the query and a header alike."""
    made = request(
        {"a": value}, url=f"{ORDERS}/{{a}}", query={"q": "{a}"}, headers={"X-A": "v={a}"}
    )
    assert made.url == f"{ORDERS}/{text}?q={text}"
    assert made.headers == {"X-A": f"v={text}"}


@pytest.mark.parametrize(
    "value",
    [
        "",
        ".",
        "..",
        "../..",
        "a/../b",
        "..\\x",
        "a\x00b",
        "a\nb",
        "\x7f",
        "..;/x",
        "%2e%2e/x",
        "%2E%2E%2Fadmin",
        None,
        [],
        {},
        ["a"],
    ],
)
def test_tool_4_what_could_leave_its_segment_is_refused(value: JsonValue) -> None:
    """Steps, control characters, nothing, and what is no text."""
    with pytest.raises(Unfit, match="order"):
        request({"order": value}, url=f"{ORDERS}/{{order}}")


def test_tool_4_pieces_that_make_a_step_together_are_refused() -> None:
    """A text beside an argument, or another argument."""
    with pytest.raises(Unfit, match="step"):
        request({"a": "."}, url=f"{ORDERS}/.{{a}}")
    with pytest.raises(Unfit, match="step"):
        request({"a": ".", "b": "."}, url=f"{ORDERS}/{{a}}{{b}}")


@given(st.text(min_size=1), st.text(min_size=1))
def test_tool_4_an_argument_changes_its_segment_only(first: str, second: str) -> None:
    """Whatever it says: host, other segments, query and fragment stay, and it comes back whole."""
    try:
        made = request({"a": first, "b": second}, url=f"{ORDERS}/{{a}}/x-{{b}}")
    except (Unfit, UnicodeEncodeError):
        return
    split = urlsplit(made.url)
    assert (split.scheme, split.netloc, split.query) == ("https", "shop.example.com", "")
    assert split.fragment == ""
    _, orders, one, two = split.path.split("/")
    assert (orders, unquote(one), unquote(two)) == ("orders", first, f"x-{second}")
    assert set(made.url) <= set(string.ascii_letters + string.digits + ":/.-_~%")


@given(st.dictionaries(st.text(string.ascii_letters, min_size=1), st.text(), max_size=4))
def test_tool_4_an_argument_changes_its_query_field_only(arguments: dict[str, str]) -> None:
    """What a server reads is what was given, name by name."""
    made = request(dict(arguments))
    read = parse_qsl(
        urlsplit(made.url).query, keep_blank_values=True, strict_parsing=bool(arguments)
    )
    assert dict(read) == arguments
    assert len(read) == len(arguments)
    assert "#" not in made.url


def test_tool_4_query_fields_are_built_by_type() -> None:
    """A list is a repeated field; null, an empty list and what was left out is none."""
    made = request(
        {"tags": ["a", "b c"], "limit": 5, "open": False, "none": None, "empty": []},
        query={"tag": "{tags}", "limit": "{limit}", "left": "{out}", "format": "json"},
        input_schema=takes("tags", "limit", "open", "none", "empty", "out"),
    )
    assert made.url == f"{ORDERS}?tag=a&tag=b%20c&limit=5&format=json&open=false"


def test_tool_4_a_text_around_an_argument_is_sent_with_it_or_not_at_all() -> None:
    """`newer:` alone would ask for something else."""
    fields: JsonValue = {"q": "newer:{since} {{x}}"}
    schema = takes("since")
    whole = request({"since": 3}, query=fields, input_schema=schema)
    assert whole.url == f"{ORDERS}?q=newer%3A3%20%7Bx%7D"
    assert request({}, query=fields, input_schema=schema).url == ORDERS


@pytest.mark.parametrize("value", [{"a": 1}, [[1]], [None]])
def test_tool_4_no_query_field_is_an_object(value: JsonValue) -> None:
    """Services disagree about how one is written, so a template has to say."""
    with pytest.raises(Unfit, match="filter"):
        request({"filter": value})


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "\0", "é", "a\x0bb"])
def test_tool_4_a_header_takes_no_line_break(value: str) -> None:
    """Nor anything else than printable ASCII."""
    with pytest.raises(Unfit, match="X-Tenant"):
        request({"tenant": value}, headers={"X-Tenant": "{tenant}"})


def test_tool_4_what_nothing_else_uses_is_the_json_body() -> None:
    """Of POST, PUT and PATCH; its values stay what they are."""
    arguments: dict[str, JsonValue] = {"id": 7, "note": "é\u2028", "deep": [{"x": None}, 1.5]}
    for method in ("POST", "PUT", "PATCH"):
        made = request(arguments, method=method, url=f"{ORDERS}/{{id}}")
        assert made.url == f"{ORDERS}/7"
        assert body(made) == {"note": "é\u2028", "deep": [{"x": None}, 1.5]}
        assert made.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE"])
def test_tool_4_without_a_body_the_rest_is_the_query(method: str) -> None:
    """These methods carry none unless a template says so."""
    made = request({"id": 7, "force": True}, method=method, url=f"{ORDERS}/{{id}}")
    assert (made.url, made.body) == (f"{ORDERS}/7?force=true", None)
    assert "Content-Type" not in made.headers


def test_tool_4_a_post_that_takes_nothing_has_no_body() -> None:
    """One whose arguments were all left out has an empty object."""
    assert request({}, method="POST").body is None
    assert body(request({}, method="POST", input_schema=takes("note"))) == {}


def test_tool_4_a_body_template_holds_arguments_as_they_are() -> None:
    """A text that is one argument alone becomes it; others are texts."""
    made = request(
        {"who": "Ann", "tags": ["a"], "n": 3, "nil": None},
        method="POST",
        body={"user": {"name": "{who}", "no": "{n}"}, "tags": "{tags}", "t": "{who}: {{{n}}}",
              "nil": "{nil}", "fixed": [1, None, "x"]},
    )  # fmt: skip
    assert body(made) == {
        "user": {"name": "Ann", "no": 3},
        "tags": ["a"],
        "t": "Ann: {3}",
        "nil": None,
        "fixed": [1, None, "x"],
    }


def test_tool_4_a_member_whose_argument_was_left_out_is_not_sent() -> None:
    """Also in lists and deep inside."""
    made = request(
        {"a": 1},
        method="POST",
        body={"a": "{a}", "b": "{b}", "c": {"d": "x {b}"}, "e": ["{a}", "{b}"]},
        input_schema=takes("a", "b"),
    )
    assert body(made) == {"a": 1, "c": {}, "e": [1]}


def test_tool_4_an_argument_in_a_body_is_no_template() -> None:
    """Braces that a model wrote stay braces."""
    made = request({"a": "{b} {{c}}", "b": "secret"}, method="POST", body={"x": "{a}", "y": "{b}"})
    assert body(made) == {"x": "{b} {{c}}", "y": "secret"}


def test_sec_3_a_template_cannot_multiply_an_argument() -> None:
    """Many places for one long text stay bounded: in the body, a field, and the whole URL."""
    long = "x" * 60_000
    with pytest.raises(Unfit, match="more than 1048576"):
        request({"a": long}, method="POST", body=["{a}"] * 100)
    with pytest.raises(Unfit, match="8192"):
        request({"a": long}, query={"q": "{a}{a}"})
    with pytest.raises(Unfit, match="characters"):
        request({"a": long}, url=f"{ORDERS}/{{a}}")


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", ()),
        ("a", ("a",)),
        ("{a}", (Slot("a"),)),
        ("x{a}y", ("x", Slot("a"), "y")),
        ("{{a}}", ("{a}",)),
        ("{{{a}}}", ("{", Slot("a"), "}")),
        ("{a}{b}", (Slot("a"), Slot("b"))),
    ],
)
def test_tool_4_templates_are_read_as_they_say(text: str, pieces: tuple[str | Slot, ...]) -> None:
    """Braces double, names single."""
    assert read_template(text) == pieces


@given(st.text())
def test_tool_4_a_text_with_doubled_braces_is_that_text(text: str) -> None:
    """Nothing in it is taken for an argument."""
    doubled = text.replace("{", "{{").replace("}", "}}")
    assert "".join(str(one) for one in read_template(doubled)) == text


@pytest.mark.parametrize("text", ["{", "}", "{}", "{a", "a}", "{a b}", "{a{b}}", "{{a}", "{a!r}"])
def test_tool_4_a_brace_that_names_nothing_is_no_template(text: str) -> None:
    """It says what to write."""
    with pytest.raises(BadTemplate, match="write"):
        read_template(text)


@pytest.mark.parametrize(
    "url",
    [
        "https://{host}/x",
        "https://a.{tld}/x",
        "https://a:{port}/",
        "{scheme}://a/",
        "https://{u}@a/",
        "https://u:p@a/",
        "https://a@b/",
        "https://",
        "https:///x",
        "ftp://a/",
        "//a/x",
        "/x",
        "a/x",
        "HTTPS://a/",
        "https://a:0/",
        "https://a:99999/",
        "https://a:b/",
        "https://a b/",
        "https://é/",
        "https://a/x?y=1",
        "https://a/x#y",
        "https://a//x",
        "https://a/../x",
        "https://a/%2e%2E/x",
        "https://a/./x",
        "https://a/x y",
        "https://a/é",
        "https://a\\b/",
        "https://a/b\\c",
        "https://a/%",
        "https://a/{b",
        "https://a/{b/c}",
        "https://[::1/x",
        "https://a\n/",
        "https://a/\n",
        "javascript:1",
        "https://a/x{y?}",
        "https://a%2f@b/",
        "https://a/%zz",
        "https:/a/x",
        "https://a/x\t",
        " https://a/",
    ],
)
def test_tool_4_a_url_that_an_argument_could_turn_elsewhere_is_none(url: str) -> None:
    """Arguments stand in the path only; host, scheme, port and user are the Spec's."""
    with pytest.raises(BadTemplate):
        read_url(url)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("https://{host}/x", "in its host or port"),
        ("https://a:{port}/x", "in its host or port"),
        ("https://u:p@a/", "write a credential"),
        ("https://a/x?y=1", "under query"),
        ("https://a/{b", "write {{"),
        ("https://a/x y", "%20"),
    ],
)
def test_spec_4_a_url_that_is_none_says_what_to_write(url: str, words: str) -> None:
    """The usual mistakes have words of their own."""
    with pytest.raises(BadTemplate, match=words):
        read_url(url)


@pytest.mark.parametrize(
    "url", ["https://a", "http://127.0.0.1:8080/x/", "https://[::1]:1/{a}.json", "https://a_b/%2F~"]
)
def test_tool_4_other_urls_are_read(url: str) -> None:
    """Ports, addresses, quoted characters, pieces of a segment."""
    assert url.startswith(read_url(url).origin)
