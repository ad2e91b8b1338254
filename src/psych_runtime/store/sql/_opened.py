"""What all handles of one store on a SQL server share, in whatever loops they are."""

from collections.abc import Callable, Sequence
from typing import Final

from psych_runtime._system import System
from psych_runtime.store._arrivals import Arrivals
from psych_runtime.store._kept import Kept
from psych_runtime.store._notices import Hint, News, Notices
from psych_runtime.store.sql._database import Database, SqlOptions

__all__ = ["Opened"]

_REMEMBERED: Final = 4096  # Runs of which it is known what was told last


class Opened:
    """What all handles of one store share.

    Args:
        connect: makes the connections of one handle.
        system: chance, for pauses between tries.
    """

    def __init__(
        self, options: SqlOptions, connect: Callable[[SqlOptions], Database], system: System
    ) -> None:
        self.options = options
        self.connect = connect
        self.system = system
        self.name = f"{int(system.random() * 2**32):08x}"  # in what it tells other processes
        self.notices = Notices(remembers=_REMEMBERED)
        self.arrivals = Arrivals()
        self.versions = Kept()
        self.checked = False  # server and tables are for this build

    def announce(self, news: News) -> None:
        """Tell whoever waits in this process."""
        self.notices.announce(news)
        self.arrivals.hear(news)

    def hear(self, hints: Sequence[Hint], work: bool) -> None:
        """Tell whoever waits in this process what another one told."""
        self.notices.hear(hints)
        if work:
            self.arrivals.tell()
