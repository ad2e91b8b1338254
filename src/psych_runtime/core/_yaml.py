"""Reads YAML 1.2 (core schema) with positions, everything wrong at once, and bounded (SEC-3).

PyYAML only delivers events; what they mean is decided here: `no` and dates are texts, keys are
texts and unique, an alias may not contain itself or make the document larger than it may be.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

import yaml
from pydantic import JsonValue

from psych_runtime.core._locate import Document, Place, Source, pointer_of
from psych_runtime.core._numbers import MAX_DIGITS, Refused, safe_number
from psych_runtime.core._redact import shown, shown_in
from psych_runtime.core._yaml_faults import explain
from psych_runtime.core.issues import Issue

__all__ = ["read_yaml_text"]

type _Loader = type[yaml.CSafeLoader] | type[yaml.SafeLoader]

_LOADER: Final[_Loader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_UNPRINTABLE: Final = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS: Final = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_WHOLE: Final = (
    (re.compile(r"[-+]?[0-9]+"), 10),
    (re.compile(r"0o[0-7]+"), 8),
    (re.compile(r"0x[0-9a-fA-F]+"), 16),
)
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")


class _Broken(Exception):
    """The text says nothing from here on."""


class _Node(NamedTuple):
    """A composed value with what an alias of it costs."""

    value: JsonValue
    place: Place
    size_bytes: int
    height: int  # of lists and mappings, itself included; a scalar has 0


class _Frame:
    """A list or mapping that is open."""

    def __init__(self, event: yaml.CollectionStartEvent, place: Place) -> None:
        self.value: dict[str, JsonValue] | list[JsonValue] = (
            {} if isinstance(event, yaml.MappingStartEvent) else []
        )
        self.place = place
        self.anchor: str | None = event.anchor
        self.size_bytes = 1
        self.height = 1
        self.expects_key = isinstance(self.value, dict)
        self.key: str | None = None  # None: between two members
        self.drops = False  # the key was refused, so its value is read and left out

    def add(self, node: _Node) -> None:
        """Take the next value."""
        self.size_bytes += node.size_bytes
        self.height = max(self.height, node.height + 1)
        if isinstance(self.value, list):
            self.value.append(node.value)
            self.place.items.append(node.place)
            return
        self.expects_key = True
        if self.key is not None and not self.drops:
            self.value[self.key] = node.value
            self.place.members[self.key] = node.place
        self.key = None


def read_yaml_text(
    text: str, *, max_bytes: int, max_depth: int, loader: _Loader = _LOADER
) -> Document:
    """Read one YAML document; aliases count as often as they stand there. Raises nothing."""
    reader = _Reader(text, max_bytes=max_bytes, max_depth=max_depth)
    try:
        value, place = reader.read(loader)
    except _Broken:
        return Document(reader.source, None, Place(0), tuple(reader.issues), readable=False)
    return Document(reader.source, value, place, tuple(reader.issues), readable=True)


class _Reader:
    def __init__(self, text: str, *, max_bytes: int, max_depth: int) -> None:
        self.source = Source(text)
        self.issues: list[Issue] = []
        self._text = text
        self._max_bytes = max_bytes
        self._max_depth = max_depth
        self._open: list[_Frame] = []
        self._anchors: dict[str, _Node | None] = {}  # None: still open
        self._root: _Node | None = None
        self._documents = 0

    def read(self, loader: _Loader) -> tuple[JsonValue, Place]:
        if bad := _UNPRINTABLE.search(self._text):
            message = f"the character U+{ord(bad.group()):04X} may not stand in YAML"
            raise self._broken(message, bad.start())
        for event in self._events(loader):
            self._take(event)
        if self._root is None:
            raise self._broken("there is nothing in it", 0, code="empty")
        return self._root.value, self._root.place

    def _events(self, loader: _Loader) -> Iterator[yaml.Event]:
        try:
            yield from yaml.parse(self._text, Loader=loader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            offset = 0 if mark is None else min(mark.index, len(self._text))
            raise self._broken(explain(error, self._text, offset), offset) from None

    def _take(self, event: yaml.Event) -> None:
        at = 0 if event.start_mark is None else event.start_mark.index
        if isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                message = "a second document starts; a file holds one"
                raise self._broken(message, at, code="several_documents")
        elif isinstance(event, yaml.CollectionStartEvent):
            self._start(event, at)
        elif isinstance(event, yaml.CollectionEndEvent):
            frame = self._open.pop()
            node = _Node(frame.value, frame.place, frame.size_bytes, frame.height)
            self._finish(node, frame.anchor, at)
        elif isinstance(event, yaml.ScalarEvent):
            self._scalar(event, at)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event, at)

    def _start(self, event: yaml.CollectionStartEvent, at: int) -> None:
        if self._key_frame() is not None:
            raise self._broken("a key must be a text", at, code="not_text_key")
        if len(self._open) == self._max_depth:
            raise self._broken(f"nested deeper than {self._max_depth}", at, code="too_deep")
        self._check_tag(event.tag, at)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        self._open.append(_Frame(event, Place(at)))

    def _scalar(self, event: yaml.ScalarEvent, at: int) -> None:
        self._check_tag(event.tag, at)
        size_bytes = len(event.value) + 1
        frame = self._key_frame()
        if frame is None:
            value = self._resolve(event, at)
            self._finish(_Node(value, Place(at), size_bytes, 0), event.anchor, at)
            return
        frame.size_bytes += size_bytes
        self._key(frame, event, at)
        if event.anchor is not None:
            self._anchors[event.anchor] = _Node(event.value, Place(at), size_bytes, 0)

    def _key(self, frame: _Frame, event: yaml.ScalarEvent, at: int) -> None:
        """Take the next key of a mapping, or say why it is none."""
        key = event.value
        plain = event.implicit[0]
        frame.key = key
        frame.expects_key = False
        frame.drops = True
        if plain and key == "<<":
            message = "YAML 1.2 has no merge keys; write the fields out, or alias a whole value"
            self._fault(message, at, code="yaml_merge")
        elif plain and not isinstance(_core(key), str):
            message = "a key must be a text; put it in quotes"
            self._fault(message, at, code="not_text_key", value=shown(key))
        elif _SURROGATE.search(key):
            self._fault("half of a surrogate pair is no character", at, code="not_unicode")
        elif key in frame.place.keys:
            self._fault("this key is there already", at, code="duplicate_key", value=shown(key))
        else:
            frame.drops = False
            frame.place.keys[key] = at

    def _alias(self, event: yaml.AliasEvent, at: int) -> None:
        name = str(event.anchor)
        if self._key_frame() is not None:
            raise self._broken("an alias cannot be a key", at, code="not_text_key")
        node = self._anchors.get(name)
        if node is None:
            problem = f"stands within &{name}" if name in self._anchors else "has no anchor before"
            self._fault(f"the alias *{name} {problem}", at, code="yaml_alias")
            node = _Node(None, Place(at), 1, 0)
        self._finish(node, None, at)

    def _finish(self, node: _Node, anchor: str | None, at: int) -> None:
        """Give a whole value to what holds it."""
        if anchor is not None:
            self._anchors[anchor] = node
        if not self._open:
            self._root = node
            return
        if len(self._open) + node.height > self._max_depth:
            message = f"aliases nest it deeper than {self._max_depth}"
            raise self._broken(message, at, code="too_deep")
        frame = self._open[-1]
        if frame.size_bytes + node.size_bytes > self._max_bytes:
            message = f"aliases make it larger than {self._max_bytes} bytes"
            raise self._broken(message, at, code="yaml_alias")
        frame.add(node)

    def _resolve(self, event: yaml.ScalarEvent, at: int) -> JsonValue:
        value = _core(event.value) if event.implicit[0] else event.value
        if isinstance(value, Refused):
            path = [part for part in self._path() if isinstance(part, str)]
            text = shown_in(path, event.value).strip('"')
            self._fault(value.message, at, code=value.code, value=text)
            return None
        if isinstance(value, str) and _SURROGATE.search(value):
            self._fault("half of a surrogate pair is no character", at, code="not_unicode")
            return None
        return value

    def _check_tag(self, tag: str | None, at: int) -> None:
        if tag is not None:
            message = "tags are not read; write the value as it is"
            self._fault(
                message, at, code="yaml_tag", value=shown(tag.replace("tag:yaml.org,2002:", "!!"))
            )

    def _key_frame(self) -> _Frame | None:
        """Return the mapping whose key comes next, None when a value comes."""
        frame = self._open[-1] if self._open else None
        return frame if frame is not None and frame.expects_key else None

    def _path(self) -> list[str | int]:
        path: list[str | int] = []
        for frame in self._open:
            if isinstance(frame.value, list):
                path.append(len(frame.value))
            elif frame.key is not None:
                path.append(frame.key)
        return path

    def _fault(self, message: str, at: int, *, code: str, value: str | None = None) -> None:
        issue = Issue(pointer_of(self._path()), message, code, value)
        self.issues.append(self.source.locate(issue, at))

    def _broken(self, message: str, at: int, *, code: str = "syntax") -> _Broken:
        self._fault(message, at, code=code)
        return _Broken()


def _core(text: str) -> str | int | float | bool | None | Refused:
    """Return what a plain scalar means in the core schema of YAML 1.2."""
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if _NOT_FINITE.fullmatch(text):
        return Refused("not_finite", "NaN and infinite numbers cannot be kept")
    for pattern, base in _WHOLE:
        if pattern.fullmatch(text):
            return _many(text) or safe_number(int(text, base))
    if _FLOAT.fullmatch(text):
        return _many(text) or safe_number(float(text))
    return text


def _many(text: str) -> Refused | None:
    if len(text) <= MAX_DIGITS:
        return None
    return Refused("number_too_large", f"a number may have {MAX_DIGITS} digits")
