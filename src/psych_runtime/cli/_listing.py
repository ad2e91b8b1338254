"""Every header of a tenant, newest first, also behind one that cannot be read (R-1)."""

from collections.abc import AsyncIterator
from typing import Final, NamedTuple

from psych_runtime._reads import list_runs
from psych_runtime.errors import CorruptRow
from psych_runtime.ports.store import Store
from psych_schema.common import Scope
from psych_schema.store import RunRow

__all__ = ["ENDED", "Broken", "each_header"]

ENDED: Final = "the list of runs ends here, since nobody can tell which come behind this one"

_PAGE: Final = 500


class Broken(NamedTuple):
    """A header that cannot be read."""

    error: CorruptRow

    @property
    def ended(self) -> bool:
        """Tell whether the list ends here, although there may be more Runs."""
        return self.error.cursor is None


async def each_header(store: Store, scope: Scope) -> AsyncIterator[RunRow | Broken]:
    """Yield the headers; in place of one that cannot be read, why.

    A page with such a one is refused as a whole: smaller ones lead up to it.
    """
    cursor: str | None = None
    limit = _PAGE
    while True:
        try:
            page = await list_runs(store, scope=scope, cursor=cursor, limit=limit)
        except CorruptRow as error:
            if limit > 1:
                limit //= 2
                continue
            yield Broken(error)
            cursor, limit = error.cursor, _PAGE
        else:
            for header in page.headers:
                yield header
            cursor = page.cursor
        if cursor is None:
            return
