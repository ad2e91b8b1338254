"""Specs as the tests of this folder write them."""

import json
from collections.abc import Mapping

import pytest
from hypothesis import strategies as st
from pydantic import JsonValue

from psych_runtime.core.issues import Issue
from psych_runtime.core.validation import read_spec
from psych_runtime.errors import InvalidSpec

__all__ = ["by_code", "by_pointer", "issues", "minimal", "pointers", "shuffled", "spec_documents"]


def minimal(**changes: object) -> dict[str, object]:
    """Return the smallest Spec, changed."""
    spec: dict[str, object] = {
        "kind": "agent",
        "name": "triage",
        "instructions": "Sort tickets.",
        "model": {"model": "gpt-4o-mini"},
    }
    return {**spec, **changes}


def issues(value: object) -> tuple[Issue, ...]:
    """Return what is wrong with a Spec that must be refused."""
    with pytest.raises(InvalidSpec) as caught:
        read_spec(value)
    return caught.value.issues


def by_pointer(value: object) -> Mapping[str, Issue]:
    """Return what is wrong with a Spec by where; each place once."""
    found = issues(value)
    table = {issue.pointer: issue for issue in found}
    assert len(table) == len(found)
    return table


def by_code(value: object) -> list[tuple[str, str]]:
    """Return code and pointer of each issue."""
    return [(issue.code, issue.pointer) for issue in issues(value)]


def pointers(value: object) -> list[str]:
    """Return where a Spec is wrong."""
    return [issue.pointer for issue in issues(value)]


def _members(value: JsonValue, draw: st.DrawFn) -> JsonValue:
    if isinstance(value, dict):
        names = draw(st.permutations(sorted(value)))
        return {name: _members(value[name], draw) for name in names}
    if isinstance(value, list):
        return [_members(item, draw) for item in value]
    return value


@st.composite
def shuffled(draw: st.DrawFn, value: JsonValue) -> JsonValue:
    """Return the same document with its keys in another order."""
    return _members(value, draw)


_TEXTS = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=20)
_LINES = st.lists(_TEXTS, min_size=1, max_size=3).map("\n".join)
_NAMES = st.from_regex(r"[a-z][a-z0-9_-]{0,20}", fullmatch=True)
_TOOL_NAMES = st.from_regex(r"[a-zA-Z][a-zA-Z0-9_-]{0,20}", fullmatch=True)
_SECONDS = st.one_of(
    st.integers(min_value=1, max_value=10**6),
    st.floats(min_value=0.001, max_value=10**6, allow_nan=False),
)


@st.composite
def spec_documents(draw: st.DrawFn) -> dict[str, JsonValue]:
    """Return a valid Spec as plain JSON, optional fields there or not."""
    names = draw(st.lists(_TOOL_NAMES, unique=True, max_size=4))
    tools: list[JsonValue] = [{"kind": "code", "name": name} for name in names]
    model = draw(
        st.fixed_dictionaries(
            {"model": st.from_regex(r"[a-z][a-z0-9./-]{0,20}", fullmatch=True)},
            optional={
                "temperature": st.sampled_from([None, 0, 0.5, 1, 1.0, 2.0]),
                "max_output_tokens": st.one_of(st.none(), st.integers(1, 2**53 - 1)),
            },
        )
    )
    limits = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "max_turns": st.integers(1, 100_000),
                "deadline_seconds": _SECONDS,
                "stream_idle_seconds": _SECONDS,
            },
        )
    )
    spec: dict[str, JsonValue] = {
        "kind": "agent",
        "name": draw(_NAMES),
        "instructions": "x" + draw(_LINES),
        "model": json.loads(json.dumps(model)),
    }
    if draw(st.booleans()):
        spec |= {"tools": tools, "limits": json.loads(json.dumps(limits))}
    if draw(st.booleans()):
        spec["description"] = draw(_LINES)
    return spec
