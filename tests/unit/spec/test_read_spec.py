"""Whatever was written wrong is told at once, with place, words and remedy (SPEC-3, SPEC-4)."""

import datetime
import decimal
import functools
import json
import math
import pathlib
from collections import OrderedDict
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple
from unittest.mock import Mock

import pytest
from pydantic import BaseModel

from psych_runtime import AgentSpec, CodeTool, Limits, ModelRef
from psych_runtime.core.issues import Issue
from psych_runtime.core.validation import read_spec
from psych_runtime.errors import InvalidSpec, PayloadTooLarge
from tests.unit.spec.documents import by_code, by_pointer, issues, minimal


class Strange:
    def __repr__(self) -> str:
        raise AssertionError("nothing of a foreign object is called")

    __str__ = __repr__

    def __getattr__(self, name: str) -> object:
        raise AssertionError(name)


class Model(BaseModel):
    model: str = "m"


class Pair(NamedTuple):
    kind: str
    name: str


class Size(StrEnum):
    SMALL = "gpt-4o-mini"


def charge(cents: int) -> None:
    """Do nothing."""


async def charge_later(cents: int) -> None:
    """Do nothing."""


FOREIGN: list[tuple[object, str]] = [
    (charge, "a function cannot be in a Spec; register it and write its name"),
    (charge_later, "a function cannot be in a Spec; register it and write its name"),
    (len, "a function cannot be in a Spec; register it and write its name"),
    ("".join, "a function cannot be in a Spec; register it and write its name"),
    (lambda: 1, "a function cannot be in a Spec; register it and write its name"),
    (functools.partial(charge, 1), "an object cannot be in a Spec; write the text or number"),
    (Strange, "a class cannot be in a Spec; write a name"),
    (int, "a class cannot be in a Spec; write a name"),
    (Strange(), "an object cannot be in a Spec; write the text or number"),
    (Model(), "an object cannot be in a Spec; write the text or number"),
    (Mock(spec=str), "an object cannot be in a Spec; write the text or number"),
    (Mock(spec=dict), "an object cannot be in a Spec; write the text or number"),
    (object(), "an object cannot be in a Spec; write the text or number"),
    (math, "an object cannot be in a Spec; write the text or number"),
    (1j, "an object cannot be in a Spec; write the text or number"),
    (iter(()), "an object cannot be in a Spec; write the text or number"),
    (decimal.Decimal(1), "an object cannot be in a Spec; write the text or number"),
    (datetime.date(2026, 1, 1), "an object cannot be in a Spec; write the text or number"),
    (pathlib.PurePath("x"), "an object cannot be in a Spec; write the text or number"),
    (b"x", "bytes cannot be in a Spec; decode them to a text"),
    (bytearray(b"x"), "bytes cannot be in a Spec; decode them to a text"),
    ({"x"}, "a set has no order of its own; write a list"),
    (frozenset(), "a set has no order of its own; write a list"),
]


def test_spec_3_plain_values_are_read() -> None:
    """What JSON has, and the models; tuples are lists, read-only mappings are mappings."""
    spec = read_spec(
        MappingProxyType(
            OrderedDict(
                minimal(
                    tools=({"kind": "code", "name": "add"}, CodeTool(name="mul")),
                    model=ModelRef(model="m"),
                    limits=Limits(max_turns=3),
                )
            )
        )
    )
    assert spec == AgentSpec(
        name="triage",
        instructions="Sort tickets.",
        model=ModelRef(model="m"),
        tools=(CodeTool(name="add"), CodeTool(name="mul")),
        limits=Limits(max_turns=3),
    )


def test_spec_3_a_text_with_behaviour_comes_in_as_a_plain_text() -> None:
    """An enum's member is a text; what stays is the text alone."""
    spec = read_spec(minimal(model={"model": Size.SMALL}))
    assert spec.model.model == "gpt-4o-mini"
    assert type(spec.model.model) is str


