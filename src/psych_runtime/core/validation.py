"""Reads Specs, and checks them before they are published: everything wrong at once (SPEC-4, PUB-1).

Whatever was given becomes plain JSON, is judged by the generated models, and comes back as the
Spec that its canonical text says.
"""

from collections.abc import Collection, Iterator, Sequence
from functools import cache
from typing import Final, NamedTuple

from pydantic import JsonValue, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, to_json

from psych_runtime.core._json_text import read_json_text
from psych_runtime.core._locate import Document, pointer_of
from psych_runtime.core._messages import issues_of
from psych_runtime.core._model_checks import FindServing, model_issues, unchecked_models
from psych_runtime.core._plain import is_a, plain
from psych_runtime.core._redact import shown
from psych_runtime.core._shape import Part, constants, models
from psych_runtime.core.canonical import MAX_SPEC_BYTES, canonical_text
from psych_runtime.core.foreign import MAX_DEPTH, decode_text
from psych_runtime.core.http_checks import http_issues
from psych_runtime.core.issues import Issue
from psych_runtime.core.near import nearest
from psych_runtime.errors import InvalidPayload, InvalidSpec
from psych_schema.sets import SETS
from psych_schema.spec import Spec

__all__ = ["Checked", "check_spec", "read_document", "read_spec"]

# Issues that leave a value in place, so that what else is wrong there is worth saying.
_BESIDE: Final = frozenset({"duplicate_key", "not_text_key"})

_MAX_TOLD: Final = 1_000
_MORE: Final = "more_issues"


def read_spec(value: object) -> Spec:
    """Return the Spec that a generated model, a dict or JSON text says.

    Sets come back sorted, CRLF as LF, 1.0 as 1: however a Spec was written, it is equal and
    has one hash (SPEC-1, SPEC-2).

    Raises:
        InvalidSpec: `issues` lists everything that is wrong, each with its JSON pointer; past
            a thousand it says how many more there are.
        PayloadTooLarge: more than 1 MiB; nothing was parsed.
    """
    if is_a(value, str) or is_a(value, bytes):
        return _read_text(value)
    document, issues = plain(value, max_bytes=MAX_SPEC_BYTES, max_depth=MAX_DEPTH)
    return _judge(document, issues)


def _read_text(value: str | bytes) -> Spec:
    try:
        text = decode_text(value, what="spec", max_bytes=MAX_SPEC_BYTES)
    except InvalidPayload as error:
        raise InvalidSpec([Issue("", error.problem, "not_utf8")]) from None
    return read_document(read_json_text(text, max_depth=MAX_DEPTH, whole=True), name="spec")


def read_document(document: Document, *, name: str, is_new: bool = False) -> Spec:
    """Return the Spec that a text says; issues have line and column. Raises InvalidSpec.

    `is_new`: nobody published it yet, so what publishing says of a tool alone is said now.
    """
    if not document.readable:
        raise InvalidSpec(_told(list(document.issues), 0), name=name)
    try:
        return _judge(document.value, document.issues, is_new=is_new)
    except InvalidSpec as error:
        issues = [i if i.code == _MORE else document.locate(i) for i in error.issues]
        issues.sort(key=lambda i: (i.code == _MORE, i.line or 0, i.column or 0))
        raise InvalidSpec(issues, name=name) from None


def _judge(value: JsonValue, found: Sequence[Issue], *, is_new: bool = False) -> Spec:
    """Return the Spec that `value` is; `found` is what was wrong before. Raises InvalidSpec."""
    settled = {issue.pointer for issue in found if issue.code not in _BESIDE}
    spec, errors = _validate(value)
    judged = issues_of(Spec, value, errors[:_MAX_TOLD])
    issues = [*found, *(issue for issue in judged if issue.pointer not in settled)]
    for part in models(Spec, value):
        issues += [*_missing_tags(part), *_doubles(part)]
    if spec is not None and is_new:
        issues += _check_requests(spec)
    if spec is None or issues:
        raise InvalidSpec(_told(issues, max(0, len(errors) - _MAX_TOLD)))
    return _specs().validate_json(canonical_text(spec))


def _validate(value: JsonValue) -> tuple[Spec | None, list[ErrorDetails]]:
    """Return what the generated models make of `value`, or why they refuse it."""
    try:
        return _specs().validate_json(to_json(value)), []
    except ValidationError as error:
        return None, error.errors(include_url=False, include_input=False)


def _told(issues: list[Issue], more: int) -> list[Issue]:
    """Return at most a thousand issues, and how many there are beyond."""
    more += max(0, len(issues) - _MAX_TOLD)
    rest = [Issue("", f"and {more} more", _MORE)] if more else []
    return issues[:_MAX_TOLD] + rest


@cache
def _specs() -> TypeAdapter[Spec]:
    """Return the reader of Specs, built when it is first needed."""
    return TypeAdapter(Spec)


def _missing_tags(part: Part) -> Iterator[Issue]:
    """A tag has a default in Python; a document says what it is (SPEC-5)."""
    for name, tag in constants(part.model):
        if name not in part.members:
            pointer = pointer_of((*part.path, name))
            yield Issue(pointer, f"{name!r} is missing; write {name}: {tag}", "missing_field")


