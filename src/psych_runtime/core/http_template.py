"""Texts with arguments in them, and the URLs that HTTP tools may have (TOOL-4).

`{name}` stands for an argument, `{{` and `}}` for braces. Of a URL an argument decides a part of
the path and nothing else: scheme, host and port are the Spec's.
"""

import re
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address
from typing import Final, NamedTuple
from urllib.parse import unquote

from pydantic import JsonValue

__all__ = [
    "BadTemplate",
    "Slot",
    "Template",
    "UrlTemplate",
    "body_templates",
    "read_template",
    "read_url",
]

_TOKEN: Final = re.compile(r"\{\{|\}\}|\{([a-zA-Z0-9_.-]{1,64})\}|([{}])")
_URL: Final = re.compile(r"(https?)://([^/?#]*)(.*)", re.DOTALL)
_AUTHORITY: Final = re.compile(r"([a-zA-Z0-9_.-]+|\[[0-9a-fA-F:.]+\])(?::([0-9]{1,5}))?")
_PATH_TEXT: Final = re.compile(r"(?:[a-zA-Z0-9._~!$&'()*+,;=:@-]|%[0-9a-fA-F]{2})*")
_LONGEST_LABEL: Final = 63
_MOST_PORTS: Final = 65_535


class BadTemplate(ValueError):
    """A text that is no template, or a URL that no tool may have; says what to write."""


class Slot(NamedTuple):
    """Where an argument goes."""

    name: str


type Template = tuple[str | Slot, ...]
"""Texts and arguments in their order; no two texts beside each other."""


class UrlTemplate(NamedTuple):
    """A URL whose path has arguments in it."""

    origin: str  # scheme, host and port, as written
    segments: tuple[Template, ...]  # of the path; its texts are quoted already


def read_template(text: str) -> Template:
    """Return what `text` says. BadTemplate: a brace stands alone, or no name is in it."""
    pieces: list[str | Slot] = []
    literal, end = "", 0
    for match in _TOKEN.finditer(text):
        literal += text[end : match.start()]
        end = match.end()
        name, alone = match.groups()
        if alone:
            raise BadTemplate(
                f"has a {alone!r} that belongs to no {{name}}; write {alone * 2} for a brace"
            )
        if name is None:
            literal += match.group()[0]
            continue
        pieces += [literal, Slot(name)] if literal else [Slot(name)]
        literal = ""
    literal += text[end:]
    return (*pieces, literal) if literal else tuple(pieces)


def read_url(text: str) -> UrlTemplate:
    """Return what a URL says. BadTemplate: it is none, or an argument stands outside its path."""
    match = _URL.fullmatch(text)
    if match is None:
        raise BadTemplate("must begin with https:// or http:// and a host, without arguments")
    scheme, authority, path = match.groups()
    _check_authority(authority)
    if "?" in path:
        raise BadTemplate("has a query; write its fields under query")
    if "#" in path:
        raise BadTemplate("has a fragment, which no server sees; take it out")
    segments = tuple(map(_segment, path.split("/")[1:]))
    if () in segments[:-1]:
        raise BadTemplate("has an empty segment in its path (//); take one / out")
    return UrlTemplate(f"{scheme}://{authority}", segments)


def _check_authority(authority: str) -> None:
    if "{" in authority or "}" in authority:
        raise BadTemplate("has an argument in its host or port; arguments stand in the path only")
    if "@" in authority:
        raise BadTemplate("has a user in it; write a credential")
    match = _AUTHORITY.fullmatch(authority)
    if match is None:
        problem = "has no host that can be read; write a name in ASCII, or an address"
        raise BadTemplate(f"{problem}, and a port of digits perhaps")
    if not match[1].startswith("["):
        _check_name(match[1])
    port = match[2]
    if port is not None and not 1 <= int(port) <= _MOST_PORTS:
        raise BadTemplate(f"has the port {port}; ports are 1 to {_MOST_PORTS}")


def _check_name(host: str) -> None:
    labels = host.split(".")
    if not all(0 < len(one) <= _LONGEST_LABEL and one.strip("-") == one for one in labels):
        raise BadTemplate(
            "has a host with a part that is empty, too long, or begins or ends with -"
        )
    if labels[-1].isdigit() or labels[-1][:2].lower() == "0x":
        try:
            IPv4Address(host)
        except ValueError:
            raise BadTemplate("has an address that is not written as four numbers") from None


def _segment(text: str) -> Template:
    pieces = read_template(text)
    literal = "".join(one for one in pieces if isinstance(one, str))
    if not _PATH_TEXT.fullmatch(literal):
        raise BadTemplate("has a character in its path that must be quoted, as %20 for a blank")
    if pieces and all(isinstance(one, str) for one in pieces) and unquote(literal) in (".", ".."):
        raise BadTemplate("has a segment . or .. in its path; write where it leads")
    return pieces


def body_templates(
    body: JsonValue, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield each text of a body, and where it stands in it."""
    match body:
        case str():
            yield path, body
        case list():
            for place, one in enumerate(body):
                yield from body_templates(one, (*path, place))
        case Mapping():
            for name, one in body.items():
                yield from body_templates(one, (*path, name))