@pytest.mark.parametrize("index", range(len(FOREIGN)))
def test_spec_3_no_object_can_enter(index: int) -> None:
    """Wherever it stands, its path is told, and nothing of it is called."""
    value, says = FOREIGN[index]
    places = {
        "": value,
        "/instructions": minimal(instructions=value),
        "/model": minimal(model=value),
        "/model/model": minimal(model={"model": value}),
        "/model/temperature": minimal(model={"model": "m", "temperature": value}),
        "/tools": minimal(tools=value),
        "/tools/1": minimal(tools=[{"kind": "code", "name": "add"}, value]),
        "/tools/0/name": minimal(tools=({"kind": "code", "name": value},)),
        "/limits/max_turns": minimal(limits={"max_turns": value}),
    }
    for pointer, spec in places.items():
        if pointer == "" and isinstance(value, bytes):
            continue  # bytes alone are JSON text
        found = by_pointer(spec)
        assert list(found) == [pointer]
        assert found[pointer].code == "foreign_object"
        assert found[pointer].message.startswith(says)


def test_spec_3_it_says_what_it_found() -> None:
    """The name of the function or type, never what an object says of itself."""
    found = by_pointer(minimal(tools=[charge, Strange, Strange(), {1}]))
    assert [found[f"/tools/{index}"].value for index in range(4)] == [
        "function charge",
        "class Strange",
        f"a {Strange.__module__}.Strange",
        "set",
    ]


def test_spec_3_an_object_under_an_unknown_field_is_found_too() -> None:
    """Beside the unknown field itself."""
    assert sorted(by_code(minimal(hook=charge, extra={"deep": [charge]}))) == [
        ("foreign_object", "/extra/deep/0"),
        ("foreign_object", "/hook"),
        ("unknown_field", "/extra"),
    ]


def test_spec_3_models_made_without_checks_are_checked() -> None:
    """`model_construct` takes anything; reading does not."""
    spec = AgentSpec.model_construct(
        None,
        name="x",
        instructions=charge,
        model=ModelRef.model_construct(None, model=Strange()),
        tools=[CodeTool.model_construct(None, name=charge)],
        limits=Limits.model_construct(None, max_turns="3"),
    )
    assert sorted(by_code(spec)) == [
        ("foreign_object", "/instructions"),
        ("foreign_object", "/model/model"),
        ("foreign_object", "/tools/0/name"),
        ("wrong_type", "/limits/max_turns"),
    ]
    assert by_code(AgentSpec.model_construct(None)) == [
        ("missing_field", "/name"),
        ("missing_field", "/instructions"),
        ("missing_field", "/model"),
    ]


def test_spec_3_keys_are_texts() -> None:
    """A number as a key would be a text after a round trip through JSON."""
    spec: dict[object, object] = dict(minimal().items())
    found = issues(spec | {3: 1, None: 2, charge: 4})
    assert [(issue.code, issue.pointer) for issue in found] == [("not_text_key", "")] * 3
    assert [issue.value for issue in found] == ["3", "null", "a function"]


def test_spec_3_half_a_surrogate_pair_is_refused() -> None:
    """It is no character and could not be stored; its path is told."""
    spec = minimal(instructions="a\ud800", model={"model": "m", "\udc00": 1})
    assert by_code(spec) == [("not_unicode", "/instructions"), ("not_unicode", "/model")]
    assert by_code(json.dumps(minimal(instructions="a\ud800"))) == [
        ("not_unicode", "/instructions")
    ]
    assert read_spec(json.dumps(minimal(instructions="a😀"))).instructions == "a😀"


def test_sec_3_cycles_and_deep_nesting_are_refused() -> None:
    """Neither recursion nor time: a list in itself, and one that doubles forty times."""
    cycle: list[object] = []
    cycle.append(cycle)
    assert ("too_deep", "/tools" + "/0" * 63) in by_code(minimal(tools=cycle))
    doubled: list[object] = ["x"]
    for _ in range(40):
        doubled = [doubled, doubled]
    with pytest.raises(PayloadTooLarge):
        read_spec(minimal(tools=doubled))
    assert by_code('{"a":' + "[" * 200_000) == [("too_deep", "/a" + "/0" * 63)]


def test_sec_3_a_document_over_one_mebibyte_is_refused() -> None:
    """50 MB are refused by their size, as text, bytes and dict; what just fits is read."""
    base = json.dumps(minimal(instructions=""))
    room = 1024 * 1024 - len(base)
    fits = base.replace('"instructions": ""', f'"instructions": "{"x" * room}"')
    assert len(fits) == 1024 * 1024
    assert len(read_spec(fits).instructions) == room
    large = "x" * 50_000_000
    for value in (fits + " ", large, large.encode(), minimal(instructions=large)):
        with pytest.raises(PayloadTooLarge) as caught:
            read_spec(value)
        assert caught.value.bound_bytes == 1024 * 1024
        assert caught.value.size_bytes > 1024 * 1024


