"""Shows foreign values in messages: short, printable, and never a secret (SPEC-4)."""

import json
import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Final

__all__ = ["REDACTED", "is_secret_name", "kind_of", "mask_line", "printable", "shown", "shown_in"]

REDACTED: Final = "[redacted]"
_SHOWN_CHARACTERS: Final = 60
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SECRET_WORDS: Final = frozenset(
    {
        "apikey",
        "auth",
        "authorization",
        "bearer",
        "cookie",
        "credential",
        "credentials",
        "passphrase",
        "passwd",
        "password",
        "pwd",
        "secret",
        "secrets",
        "token",
    }
)
_SECRET_PAIRS: Final = frozenset(
    {("api", "key"), ("access", "key"), ("private", "key"), ("signing", "key"), ("auth", "key")}
)
# What looks like a secret wherever it stands: known prefixes, PEM, JWT, and long mixed runs.
_SECRET_TEXT: Final = re.compile(
    r"(?:sk|pk|rk)[-_][A-Za-z0-9_-]{8,}"
    r"|gh[a-z]_[A-Za-z0-9]{8,}|github_pat_\w{8,}|glpat-[\w-]{8,}"
    r"|xox[a-z]-[\w-]{8,}|AKIA[0-9A-Z]{12,}|AIza[\w-]{20,}"
    r"|eyJ[\w-]{8,}\.[\w.-]*"
    r"|-----BEGIN.*"
    r"""|(?i:\b(?:bearer|basic)\s+[^\s"',;}]{4,})"""
    r"|(?<=://)[^/\s:@]*:[^/\s@]+(?=@)"
    r"|(?<![\w+/=])(?=[\w+/=]*[0-9])(?=[\w+/=]*[A-Z])(?=[\w+/=]*[a-z])[\w+/=]{24,}+"
    r"|(?<![\w+/=])(?=[0-9a-f]*[a-f])(?=[0-9a-f]*[0-9])[0-9a-f]{32,}+"
)
_PAIR: Final = re.compile(
    r"""(?P<key>"[^"\\]*+"|'[^']*+'|(?<![\w.-])[\w.-]++)(?P<colon>\s*+[:=]\s*+)"""
    r"""(?P<value>"(?:[^"\\]|\\.)*+"|'[^']*+'|[^\s].*)"""
)


def is_secret_name(name: str) -> bool:
    """Say whether a value under `name` is likely to be a secret (`api_key`, `authToken`)."""
    words = [word.lower() for word in _WORDS.findall(name[:256])]
    return not _SECRET_WORDS.isdisjoint(words) or not _SECRET_PAIRS.isdisjoint(pairwise(words))


def printable(text: str) -> str:
    """Return `text` with what a terminal would obey, or cannot print, replaced one by one."""
    return "".join(c if c.isprintable() or c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


def shown(value: object) -> str:
    """Return `value` as a message may show it: JSON, short; lists and mappings by their size."""
    if isinstance(value, str):
        if _SECRET_TEXT.search(value[:10_000]):
            return REDACTED
        cut = value if len(value) <= _SHOWN_CHARACTERS else value[:_SHOWN_CHARACTERS] + "..."
        return printable(json.dumps(cut, ensure_ascii=False))
    if isinstance(value, dict):
        return f"a mapping of {len(value)}"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int):
        return str(value) if value.bit_length() < 200 else "a number of many digits"
    return repr(value) if isinstance(value, float) else f"a {type(value).__name__}"


def kind_of(value: object) -> str:
    """Return what kind of JSON it is, as people call it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, str):
        return "a text"
    if isinstance(value, dict):
        return "a mapping"
    return "a list" if isinstance(value, list) else "a number"


def shown_in(path: Iterable[str], value: object) -> str:
    """Return `value` as `shown`, redacted when a name on its way there says that it is a secret."""
    return REDACTED if any(map(is_secret_name, path)) else shown(value)


def mask_line(line: str) -> str:
    """Return a source line with its secrets starred out, as long as it was; carets stay right."""
    starred = _SECRET_TEXT.sub(lambda match: "*" * len(match.group()), line)
    start = 0
    while pair := _PAIR.search(starred, start):
        if is_secret_name(pair["key"]):
            value = pair["value"]
            starred = starred[: pair.start("value")] + "*" * len(value) + starred[pair.end() :]
            start = pair.end()
        else:
            start = pair.end("colon")
    return printable(starred)
