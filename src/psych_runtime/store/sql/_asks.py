"""What the parts of the SQL store ask with."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping

from psych_runtime.store.sql._database import Database, Param
from psych_runtime.store.sql._opened import Opened
from psych_runtime.store.sql._rows import Row

__all__ = ["Asks"]


class Asks(ABC):
    """A handle of a SQL server."""

    _database: Database
    _opened: Opened

    @abstractmethod
    async def _surely[T](
        self, act: Callable[[], Awaitable[T]], *, checks: bool = True, repeats: bool = True
    ) -> T:
        """Ask, again where that helps, in the time given."""

    @abstractmethod
    async def _ask(self, text: str, values: Mapping[str, Param]) -> list[Row]:
        """Ask with a statement that may be sent again."""
