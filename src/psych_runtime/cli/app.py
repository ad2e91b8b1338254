"""The commands of `psych` by name; the module of each is loaded when it is used.

What one command needs (a store, rich, every record) does not slow down the others.
"""

from typing import Annotated, Final

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from psych_runtime._version import __version__

__all__ = ["app"]

_NAMES: Final = (
    "new",
    "validate",
    "schema",
    "hash",
    "migrate",
    "ddl",
    "runs",
    "log",
    "report",
    "verify",
    "doctor",
)


class _Commands(TyperGroup):
    """Knows the names; loads a command to run it, and all of them to list or suggest them."""

    def list_commands(self, ctx: object) -> list[str]:
        return list(_NAMES)

    def get_command(self, ctx: object, cmd_name: str) -> TyperCommand | None:
        if cmd_name in _NAMES:
            return self._loaded(cmd_name)
        for name in _NAMES:  # the error suggests what it finds in `commands`
            self._loaded(name)
        return None

    def _loaded(self, name: str) -> TyperCommand:
        if name not in self.commands:
            self.commands[name] = get_command(_load(name))
        command = self.commands[name]
        assert isinstance(command, TyperCommand)
        return command


def _load(name: str) -> typer.Typer:
    """Return an application of one command; its module is imported here."""
    one = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    add = one.command(name)
    match name:
        case "new":
            from psych_runtime.cli.new import new

            add(new)
        case "validate":
            from psych_runtime.cli.validate import validate

            add(validate)
        case "schema":
            from psych_runtime.cli.schema import schema

            add(schema)
        case "hash":
            from psych_runtime.cli.hash import hash_spec

            add(hash_spec)
        case "migrate":
            from psych_runtime.cli.migrate import migrate

            add(migrate)
        case "ddl":
            from psych_runtime.cli.ddl import ddl

            add(ddl)
        case "runs":
            from psych_runtime.cli.runs import runs

            add(runs)
        case "log":
            from psych_runtime.cli.log import log

            add(log)
        case "report":
            from psych_runtime.cli.report import report

            add(report)
        case "verify":
            from psych_runtime.cli.verify import verify

            add(verify)
        case "doctor":
            from psych_runtime.cli.doctor import doctor

            add(doctor)
    return one


app = typer.Typer(
    cls=_Commands,
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