def test_spec_4_everything_wrong_is_told_at_once() -> None:
    """Each with pointer, our words, a code, the value and what was probably meant."""
    found = by_pointer(
        {
            "kind": "agnt",
            "name": "My Agent",
            "instrutions": "x",
            "model": {"model": 12, "temperature": 3, "max_output_tokens": 0.5},
            "tools": [
                {"kind": "code", "name": "add"},
                {"kind": "cod", "name": "div"},
                "mul",
                {"kind": "code", "name": "add"},
                {"name": "sub"},
                {"kind": "code", "name": ""},
            ],
            "limits": {"maxTurns": 5, "max_turns": 0, "deadline_seconds": math.nan},
        }
    )
    table = {
        pointer: (issue.code, issue.message, issue.value, issue.suggestion)
        for pointer, issue in found.items()
    }
    name = "must start with one of a-z, then at most 62 of a-z0-9_-"
    tool_name = "must start with one of a-zA-Z, then at most 63 of a-zA-Z0-9_-"
    assert table == {
        "/kind": ("unknown_kind", "must be 'agent'", '"agnt"', "agent"),
        "/name": ("pattern", name, '"My Agent"', "my-agent"),
        "/instructions": ("missing_field", "'instructions' is missing", None, None),
        "/instrutions": ("unknown_field", "unknown field", '"instrutions"', "instructions"),
        "/model/model": ("wrong_type", "must be a text, not a number", "12", None),
        "/model/temperature": ("too_large", "must be at most 2", "3", None),
        "/model/max_output_tokens": ("wrong_type", "must be a whole number", "0.5", None),
        "/tools/1/kind": (
            "unknown_kind",
            "must be one of 'builtin', 'code', 'http'",
            '"cod"',
            "code",
        ),
        "/tools/2": ("wrong_type", "must be a mapping, not a text", '"mul"', None),
        "/tools/3/name": (
            "doubled_name",
            "has the name of item 0; each name once",
            '"add"',
            None,
        ),
        "/tools/4/kind": (
            "missing_field",
            "'kind' is missing; write kind: builtin, code or http",
            None,
            None,
        ),
        "/limits/max_turns": ("too_small", "must be at least 1", "0", None),
        "/tools/5/name": ("pattern", tool_name, '""', None),
        "/limits/maxTurns": ("unknown_field", "unknown field", '"maxTurns"', "max_turns"),
        "/limits/deadline_seconds": (
            "not_finite",
            "NaN, infinite and larger numbers cannot be kept",
            "nan",
            None,
        ),
    }


@pytest.mark.parametrize(
    ("changes", "pointer", "message"),
    [
        ({"name": 3}, "/name", "must be a text, not a number"),
        ({"name": None}, "/name", "must be a text, not null"),
        ({"name": True}, "/name", "must be a text, not true or false"),
        ({"name": ["a"]}, "/name", "must be a text, not a list"),
        ({"instructions": ""}, "/instructions", "must not be empty"),
        ({"model": []}, "/model", "must be a mapping, not a list"),
        ({"model": {"model": ""}}, "/model/model", "must not be empty"),
        ({"model": {"model": "x" * 257}}, "/model/model", "must have at most 256 characters"),
        ({"tools": {}}, "/tools", "must be a list, not a mapping"),
        ({"tools": None}, "/tools", "must be a list, not null"),
        (
            {"tools": [{"kind": "code", "name": f"t{index}"} for index in range(257)]},
            "/tools",
            "must have at most 256 items",
        ),
        ({"limits": None}, "/limits", "must be a mapping, not null"),
        ({"limits": {"max_turns": "3"}}, "/limits/max_turns", "must be a whole number, not a text"),
        ({"limits": {"max_turns": True}}, "/limits/max_turns", "must be a whole number, not true"),
        ({"limits": {"max_turns": 100_001}}, "/limits/max_turns", "must be at most 100000"),
        ({"limits": {"deadline_seconds": 0}}, "/limits/deadline_seconds", "must be more than 0"),
        (
            {"limits": {"deadline_seconds": "1"}},
            "/limits/deadline_seconds",
            "must be a number, not",
        ),
        (
            {"limits": {"max_turns": 2**53}},
            "/limits/max_turns",
            "numbers without a fraction end at 9007199254740991",
        ),
    ],
)
def test_spec_4_each_mistake_has_words_of_its_own(
    changes: dict[str, object], pointer: str, message: str
) -> None:
    """Not pydantic's; the same from a dict and from JSON text."""
    for value in (minimal(**changes), json.dumps(minimal(**changes))):
        found = by_pointer(value)
        assert list(found) == [pointer]
        assert found[pointer].message.startswith(message)