def _doubles(part: Part) -> Iterator[Issue]:
    """Find the items of sets that have the name of an earlier one (SPEC-2)."""
    for field, key in SETS.get(part.model.__name__, {}).items():
        items = part.members.get(field)
        seen: dict[str, int] = {}
        for index, item in enumerate(items if isinstance(items, list) else ()):
            name = item.get(key) if isinstance(item, dict) else None
            if isinstance(name, str) and seen.setdefault(name, index) != index:
                message = f"has the {key} of item {seen[name]}; each {key} once"
                pointer = pointer_of((*part.path, field, index, key))
                yield Issue(pointer, message, "doubled_name", shown(name))


class Checked(NamedTuple):
    """What publishing found."""

    issues: tuple[Issue, ...]
    unchecked: tuple[str, ...]  # in words, what nobody could check (PUB-2)


def check_spec(
    spec: Spec,
    *,
    tools: Collection[str] | None,
    models: Collection[str] | None,
    serving: FindServing | None = None,
    reserved: Collection[str] = (),
) -> Checked:
    """Check a valid Spec against what is registered (PUB-1); pointers are those of `spec`.

    Args:
        tools: names of the registered tools; None when nobody knows.
        models: names that a ModelRef may have; None when a client cannot know.
        serving: tells who is called for a ModelRef; None when nobody knows.
        reserved: names of built-in tools, which no other may have.
    """
    issues = [*_check_names(spec, reserved), *_check_texts(spec), *_check_people(spec)]
    issues += _check_requests(spec)
    unchecked = [*_unchecked_secrets(spec)]
    if tools is not None:
        issues += _check_tools(spec, tools)
    elif code := sorted(tool.name for tool in spec.tools if tool.kind == "code"):
        names = ", ".join(code)
        unchecked.append(f"whether these tools are registered: {names} (no registry was given)")
    issues += model_issues(spec, models, serving)
    unchecked += unchecked_models(spec, models, serving)
    return Checked(tuple(issues), tuple(unchecked))


def _check_requests(spec: Spec) -> Iterator[Issue]:
    """Find what is wrong with HTTP tools."""
    for place, tool in enumerate(spec.tools):
        if tool.kind == "http":
            yield from http_issues(tool, f"/tools/{place}")


def _unchecked_secrets(spec: Spec) -> Iterator[str]:
    """Say which secrets nobody looks for before a call needs one."""
    named = {one.credential.secret for one in spec.tools if one.kind == "http" and one.credential}
    if named:
        yield f"whether these secrets exist: {', '.join(sorted(named))} (a call asks for its own)"


def _check_tools(spec: Spec, registered: Collection[str]) -> Iterator[Issue]:
    for index, tool in enumerate(spec.tools):
        if tool.kind == "code" and tool.name not in registered:
            yield Issue(
                f"/tools/{index}/name",
                "no tool of this name is registered",
                "unregistered_tool",
                shown(tool.name),
                nearest(tool.name, registered),
            )


def _check_texts(spec: Spec) -> Iterator[Issue]:
    """Find what no store keeps: the instructions become a document as they are (LOG-5)."""
    texts = {"/instructions": spec.instructions}
    for place, skill in enumerate(spec.skills):
        texts[f"/skills/{place}/text"] = skill.text
        texts[f"/skills/{place}/description"] = skill.description
    for place, event in enumerate(spec.events):
        texts[f"/events/{place}/description"] = event.description
    for place, tool in enumerate(spec.tools):
        if tool.kind == "http":
            texts[f"/tools/{place}/description"] = tool.description
    for pointer, text in texts.items():
        if "\0" in text:
            message = "has the character U+0000, which not every database keeps; take it out"
            yield Issue(pointer, message, "nul_character")


def _check_people(spec: Spec) -> Iterator[Issue]:
    """Find rules about tools that are not granted, and tools that have nothing to work on."""
    granted = [tool.name for tool in spec.tools]
    for place, name in enumerate(spec.ask_before.tools):
        if name not in granted:
            yield Issue(
                f"/ask_before/tools/{place}",
                "no tool of this name is granted",
                "unknown_selector",
                shown(name),
                nearest(name, granted),
            )
    needs = {"wait_for_event": ("events", spec.events), "load_skill": ("skills", spec.skills)}
    for place, tool in enumerate(spec.tools):
        field, found = needs.get(tool.name, ("", ()))
        if tool.kind == "builtin" and field and not found:
            message = f"needs /{field}, and there are none; declare some, or take the tool out"
            yield Issue(f"/tools/{place}/name", message, "nothing_to_work_on", shown(tool.name))


def _check_names(spec: Spec, reserved: Collection[str]) -> Iterator[Issue]:
    """Find names that the model could not tell apart."""
    seen: dict[str, int] = {}
    for index, tool in enumerate(spec.tools):
        pointer = f"/tools/{index}/name"
        if tool.kind != "builtin" and tool.name in reserved:
            message = "this name is reserved for a built-in tool; choose another"
            yield Issue(pointer, message, "reserved_name", shown(tool.name))
        if seen.setdefault(tool.name, index) != index:
            message = f"tool {seen[tool.name]} has this name; the model must tell them apart"
            yield Issue(pointer, message, "doubled_name", shown(tool.name))
