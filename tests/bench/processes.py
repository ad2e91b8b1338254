"""Another process of the bench: it lives by a coroutine, and is spoken to through a pipe."""

import asyncio
import multiprocessing
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Concatenate

__all__ = ["Other", "another"]

_END_SECONDS = 5.0

type Live[**P] = Callable[Concatenate[Connection, P], Coroutine[object, object, None]]
"""What a process does, a function of a module; it ends when it receives None."""


class Other:
    """A process, as we have it."""

    def __init__(self, process: BaseProcess, pipe: Connection) -> None:
        self.pipe = pipe
        self._process = process

    def tell(self, word: object) -> None:
        """Say a word to it."""
        self.pipe.send(word)

    async def hear(self) -> object:
        """Return what it says next. Raises EOFError when it has ended."""
        word: object = await asyncio.to_thread(self.pipe.recv)
        return word

    async def seconds(self) -> float:
        """Return the number that it says next."""
        word = await self.hear()
        if not isinstance(word, float):
            raise TypeError(word)
        return word

    def kill(self) -> None:
        """Kill it with -9."""
        self._process.kill()
        self._process.join()

    def end(self) -> None:
        """Let it end; kill it if it does not."""
        if self._process.is_alive():
            self.pipe.send(None)
            self._process.join(_END_SECONDS)
        if self._process.is_alive():
            self.kill()
        self.pipe.close()


@contextmanager
def another[**P](live: Live[P], *args: P.args, **options: P.kwargs) -> Iterator[Other]:
    """Start a process; it ends with the block."""
    context = multiprocessing.get_context("spawn")
    ours, its = context.Pipe()
    lives = partial(live, its, *args, **options)
    process = context.Process(target=_serve, args=(lives,), daemon=True)
    process.start()
    its.close()
    other = Other(process, ours)
    try:
        yield other
    finally:
        other.end()


def _serve(live: Callable[[], Coroutine[object, object, None]]) -> None:
    asyncio.run(live())
