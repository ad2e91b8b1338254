"""The commands of `psych` by name; each is a function in a module of its own."""

from typing import Annotated

import typer

from psych_runtime._version import __version__
from psych_runtime.cli import doctor, log, new, report, runs, schema, validate
from psych_runtime.cli import hash as hash_

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Check, publish and read AI agents and their Runs. Exit codes: 0 all is well, "
    "1 a problem was found, 2 wrong usage.",
)


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"psych {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Say which.")
    ] = False,
) -> None:
    """Take the options that stand before a command."""


for _name, _command in (
    ("new", new.new),
    ("validate", validate.validate),
    ("schema", schema.schema),
    ("hash", hash_.hash_spec),
    ("runs", runs.runs),
    ("log", log.log),
    ("report", report.report),
    ("doctor", doctor.doctor),
):
    app.command(_name)(_command)