@pytest.mark.parametrize("value", [None, 3, True, "null", "[]", "3", '"x"', [], [1]])
def test_spec_4_what_is_no_mapping_is_told(value: object) -> None:
    """The pointer is the whole document."""
    found = by_pointer(value)
    assert list(found) == [""]
    assert found[""].code == "wrong_type"
    assert found[""].message.startswith("must be a mapping, not ")


def test_spec_4_tags_are_required_in_documents() -> None:
    """In Python `kind` has a default; a document says what it is, as the published schema wants."""
    spec = minimal(tools=[{"name": "add"}])
    del spec["kind"]
    missing = [("missing_field", "/kind"), ("missing_field", "/tools/0/kind")]
    assert sorted(by_code(spec)) == missing
    assert sorted(by_code(json.dumps(spec))) == missing


def test_spec_4_json_text_is_located() -> None:
    """A missing field at the mapping that lacks it, an unknown one at its key."""
    text = '{"kind": "agent", "name": "x",\n  "model": {"modle": "m"},\n  "instructions": 3}'
    found = by_pointer(text)
    assert {pointer: (issue.line, issue.column) for pointer, issue in found.items()} == {
        "/model/model": (2, 12),
        "/model/modle": (2, 13),
        "/instructions": (3, 19),
    }
    assert found["/model/modle"].source == '  "model": {"modle": "m"},'


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{", "syntax"),
        ("", "syntax"),
        ("kind: agent", "syntax"),
        (b"\xff", "not_utf8"),
        ('{"kind": "agent", "kind": "agent"}', "duplicate_key"),
        ('{"kind": NaN}', "not_finite"),
    ],
)
def test_spec_1_text_that_is_no_plain_json_is_refused(text: str | bytes, code: str) -> None:
    """As InvalidSpec, like all else that is wrong with a Spec."""
    assert code in [issue.code for issue in issues(text)]


def test_spec_4_a_doubled_key_hides_nothing() -> None:
    """What is wrong with the first value is told beside the second key."""
    text = (
        '{"kind": "agent", "name": "A", "name": "b", "instructions": "", "model": {"model": "m"}}'
    )
    assert by_code(text) == [
        ("pattern", "/name"),
        ("duplicate_key", "/name"),
        ("too_short", "/instructions"),
    ]


def test_spec_4_thousands_of_mistakes_are_all_told() -> None:
    """Only the first hundred get a suggestion and their line; past a thousand they are counted."""
    spec = minimal(**{f"tool{index}": 1 for index in range(1_000)})
    found = issues(json.dumps(spec))
    assert len(found) == 1_000
    assert [issue.suggestion for issue in found[:2]] == ["tools", "tools"]
    assert sum(issue.suggestion is not None for issue in found) == 100
    assert sum(issue.source is not None for issue in found) == 100
    assert all(issue.line == 1 and issue.column for issue in found)
    more = issues({**spec, **{f"more{index}": 1 for index in range(7)}})
    assert len(more) == 1_001
    assert more[-1] == Issue("", "and 7 more", "more_issues")


def test_spec_4_the_error_is_readable_and_picklable() -> None:
    """The text names every place; facts survive a process boundary."""
    import pickle

    with pytest.raises(InvalidSpec) as caught:
        read_spec(minimal(nam="x", limits={"max_turns": 0}))
    assert str(caught.value) == (
        "spec: /limits/max_turns: must be at least 1 (got 0)\n"
        "spec: /nam: unknown field (got \"nam\"); did you mean 'name'?"
    )
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.issues == caught.value.issues
    assert str(again) == str(caught.value)
