"""What a docstring says of a tool and its parameters: Google, NumPy or reST style (TOOL-1)."""

import re
from collections.abc import Iterator
from inspect import cleandoc
from typing import Final, NamedTuple

__all__ = ["Docstring", "read_docstring"]

_ARGUMENTS: Final = frozenset(
    {"args", "arguments", "parameters", "params", "keyword args", "keyword arguments"}
    | {"other parameters"}
)
_OTHERS: Final = frozenset(
    {"attributes", "example", "examples", "note", "notes", "raises", "references", "return"}
    | {"returns", "see also", "todo", "warning", "warnings", "warns", "yield", "yields"}
)
_GOOGLE: Final = re.compile(r"([A-Za-z][A-Za-z ]*):\s*$")
_UNDERLINE: Final = re.compile(r"(-{3,}|={3,})\s*$")
_FIELD: Final = re.compile(r":[a-zA-Z]+(\s[^:]*)?:")
_REST: Final = re.compile(
    r":(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)$"
)
_ENTRY: Final = re.compile(r"\*{0,2}(\w+)(?:\s*\(.*?\))?\s*:(?:\s+(.*))?$")
_NUMPY_ENTRY: Final = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$")


class Docstring(NamedTuple):
    """The text before the first section, and a text for each described parameter."""

    description: str
    parameters: dict[str, str]


def read_docstring(text: str | None) -> Docstring:
    """Take a docstring apart; what is in no known form belongs to the description."""
    lines = cleandoc(text or "").splitlines()
    start = next((at for at in range(len(lines)) if _is_section(lines, at)), len(lines))
    found: dict[str, str] = {}
    for name, words in _entries(lines, start):
        described = " ".join(" ".join(words).split())
        if described:
            found.setdefault(name, described)
    return Docstring("\n".join(lines[:start]).strip(), found)


def _is_section(lines: list[str], at: int) -> bool:
    return _section(lines, at) is not None or _FIELD.match(lines[at]) is not None


def _section(lines: list[str], at: int) -> str | None:
    """Return the lower-case title of the section that line `at` begins."""
    line = lines[at]
    google = _GOOGLE.match(line)
    if google and google[1].lower() in _ARGUMENTS | _OTHERS:
        return google[1].lower()
    underlined = at + 1 < len(lines) and _UNDERLINE.match(lines[at + 1])
    if underlined and line.strip().lower() in _ARGUMENTS | _OTHERS:
        return line.strip().lower()
    return None


def _entries(lines: list[str], start: int) -> Iterator[tuple[str, list[str]]]:
    at = start
    while at < len(lines):
        title = _section(lines, at)
        end = next((n for n in range(at + 1, len(lines)) if _is_section(lines, n)), len(lines))
        if title in _ARGUMENTS:
            underlined = at + 1 < end and _UNDERLINE.match(lines[at + 1]) is not None
            yield from _numpy(lines[at + 2 : end]) if underlined else _google(lines[at + 1 : end])
        elif title is None and (field := _REST.match(lines[at])):
            yield field[1], [field[2], *_until_blank(lines[at + 1 : end])]
        at = end


def _google(block: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Read entries like `name (type): text`; deeper lines go on with the text."""
    indent = min((_indent(line) for line in block if line.strip()), default=0)
    name, words = None, list[str]()
    for line in block:
        entry = _ENTRY.match(line.strip()) if _indent(line) == indent else None
        if entry:
            if name is not None:
                yield name, words
            name, words = entry[1], [entry[2] or ""]
        else:
            words.append(line)
    if name is not None:
        yield name, words


def _numpy(block: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Read entries like `name : type` with indented text below."""
    names, words = list[str](), list[str]()
    for line in block:
        entry = _NUMPY_ENTRY.match(line) if _indent(line) == 0 else None
        if entry:
            yield from ((name, words) for name in names)
            names = [name.strip().lstrip("*") for name in entry[1].split(",")]
            words = []
        else:
            words.append(line)
    yield from ((name, words) for name in names)


def _until_blank(lines: list[str]) -> Iterator[str]:
    for line in lines:
        if not line.strip():
            return
        yield line


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
