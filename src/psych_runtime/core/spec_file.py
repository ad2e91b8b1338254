"""Reads Specs that people write: YAML or JSON, a file or a text, with positions (SPEC-4)."""

import re
from pathlib import Path
from typing import Final

from psych_runtime.core._json_text import read_json_text
from psych_runtime.core._locate import Document
from psych_runtime.core._yaml import read_yaml_text
from psych_runtime.core.canonical import MAX_SPEC_BYTES
from psych_runtime.core.foreign import MAX_DEPTH, decode_text
from psych_runtime.core.issues import Issue
from psych_runtime.core.validation import read_document
from psych_runtime.errors import InvalidPayload, InvalidSpec, PayloadTooLarge
from psych_schema.spec import Spec

__all__ = ["load_spec"]

_SUFFIXES: Final = (".json", ".yaml", ".yml")
_LONGEST_NAME: Final = 1_000
_JSON: Final = re.compile(r'[ \t\r\n]*(?:\[|\{[ \t\r\n]*["}])')


def load_spec(path_or_text: str | Path) -> Spec:
    """Return the Spec in a YAML or JSON file, or in a text.

    A Path is a file, and so is a text of one line that names one or ends in .yaml, .yml or
    .json. A text that begins like a JSON object with a quoted key is JSON, any other YAML 1.2:
    `no`, `on` and dates are texts; tags, merge keys and several documents are refused.

    Raises:
        InvalidSpec: `issues` lists everything that is wrong, each with line and column; also
            when the file is missing or cannot be read.
        PayloadTooLarge: more than 1 MiB; nothing was parsed.
    """
    path = _file_of(path_or_text)
    if path is None:
        return _read(str(path_or_text), name="spec", is_json=None)
    name = str(path)
    return _read(_content(path), name=name, is_json=path.suffix.lower() == ".json" or None)


def _file_of(path_or_text: str | Path) -> Path | None:
    """Return the file that is meant, None when it is a text."""
    if isinstance(path_or_text, Path):
        return path_or_text
    if len(path_or_text) > _LONGEST_NAME or "\n" in path_or_text or "\r" in path_or_text:
        return None
    path = Path(path_or_text)
    if path.suffix.lower() in _SUFFIXES:
        return path
    try:
        return path if path.is_file() else None
    except (OSError, ValueError):
        return None


def _content(path: Path) -> bytes:
    """Return what the file holds, up to one byte more than a Spec may have."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_SPEC_BYTES + 1)
            size_bytes = max(len(content), path.stat().st_size)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        message = f"cannot be read: {reason.lower()}"
        raise InvalidSpec([Issue("", message, "unreadable_file")], name=str(path)) from None
    if size_bytes > MAX_SPEC_BYTES:
        raise PayloadTooLarge(what=str(path), size_bytes=size_bytes, bound_bytes=MAX_SPEC_BYTES)
    return content


def _read(content: str | bytes, *, name: str, is_json: bool | None) -> Spec:
    try:
        text = decode_text(content, what=name, max_bytes=MAX_SPEC_BYTES)
    except InvalidPayload as error:
        issue = Issue("", error.problem, "not_utf8", line=error.line, column=error.column)
        raise InvalidSpec([issue], name=name) from None
    if is_json or (is_json is None and _JSON.match(text)):
        document = read_json_text(text, max_depth=MAX_DEPTH, whole=True)
    else:
        document = read_yaml_text(text, max_bytes=MAX_SPEC_BYTES, max_depth=MAX_DEPTH)
    if isinstance(document.value, str) and name == "spec":
        document = _neither(document)
    return read_document(document, name=name, is_new=True)


def _neither(document: Document) -> Document:
    """Say of a bare word what it is not; somebody may have meant a file."""
    message = "neither a Spec nor the name of a file that exists"
    issue = document.locate(Issue("", message, "wrong_type"))
    return document._replace(issues=(issue,), readable=False)
