"""YAML and JSON as people write them: read alike, and every mistake shown where it is (SPEC-4)."""

import json
from pathlib import Path

import pytest
import yaml
from pydantic import JsonValue

from psych_runtime import load_spec
from psych_runtime.core._locate import Document
from psych_runtime.core._yaml import read_yaml_text
from psych_runtime.core.issues import Issue
from psych_runtime.errors import InvalidSpec, PayloadTooLarge
from tests.unit.spec.documents import minimal

_TOO_LARGE = "numbers without a fraction end at 9007199254740991"
BASE = "kind: agent\nname: x\ninstructions: hi\nmodel: {model: m}\n"
LOADERS = [
    pytest.param(yaml.SafeLoader, id="pure"),
    pytest.param(yaml.CSafeLoader, id="libyaml"),
]
type Loader = type[yaml.SafeLoader] | type[yaml.CSafeLoader]


def read(text: str, loader: Loader = yaml.SafeLoader, max_bytes: int = 100_000) -> Document:
    return read_yaml_text(text, max_bytes=max_bytes, max_depth=64, loader=loader)


def refused(path_or_text: str | Path) -> tuple[Issue, ...]:
    with pytest.raises(InvalidSpec) as caught:
        load_spec(path_or_text)
    return caught.value.issues


def places(path_or_text: str | Path) -> list[tuple[str, str, int | None, int | None]]:
    return [(i.code, i.pointer, i.line, i.column) for i in refused(path_or_text)]


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("Yes", "Yes"),
        ("off", "off"),
        ("y", "y"),
        ("true", True),
        ("True", True),
        ("FALSE", False),
        ("tRUE", "tRUE"),
        ("null", None),
        ("~", None),
        ("", None),
        ("nULL", "nULL"),
        ("12", 12),
        ("-12", -12),
        ("+12", 12),
        ("007", 7),
        ("0o17", 15),
        ("017", 17),
        ("0x1F", 31),
        ("0b11", "0b11"),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1.", 1),
        ("1.0", 1),
        ("1e3", 1000),
        ("12e-1", 1.2),
        ("1.2.3", "1.2.3"),
        ("2026-11-29", "2026-11-29"),
        ("2026-11-29 20:00:00", "2026-11-29 20:00:00"),
        ("=", "="),
        ("<<", "<<"),
        ("inf", "inf"),
        ("nan", "nan"),
        ("'12'", "12"),
        ('"true"', "true"),
        ('"a\\tb\\u00e9"', "a\tbé"),
        ("|\n  12\n  no\n", "12\nno\n"),
        (">-\n  a\n  b\n", "a b"),
        ("|\r\n  a\r\n  b\r\n", "a\nb\n"),
    ],
)
def test_spec_1_scalars_are_those_of_yaml_1_2(text: str, value: JsonValue, loader: Loader) -> None:
    """The core schema: what looks like a text is one."""
    document = read(f"a: {text}", loader)
    assert document.issues == ()
    assert repr(document.value) == repr({"a": value})


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("a: .nan", "not_finite", "NaN and infinite numbers cannot be kept"),
        ("a: -.inf", "not_finite", "NaN and infinite numbers cannot be kept"),
        ("a: 1e400", "not_finite", "NaN, infinite and larger numbers cannot be kept"),
        (
            "a: 9007199254740992",
            "number_too_large",
            "numbers without a fraction end at 9007199254740991",
        ),
        (
            "a: 0xFFFFFFFFFFFFFF",
            "number_too_large",
            "numbers without a fraction end at 9007199254740991",
        ),
        ("a: " + "9" * 5_000, "number_too_large", "a number may have 1000 digits"),
        ("a: !!int 3", "yaml_tag", "tags are not read"),
        ("a: !thing {b: c}", "yaml_tag", "tags are not read"),
        ("a: !<x> [1]", "yaml_tag", "tags are not read"),
        ("a: !!python/object/apply:os.system [echo]", "yaml_tag", "tags are not read"),
        ("a: *b", "yaml_alias", "the alias *b has no anchor before"),
        ("a: &b [*b]", "yaml_alias", "the alias *b stands within &b"),
        ("a: &b {c: {d: *b}}", "yaml_alias", "the alias *b stands within &b"),
        ("a: {<<: {b: 1}}", "yaml_merge", "YAML 1.2 has no merge keys"),
        ("a: 1\nb: 2\na: 3", "duplicate_key", "this key is there already"),
        ("a: {b: 1, 'b': 2}", "duplicate_key", "this key is there already"),
        ("1: a", "not_text_key", "a key must be a text; put it in quotes"),
        ("a: {true: b}", "not_text_key", "a key must be a text; put it in quotes"),
        ("a: {~: b}", "not_text_key", "a key must be a text; put it in quotes"),
    ],
)
def test_spec_1_what_yaml_readers_read_differently_is_refused(
    text: str, code: str, says: str, loader: Loader
) -> None:
    """Each is told, and the rest is read on: all mistakes at once."""
    document = read(f"{text}\nz: .inf", loader)
    assert document.readable
    assert [issue.code for issue in document.issues] == [code, "not_finite"]
    assert document.issues[0].message.startswith(says)
    assert isinstance(document.value, dict)


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize(
    ("text", "code", "line", "column", "says"),
    [
        ("a: [1, 2\n", "syntax", 2, 1, "expected ',' or ']' in this list"),
        ("a: {b: 1\nc: 2", "syntax", 2, 2, "expected ',' or '}' in this mapping"),
        ("{b: 1}}", "syntax", 1, 7, "the document has ended; something follows"),
        ("a: {b: 1}}", "syntax", 1, 10, "this does not continue what stands above"),
        ("a: b\n\tc: d", "syntax", 2, 1, "a tab cannot indent; use spaces"),
        ("a:\n\t- b", "syntax", 2, 1, "a tab cannot indent; use spaces"),
        ("a: 'x\n", "syntax", 2, 1, "this quoted text has no end"),
        ("a: b: c", "syntax", 1, 5, "':' cannot stand here"),
        ("a: x\n  b: y", "syntax", 2, 4, "':' cannot stand here"),
        ("key\nb: 1", "syntax", 2, 2, "':' cannot stand here"),
        ("a: @x", "syntax", 1, 4, "'@' cannot start a text; put it in quotes"),
        ("a: `x`", "syntax", 1, 4, "'`' cannot start a text; put it in quotes"),
        ("- a\nb: c", "syntax", 2, 1, "expected '- ' here, as in the list above"),
        ("é: é\n- é", "syntax", 2, 1, "this does not continue what stands above"),
        ("a: |\n    x\n  y\n", "syntax", 3, 3, "this does not continue what stands above"),
        ('a: "x" y', "syntax", 1, 8, "this does not continue what stands above"),
        ("%YAML 2.0\n---\na: 1", "syntax", 1, 1, "YAML 1.2 is read; leave the %YAML line out"),
        ("a: 1\n---\nb: 2", "several_documents", 2, 1, "a second document starts"),
        ("? [a]\n: b", "not_text_key", 1, 3, "a key must be a text"),
        ("{a: b}: c", "not_text_key", 1, 1, "a key must be a text"),
        ("a: &x b\n*x : c", "not_text_key", 2, 1, "an alias cannot be a key"),
        ("", "empty", 1, 1, "there is nothing in it"),
        ("# only this\n", "empty", 1, 1, "there is nothing in it"),
        ("a: \x07", "syntax", 1, 4, "the character U+0007 may not stand in YAML"),
        ("a: b\n\ud800", "syntax", 2, 1, "the character U+D800 may not stand in YAML"),
    ],
)
def test_spec_4_broken_yaml_is_told_in_our_words(
    text: str, code: str, line: int, column: int, says: str, loader: Loader
) -> None:
    """Both parsers of PyYAML are told apart by nobody."""
    document = read(text, loader)
    assert not document.readable
    issue = document.issues[-1]
    assert (issue.code, issue.line, issue.column) == (code, line, column)
    assert issue.message.startswith(says)
    assert "token" not in issue.message


