"""Model and published schema agree on spoilt documents, but for what is listed here."""

import copy
from collections.abc import Iterator

import pytest

from codegen import corpus
from codegen.tree import Json, Node
from psych_schema.record import Envelope
from psych_schema.types import RECORD_TYPES
from tests.codegen.published import model_error, validator
from tests.codegen.trees import REMOVED, SCHEMA

VALUES: list[Json] = [
    *(None, True, 1, -1, 1.0, 2.5, 9007199254740993),
    *("", "X!", "1", "x\n"),
    *([], {}),
    "2026-01-01T00:00:00.000000Z",
    "2026-02-30T00:00:00.000000Z",
    "2026-01-01T23:59:60.000000Z",
    "2026-01-01 00:00:00.000000Z",
    "2026-01-01T00:00:00Z",
]
# For places deeper than a field of a field: their types are tried nearer the top elsewhere.
DEEP_VALUES: list[Json] = [None, -1, "X!"]
ENVELOPE_IS_TRIED_IN = "TurnStarted"
RECORDS = {model.__name__ for model in RECORD_TYPES.values()}

type Way = tuple[str | int, ...]

# What the schema takes and the model refuses: the model's error, and the value.
STRICTER_MODEL: tuple[tuple[str, Json], ...] = (
    ("int_type", 1.0),  # JSON Schema counts 1.0 as an integer; a strict model does not
    ("string_pattern_mismatch", "x\n"),  # `$` of Python's re, in jsonschema alone, not in ajv
    ("value_error", "2026-02-30T00:00:00.000000Z"),  # a pattern knows no calendar
    ("value_error", "2026-01-01T23:59:60.000000Z"),
)
# A constant that tells union members apart may be left out where no union is: the class is known.
OPTIONAL_TAGS = {"kind", "role", "type"}


def _ways(value: Json, way: Way = ()) -> Iterator[Way]:
    """Yield where something can be changed."""
    if way:
        yield way
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _ways(item, (*way, key))
    elif isinstance(value, list):
        for index, item in enumerate(value[:1]):  # the others are of the same type
            yield from _ways(item, (*way, index))


def _at(document: Json, way: Way) -> Json:
    """Return what stands at `way`."""
    for part in way:
        match document, part:
            case dict(), str():
                document = document[part]
            case list(), int():
                document = document[part]
    return document


def _spoil(document: Node, way: Way, value: Json) -> Node:
    """Return a copy with `value` at `way`; REMOVED takes away what is there."""
    spoilt = copy.deepcopy(document)
    holder, last = _at(spoilt, way[:-1]), way[-1]
    if isinstance(holder, list) and isinstance(last, int):
        holder[last : last + 1] = [] if value == REMOVED else [value]
    elif isinstance(holder, dict) and isinstance(last, str):
        if value == REMOVED:
            del holder[last]
        else:
            holder[last] = value
    return spoilt


def _examples() -> list[corpus.Example]:
    """Return the fullest valid example of each published type."""
    fullest: dict[str, corpus.Example] = {}
    for example in corpus.load(SCHEMA):
        if example.error is None and validator(example.type) is not None:
            known = fullest.setdefault(example.type, example)
            if len(str(example.document)) > len(str(known.document)):
                fullest[example.type] = example
    return list(fullest.values())


@pytest.mark.parametrize("example", _examples(), ids=lambda example: example.type)
def test_spec_5_model_and_schema_agree_on_spoilt_documents(example: corpus.Example) -> None:
    """Each place of an example takes each value; both readers come to one verdict.

    The envelope's fields are spoilt in one record type: they are the same in every other.
    """
    schema = validator(example.type)
    assert schema is not None
    disagreements: list[tuple[Way, Json, bool, str | None]] = []
    for way in _ways(example.document):
        if _tried_elsewhere(example.type, way):
            continue
        for value in [*(VALUES if len(way) < 3 else DEEP_VALUES), REMOVED]:
            spoilt = _spoil(example.document, way, value)
            error = model_error(example.type, spoilt)
            taken = schema.is_valid(spoilt)
            if taken != (error is None) and not _known(way, value, taken=taken, error=error):
                disagreements.append((way, value, taken, error))
    assert disagreements == []


def _tried_elsewhere(name: str, way: Way) -> bool:
    if name == "Record":
        return way[0] != "type"
    envelope = name in RECORDS and name != ENVELOPE_IS_TRIED_IN
    return envelope and way[0] in Envelope.model_fields


def _known(way: Way, value: Json, *, taken: bool, error: str | None) -> bool:
    if not taken or error is None:
        return value == REMOVED and way[-1] in OPTIONAL_TAGS
    seen = (error.split(" ")[0], value, type(value))
    return any(seen == (kind, what, type(what)) for kind, what in STRICTER_MODEL)


@pytest.mark.parametrize("example", _examples(), ids=lambda example: example.type)
def test_spec_5_both_refuse_or_both_ignore_an_unknown_field(example: corpus.Example) -> None:
    """A Spec refuses it, a record and a view keep it out of the way, in each object of each."""
    schema = validator(example.type)
    assert schema is not None
    for way in ((), *_ways(example.document)):
        if isinstance(_at(example.document, way), dict):
            spoilt = _spoil(example.document, (*way, "zzz"), 1)
            assert schema.is_valid(spoilt) == (model_error(example.type, spoilt) is None), way
