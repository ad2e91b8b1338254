"""What other processes do to a SQLite file in tests: `python -m tests.functional.store.program`."""

import asyncio
import sqlite3
import sys

from psych_runtime.ports.answers import Committed
from psych_runtime.ports.store import Store
from psych_runtime.store.contract._build import admit, change, new_id, unit
from psych_runtime.store.open import open_store

TENANT = "acme"


def say(text: str) -> None:
    """Tell the test, at once."""
    print(text, flush=True)


async def race(store: Store, run_id: str, count: int) -> None:
    """Commit `count` records at the head, whoever else does; say how often it was refused."""
    written = refused = 0
    while written < count:
        head = (await store.header(TENANT, run_id)).head
        answers = await store.commit([unit(change(run_id, head))])
        written += answers == [Committed()]
        refused += answers != [Committed()]
    say(f"{written} {refused}")


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


async def append(store: Store, run_id: str) -> None:
    """Commit one record when told to."""
    head = (await store.header(TENANT, run_id)).head
    say("ready")
    await asyncio.to_thread(sys.stdin.readline)
    assert await store.commit([unit(change(run_id, head))]) == [Committed()]


def hold_lock(path: str) -> None:
    """Keep the write lock until told to let go."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    say("locked")
    sys.stdin.readline()
    connection.close()


async def main(url: str, task: str, *arguments: str) -> None:
    """Do a task on the store."""
    async with open_store(url) as store:
        match task:
            case "race":
                await race(store, arguments[0], int(arguments[1]))
            case "write":
                await write_for_ever(store)
            case "append":
                await append(store, arguments[0])
            case "migrate":
                say("ready")
                await asyncio.to_thread(sys.stdin.readline)
                await store.migrate()
            case _:
                raise ValueError(task)


if __name__ == "__main__":
    if sys.argv[2] == "lock":
        hold_lock(sys.argv[1].removeprefix("sqlite:///"))
    else:
        asyncio.run(main(*sys.argv[1:]))
