"""What other processes do to a store in tests: `python -m tests.functional.store.program`.

Where a task needs several processes it forks them, so that each test pays for one start.
"""

import asyncio
import os
import signal
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from multiprocessing import get_context
from typing import TextIO

from psych_runtime.errors import PsychError
from psych_runtime.ports.answers import Committed
from psych_runtime.ports.store import Store
from psych_runtime.store.contract._build import admit, change, new_id, unit
from psych_runtime.store.open import open_store

TENANT = "acme"
_BARRIER_SECONDS = 60


def say(text: str) -> None:
    """Tell whoever started this process, at once."""
    print(text, flush=True)


def fork(url: str, run: Callable[[Store], Awaitable[None]], prefix: str = "") -> tuple[int, TextIO]:
    """Run on the store in a child; return its id and what it says."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child:
        os.close(write_end)
        return child, os.fdopen(read_end)
    os.close(read_end)
    os.dup2(write_end, 1)
    code = 1
    try:
        asyncio.run(_on(url, run, prefix))
        code = 0
    finally:
        os._exit(code)


async def _on(url: str, run: Callable[[Store], Awaitable[None]], prefix: str = "") -> None:
    async with open_store(url, prefix=prefix) as store:
        await run(store)


def race(url: str, run_id: str, count: int) -> None:
    """Let two processes commit `count` records each at the head."""

    async def one(store: Store) -> None:
        written = refused = 0
        while written < count:
            head = (await store.header(TENANT, run_id)).head
            answers = await store.commit([unit(change(run_id, head))])
            written += answers == [Committed()]
            refused += answers != [Committed()]
        say(f"{written} {refused}")

    children = [fork(url, one) for _ in range(2)]
    for child, said in children:
        say(said.readline().strip())
        os.waitpid(child, 0)


def kill(url: str, *lines: int) -> None:
    """Kill a writer with -9 after it has said so many lines, once for each number."""
    for count in lines:
        child, said = fork(url, write_for_ever)
        names = said.readline().strip()
        answered = "1"
        for _ in range(count):
            answered = said.readline().strip()
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        say(f"{names} {answered}")


async def write_for_ever(store: Store) -> None:
    """Admit two Runs in one unit, then commit units that change both; say each that is done."""
    one, two = new_id(), new_id()
    await store.commit([unit(admit(one), admit(two))])
    say(f"{one} {two}")
    head = 1
    while True:
        units = [
            unit(change(one, head, count=3), change(two, head, count=3)),
            unit(change(one, head + 3), change(two, head + 3)),
        ]
        assert await store.commit(units) == [Committed(), Committed()]
        head += 4
        say(str(head))


def migrate(url: str, prefix: str = "") -> None:
    """Let two processes migrate at once, once both have opened it; say how each ended."""
    both = get_context("fork").Barrier(2)

    async def one(store: Store) -> None:
        both.wait(_BARRIER_SECONDS)
        await store.migrate()

    children = [fork(url, one, prefix) for _ in range(2)]
    for child, _ in children:
        say(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))


async def append(store: Store, run_id: str) -> None:
    """Commit one record when told to."""
    head = (await store.header(TENANT, run_id)).head
    say("ready")
    await asyncio.to_thread(sys.stdin.readline)
    assert await store.commit([unit(change(run_id, head))]) == [Committed()]


def fork_after_opening(url: str) -> None:
    """Use a store in a child that was opened, and has threads, in the parent."""
    opened = open_store(url)
    asyncio.run(_list(opened))
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    try:
        asyncio.run(_list(opened))
    except PsychError as error:
        say(error.code)
    finally:
        os._exit(0)


async def _list(store: Store) -> None:
    await store.list_runs(TENANT)


def hold_lock(path: str) -> None:
    """Keep the write lock until told to let go."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    say("locked")
    sys.stdin.readline()
    connection.close()


def main(url: str, task: str, *arguments: str) -> None:
    """Do a task on the store."""
    match task:
        case "race":
            race(url, arguments[0], int(arguments[1]))
        case "kill":
            kill(url, *map(int, arguments))
        case "migrate":
            migrate(url, *arguments)
        case "fork":
            fork_after_opening(url)
        case "append":
            asyncio.run(_on(url, lambda store: append(store, arguments[0])))
        case "lock":
            hold_lock(url.removeprefix("sqlite:///"))
        case _:
            raise ValueError(task)


if __name__ == "__main__":
    main(*sys.argv[1:])
