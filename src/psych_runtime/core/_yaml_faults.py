"""What is wrong with YAML, in our words: PyYAML's two parsers say the same thing in two ways."""

from typing import Final

import yaml

__all__ = ["explain"]

_QUOTE_IT: Final = "a text that holds ': ' needs quotes, and each key its own line and indent"
_NO_PART: Final = "this does not continue what stands above; check indent and quotes"
_FAULTS: Final[tuple[tuple[str, str], ...]] = (
    ("mapping values are not allowed", f"':' cannot stand here; {_QUOTE_IT}"),
    ("unexpected end of stream", "this quoted text has no end"),
    ("unknown escape character", "no such escape; write \\\\ for a backslash"),
    ("Unicode character escape", "no such character; write it as it is"),
    ("escape sequence of", "an escape needs hexadecimal digits"),
    ("maximum nesting depth", "nested too deep"),
    ("expected ',' or ']'", "expected ',' or ']' in this list"),
    ("expected ',' or '}'", "expected ',' or '}' in this mapping"),
    ("could not find expected ':'", "expected ':' after the key"),
    ("<document start>", "the document has ended; something follows"),
    ("incompatible YAML document", "YAML 1.2 is read; leave the %YAML line out"),
    ("expected <block end>", "this does not continue what stands above; check indent and quotes"),
    (
        "did not find expected key",
        "this does not continue what stands above; check indent and quotes",
    ),
    ("block entries are not allowed", "a list item cannot start here; put it on its own line"),
    ("sequence entries are not allowed", "a list item cannot start here; put it on its own line"),
)


def explain(error: yaml.MarkedYAMLError, text: str, offset: int) -> str:
    """Return what is wrong at `offset` and what to do about it."""
    problem = error.problem or error.context or "cannot be read"
    here = text[offset : offset + 1]
    if here == "\t" or "tab character" in problem:
        return "a tab cannot indent; use spaces"
    if "cannot start any token" in problem:
        return f"{here!r} cannot start a text; put it in quotes"
    if "block collection" in (error.context or ""):
        return "expected '- ' here, as in the list above, or another indent"
    for part, words in _FAULTS:
        if part in problem:
            return words
    return f"cannot be read as YAML: {problem}"
