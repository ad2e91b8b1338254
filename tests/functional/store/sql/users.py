"""Users of SQL servers that may do less than the superuser."""

from urllib.parse import urlsplit

from tests.stores.tables import SqlTables

__all__ = ["as_user", "is_postgresql", "make_user"]


def is_postgresql(tables: SqlTables) -> bool:
    return tables.url.startswith("postgresql")


def as_user(tables: SqlTables, user: str, password: str) -> str:
    """Return the URL of `tables` for somebody else."""
    parts = urlsplit(tables.url)
    return parts._replace(netloc=f"{user}:{password}@{parts.hostname}:{parts.port}").geturl()


async def make_user(tables: SqlTables, name: str, *grants: str) -> None:
    """Make a user whose password is "right"."""
    if is_postgresql(tables):
        create = (
            f"DO $$ BEGIN CREATE ROLE {name} LOGIN PASSWORD 'right'; "
            "EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
        )
        await tables.execute([create, *(f"GRANT {grant} TO {name}" for grant in grants)])
    else:
        create = f"CREATE USER IF NOT EXISTS '{name}'@'%' IDENTIFIED BY 'right'"
        await tables.execute([create, *(f"GRANT {grant} TO '{name}'@'%'" for grant in grants)])