@pytest.mark.parametrize("loader", LOADERS)
def test_sec_3_aliases_are_read_and_bounded(loader: Loader) -> None:
    """An alias is what it stands for; a bomb is refused before it is laid out."""
    shared = read("a: &x {b: [1]}\nc: *x\nd: [*x, *x]", loader)
    assert shared.issues == ()
    assert shared.value == {
        "a": {"b": [1]},
        "c": {"b": [1]},
        "d": [{"b": [1]}, {"b": [1]}],
    }
    again = read("a: &x 1\nb: &x 2\nc: *x", loader)
    assert again.value == {"a": 1, "b": 2, "c": 2}
    bomb = "a0: &a0 [x, x]\n" + "".join(
        f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 60)
    )
    found = read(bomb, loader)
    assert not found.readable
    assert [issue.code for issue in found.issues] == ["yaml_alias"]
    assert found.issues[0].message == "aliases make it larger than 100000 bytes"
    long = f"a: &x {'y' * 1_000}\nb: [{', '.join(['*x'] * 98)}]"
    assert read(long, loader).readable
    assert not read(long.replace("[", "[*x, "), loader).readable


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize("text", ["[" * 200_000, "- " * 200_000, "{a: " * 100_000])
def test_sec_3_deep_yaml_is_refused(text: str, loader: Loader) -> None:
    """Iteratively, at the bound, in both parsers."""
    document = read("a:\n " + text, loader, max_bytes=1_000_000)
    assert not document.readable
    assert len(document.issues) == 1
    assert document.issues[0].message.startswith(("nested deeper than 64", "nested too deep"))


