"""`psych validate`: everything wrong with Spec files, with line, column, caret and suggestion."""

from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich.text import Text

from psych_runtime.cli.output import AsJson, console, print_view, well_formed
from psych_runtime.core.canonical import spec_hash
from psych_runtime.core.issues import Issue
from psych_runtime.core.spec_file import load_spec
from psych_runtime.errors import InvalidSpec, PayloadTooLarge
from psych_schema.view import FileLine, IssueLine, ValidationView

__all__ = ["validate"]


class _Verdict(NamedTuple):
    file: str
    hash: str | None
    issues: tuple[Issue, ...]


def validate(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Specs in YAML or JSON.")],
    as_json: AsJson = False,
) -> None:
    """Check Spec files and print every error with line, column and what was probably meant.

    What is registered where the Spec will run (tools, models) is checked when it is published.
    Exit code 1 when a file has an error. With --json the document of the published schema
    `validation.json`.
    """
    verdicts = [_judge(file) for file in files]
    if as_json:
        print_view(ValidationView(files=tuple(_line(verdict) for verdict in verdicts)))
    else:
        _print(verdicts)
    if any(verdict.issues for verdict in verdicts):
        raise typer.Exit(1)


def _judge(file: Path) -> _Verdict:
    name = well_formed(str(file))
    try:
        return _Verdict(name, spec_hash(load_spec(file)), ())
    except InvalidSpec as error:
        return _Verdict(name, None, error.issues)
    except PayloadTooLarge as error:
        message = f"{error.size_bytes} bytes, the bound is {error.bound_bytes}"
        return _Verdict(name, None, (Issue("", message, error.code),))


def _line(verdict: _Verdict) -> FileLine:
    issues = tuple(
        IssueLine(
            pointer=well_formed(issue.pointer),
            message=well_formed(issue.message),
            code=issue.code,
            value=None if issue.value is None else well_formed(issue.value),
            suggestion=issue.suggestion,
            line=issue.line,
            column=issue.column,
        )
        for issue in verdict.issues
    )
    return FileLine(file=verdict.file, valid=not issues, hash=verdict.hash, issues=issues)


def _print(verdicts: list[_Verdict]) -> None:
    out = console()
    for verdict in verdicts:
        for issue in verdict.issues:
            out.print(_styled(well_formed(issue.text(verdict.file))))
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
