"""`psych validate`: everything wrong with Spec files, with line, column, caret and suggestion."""

from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from pydantic import JsonValue
from rich.text import Text

from psych_runtime.cli.output import console, print_json
from psych_runtime.core.canonical import spec_hash
from psych_runtime.core.issues import Issue
from psych_runtime.core.spec_file import load_spec
from psych_runtime.errors import InvalidSpec, PayloadTooLarge

__all__ = ["validate"]


class _Verdict(NamedTuple):
    file: str
    hash: str | None
    issues: tuple[Issue, ...]


def validate(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Specs in YAML or JSON.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Check Spec files and print every error with line, column and what was probably meant.

    What is registered where the Spec will run (tools, models) is checked when it is published.
    Exit code 1 when a file has an error.
    """
    verdicts = [_judge(file) for file in files]
    if as_json:
        print_json({"files": [_as_json(verdict) for verdict in verdicts]})
    else:
        _print(verdicts)
    if any(verdict.issues for verdict in verdicts):
        raise typer.Exit(1)


def _judge(file: Path) -> _Verdict:
    try:
        return _Verdict(str(file), spec_hash(load_spec(file)), ())
    except InvalidSpec as error:
        return _Verdict(str(file), None, error.issues)
    except PayloadTooLarge as error:
        message = f"{error.size_bytes} bytes, the bound is {error.bound_bytes}"
        return _Verdict(str(file), None, (Issue("", message, error.code),))


def _as_json(verdict: _Verdict) -> JsonValue:
    return {
        "file": verdict.file,
        "valid": not verdict.issues,
        "hash": verdict.hash,
        "issues": [
            {
                "pointer": issue.pointer,
                "message": issue.message,
                "code": issue.code,
                "value": issue.value,
                "suggestion": issue.suggestion,
                "line": issue.line,
                "column": issue.column,
            }
            for issue in verdict.issues
        ],
    }


def _print(verdicts: list[_Verdict]) -> None:
    out = console()
    for verdict in verdicts:
        for issue in verdict.issues:
            out.print(_styled(issue.text(verdict.file)))
        if not verdict.issues:
            out.print(Text.assemble((f"{verdict.file}: ok", "green")))
    found = sum(len(verdict.issues) for verdict in verdicts)
    if found:
        bad = sum(bool(verdict.issues) for verdict in verdicts)
        errors = "1 error" if found == 1 else f"{found} errors"
        out.print(Text(f"{errors} in {bad} of {len(verdicts)} files", style="bold red"))


def _styled(text: str) -> Text:
    """Return an issue with its head bold and its caret red."""
    head, _, rest = text.partition("\n")
    line, _, caret = rest.partition("\n")
    parts = [(head, "bold")]
    if rest:
        parts += [(f"\n{line}", "dim"), (f"\n{caret}", "red")]
    return Text.assemble(*parts)