def test_sec_3_aliases_cannot_nest_deeper_than_the_bound() -> None:
    """Height counts where an alias stands."""
    levels = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 63))
    assert read(levels).readable
    document = read(levels + "a63: [*a62]\n")
    assert [issue.code for issue in document.issues] == ["too_deep"]


def test_spec_4_every_error_of_a_file_is_shown_where_it_is(tmp_path: Path) -> None:
    """Sorted by line, with the line and a caret; the text is what people read."""
    path = tmp_path / "agent.yaml"
    path.write_text(
        "kind: agent\n"
        "name: My Agent\n"
        "model:\n"
        "  modle: gpt-4o-mini   # a slip\n"
        "  temperature: 5\n"
        "tools:\n"
        "  - {kind: code, name: add}\n"
        "  - kind: code\n"
        "    name: add\n"
        "  - just a text\n"
        "limits: {max_turns: no}\n"
    )
    with pytest.raises(InvalidSpec) as caught:
        load_spec(path)
    assert str(caught.value).replace(str(path), "agent.yaml") == (
        "agent.yaml:1:1: /instructions: 'instructions' is missing\n"
        "    1 | kind: agent\n"
        "      | ^\n"
        "agent.yaml:2:7: /name: must start with one of a-z, then at most 62 of a-z0-9_- "
        "(got \"My Agent\"); did you mean 'my-agent'?\n"
        "    2 | name: My Agent\n"
        "      |       ^\n"
        "agent.yaml:4:3: /model/model: 'model' is missing\n"
        "    4 |   modle: gpt-4o-mini   # a slip\n"
        "      |   ^\n"
        "agent.yaml:4:3: /model/modle: unknown field (got \"modle\"); did you mean 'model'?\n"
        "    4 |   modle: gpt-4o-mini   # a slip\n"
        "      |   ^\n"
        "agent.yaml:5:16: /model/temperature: must be at most 2 (got 5)\n"
        "    5 |   temperature: 5\n"
        "      |                ^\n"
        'agent.yaml:9:11: /tools/1/name: has the name of item 0; each name once (got "add")\n'
        "    9 |     name: add\n"
        "      |           ^\n"
        'agent.yaml:10:5: /tools/2: must be a mapping, not a text (got "just a text")\n'
        "   10 |   - just a text\n"
        "      |     ^\n"
        'agent.yaml:11:21: /limits/max_turns: must be a whole number, not a text (got "no")\n'
        "   11 | limits: {max_turns: no}\n"
        "      |                     ^"
    )


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_spec_4_lines_are_counted_whatever_ends_them(ending: str) -> None:
    """LF, CRLF, or CR; other separators are part of a line."""
    text = BASE.replace("hi", '"hi\u2028\u0085there"') + "nonsense: 1\n"
    assert places(text.replace("\n", ending)) == [("unknown_field", "/nonsense", 5, 1)]


def test_spec_4_tabs_before_a_caret_stay_tabs() -> None:
    """So that the caret stands right however wide a tab is."""
    text = '{\n\t"kind": "agent",\n\t"name": 3\n}'
    issue = next(i for i in refused(text) if i.pointer == "/name")
    assert issue.text("x").splitlines()[1:] == ['    3 | \t"name": 3', "      | \t        ^"]


def test_spec_4_a_text_may_be_json_or_yaml() -> None:
    """What begins like a JSON object with a quoted key is JSON, all else YAML."""
    assert load_spec(json.dumps(minimal())) == load_spec(yaml.safe_dump(minimal()))
    assert load_spec("{kind: agent, name: x, instructions: hi, model: {model: m}}").name == "x"
    assert load_spec("---\n" + BASE).name == "x"
    assert load_spec("\ufeff" + BASE).name == "x"
    assert (
        load_spec("kind: agent\r\nname: x\r\ninstructions: hi\r\nmodel: {model: m}\r\n").name == "x"
    )
    assert places('{"kind": "agent",}') == [("syntax", "", 1, 18)]


