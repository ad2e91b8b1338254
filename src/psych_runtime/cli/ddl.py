"""`psych ddl`: what a store needs in its database, as text for whoever applies it (ST-4)."""

from typing import Annotated, Literal

import typer

from psych_runtime.cli._reading import Prefix
from psych_runtime.store.migrations.script import script
from psych_runtime.store.open import check_prefix

__all__ = ["ddl"]


def ddl(
    dialect: Annotated[
        Literal["postgresql", "mysql", "mariadb", "sqlite"],
        typer.Option("--dialect", help="Which database."),
    ] = "postgresql",
    dynamodb: Annotated[
        bool, typer.Option("--dynamodb", help="CreateTable requests as JSON, instead of SQL.")
    ] = False,
    prefix: Prefix = "",
) -> None:
    """Print the tables that a store needs, for an empty database.

    The SQL keeps the ledger, too, so that a store finds its tables as if `psych migrate` had made
    them. With --dynamodb a JSON document with one CreateTable request for each table, and its
    TTL, for infrastructure code. Nothing is opened and nothing is changed.
    """
    check_prefix(prefix)
    if dynamodb:
        from psych_runtime.store.dynamodb import _ledger

        print(_ledger.ddl(prefix))
    else:
        print(script(dialect, prefix), end="")
