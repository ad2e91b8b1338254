"""Commits that wait for the writer together are one (R-22): each unit has its own answer."""

import sqlite3
from collections.abc import Callable, Sequence
from typing import NamedTuple

from psych_runtime._system import System
from psych_runtime.ports.answers import Answer, Committed
from psych_runtime.ports.store import Unit
from psych_runtime.store._notices import News
from psych_runtime.store.sqlite._commit import Commit
from psych_runtime.store.sqlite._texts import Texts
from psych_runtime.store.sqlite._work import Job, Work
from psych_runtime.store.units import news_of

__all__ = ["CommitJob", "Outcome"]


class Outcome(NamedTuple):
    """The answers of a commit, and what it tells whoever waits."""

    answers: list[Answer]
    news: News | None  # None: another commit of the group tells it


class CommitJob(Job[Outcome]):
    """Units to be committed; `tell` runs in the thread once they are durable."""

    def __init__(
        self, units: Sequence[Unit], texts: Texts, system: System, tell: Callable[[News], None]
    ) -> None:
        super().__init__(self._alone, self._tell)
        self._units = units
        self._texts = texts
        self._system = system
        self._told = tell

    def _alone(self, connection: sqlite3.Connection) -> Outcome:
        answers = self._apply(connection, self._units)
        return Outcome(answers, _news(self._units, answers))

    def _apply(self, connection: sqlite3.Connection, units: Sequence[Unit]) -> list[Answer]:
        return Commit(connection, self._texts, self._system.now()).apply(units)

    def _tell(self, outcome: Outcome) -> None:
        if outcome.news is not None:
            self._told(outcome.news)

    def execute_all(self, connection: sqlite3.Connection, jobs: Sequence[Work]) -> None:
        """Commit the units of all; the first job tells the news of all."""
        commits = [job for job in jobs if isinstance(job, CommitJob)]
        units = [unit for job in commits for unit in job._units]
        answers = self._apply(connection, units)
        news: News | None = _news(units, answers)
        start = 0
        for job in commits:
            end = start + len(job._units)
            job.succeed(Outcome(answers[start:end], news))
            start, news = end, None


def _news(units: Sequence[Unit], answers: Sequence[Answer]) -> News:
    return news_of(u for u, answer in zip(units, answers, strict=True) if answer == Committed())