def test_spec_4_json_is_never_read_as_yaml(tmp_path: Path) -> None:
    """A .json file follows the rules of JSON; surrogate pairs and tabs are right in it."""
    path = tmp_path / "agent.json"
    text = json.dumps(minimal(instructions="😀"), indent="\t")
    path.write_text(text)
    assert load_spec(path).instructions == "😀"
    path.write_text("kind: agent")
    assert places(path) == [("syntax", "", 1, 1)]
    path.write_text(text.replace('"name": "triage"', '"name": "triage", "name": "b"'))
    assert places(path) == [("duplicate_key", "/name", 3, 20)]


def test_spec_4_files_are_found_by_path_or_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Path, a text that names a file, and one that only looks like a name."""
    (tmp_path / "agent.yaml").write_text(BASE)
    (tmp_path / "agent").write_text(BASE)
    (tmp_path / "agent.YML").write_text(BASE)
    monkeypatch.chdir(tmp_path)
    for name in ("agent.yaml", "agent", "agent.YML", str(tmp_path / "agent.yaml")):
        assert load_spec(name).name == load_spec(Path(name)).name == "x"
    for missing in ("agnt.yaml", "no/such.json", Path("agnt")):
        found = refused(missing)
        assert [(i.code, i.message) for i in found] == [
            ("unreadable_file", "cannot be read: no such file or directory")
        ]
    with pytest.raises(InvalidSpec, match=r"^agnt\.yaml: cannot be read: no such file"):
        load_spec("agnt.yaml")
    assert places("agnt") == [("wrong_type", "", 1, 1)]
    assert refused("agnt")[0].message == "neither a Spec nor the name of a file that exists"
    assert refused(tmp_path)[0].code == "unreadable_file"
    assert refused(Path("a\x00b.yaml"))[0].code == "unreadable_file"
    assert refused("x" * 5_000)[0].code == "wrong_type"


def test_sec_3_a_large_file_is_not_read(tmp_path: Path) -> None:
    """Its size is enough; neither is a text of 50 MB parsed."""
    path = tmp_path / "large.yaml"
    with path.open("wb") as file:
        file.truncate(50_000_000)
    for value in (path, str(path), "a: b\n" * 10_000_000):
        with pytest.raises(PayloadTooLarge) as caught:
            load_spec(value)
        assert caught.value.size_bytes == 50_000_000
        assert caught.value.bound_bytes == 1024 * 1024
    with pytest.raises(PayloadTooLarge):
        load_spec(Path("/dev/zero"))


def test_spec_4_a_file_that_is_no_utf_8_is_told_where(tmp_path: Path) -> None:
    """A file in Latin-1 or UTF-16."""
    path = tmp_path / "agent.yaml"
    path.write_bytes("kind: agent\nname: é\n".encode("latin-1"))
    assert places(path) == [("not_utf8", "", 2, 7)]
    path.write_bytes(BASE.encode("utf-16"))
    assert places(path) == [("not_utf8", "", 1, 1)]
    path.write_bytes(b"\xef\xbb\xbf" + BASE.encode())
    assert load_spec(path).name == "x"


def test_sec_3_many_mistakes_in_a_large_file_are_told_in_time() -> None:
    """Cost is linear in the file, whatever is wrong with it; the last line counts the rest."""
    fields = BASE + "".join(f"field{index}: 1\n" for index in range(20_000))
    tools = BASE + "tools:\n" + "".join(f"- {{kind: code, nam: k{i}}}\n" for i in range(5_000))
    flow = "{" + BASE.replace("\n", ", ") + ", ".join(f"f{i}: 1" for i in range(20_000)) + "}"
    numbers = BASE + "x: [" + ".nan, " * 20_000 + "]"
    for text, more in ((fields, 19_000), (tools, 9_000), (flow, 19_000), (numbers, 19_001)):
        found = refused(text)
        assert len(found) == 1_001
        assert found[-1].message == f"and {more} more"
        assert found[-2].line is not None


def test_spec_4_an_alias_that_is_one_too_many_is_the_one_that_is_named() -> None:
    """Pointer, line and column agree: the fourth of five."""
    text = "a: &a " + "x" * 300_000 + "\nf: [*a, *a, *a, *a, *a]\n"
    with pytest.raises(InvalidSpec) as caught:
        load_spec(text)
    [issue] = caught.value.issues
    assert (issue.pointer, issue.line, issue.column) == ("/f/3", 2, 17)
