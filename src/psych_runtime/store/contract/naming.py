"""Names of tenants, threads and keys are bytes that are compared, never read as anything else."""

from typing import Final

from psych_runtime.ports.answers import KeyTaken
from psych_runtime.ports.checks import check, same
from psych_runtime.ports.store import RunFilter
from psych_runtime.store.contract._build import admit, key_row, unit, write
from psych_runtime.store.contract._check import Harness

__all__ = ["names_are_never_code", "names_that_look_alike_are_apart"]

_CODE: Final = (
    "o'hara",
    'say "hi"',
    "back\\slash\\'",
    "'; DROP TABLE run; --",
    "%s %(name)s %%",
    ":tenant $1 ?",
    "{prefix} {run}",
    "a#b#c",
    "line\nfeed\ttab",
    "/*!80000 x */ -- y",
)
_ALIKE: Final = (
    "acme",
    "Acme",
    "acme ",
    " acme",
    "acm\u00e9",
    "acme\u0301",
    "\uff41cme",
    "acme\u200b",
    "\U0001f9e0" * 32,
)


@check("SEC-3", "LOG-5", methods=("commit", "ready", "tail", "key", "list_runs", "version", "cap"))
async def names_are_never_code(harness: Harness) -> None:
    """Each comes back as it is, wherever it stands in a question, and as a cursor, too."""
    async with harness.open() as store:
        for name in _CODE:
            made = admit(tenant=name, columns={"thread": name})
            keyed = key_row(name, tenant=name)
            await write(store, unit(made, tenant=name, keys=[keyed]))
            row = await store.header(name, made.run_id)
            same((row.tenant, row.thread), (name, name), "a header's tenant and thread")
            same(len(await store.read(name, made.run_id)), 1, f"the log of a Run of {name!r}")
            tail = await store.tail(name, name)
            same(None if tail is None else tail.run_id, made.run_id, f"the tail of thread {name!r}")
            same(await store.key(name, "", name), keyed, f"the key {name!r}")
            again = await store.commit([unit(admit(tenant=name), tenant=name, keys=[keyed])])
            same(again, [KeyTaken(name, keyed.digest, keyed.receipt)], f"the key {name!r} again")
            page = await store.list_runs(name, filter=RunFilter(thread=name))
            same([one.run_id for one in page.headers], [made.run_id], f"the list of {name!r}")
            await store.put_version(name, "a" * 64, name)
            same(await store.version(name, "a" * 64), name, f"a text {name!r}")
            await store.set_cap(name, 3)
            cap = await store.cap(name)
            same(None if cap is None else cap.limit, 3, f"the cap of {name!r}")
            found = await store.ready(50, after_tenant=name)
            same(made.run_id in {one.run_id for one in found.headers}, True, f"ready of {name!r}")


@check("SEC-3", methods=("commit", "ready", "list_runs"))
async def names_that_look_alike_are_apart(harness: Harness) -> None:
    """Case, spaces, accents, width: what is another text is another tenant."""
    async with harness.open() as store:
        runs = {}
        for name in _ALIKE:
            made = admit(tenant=name)
            await write(store, unit(made, tenant=name, keys=[key_row("k", tenant=name)]))
            runs[name] = made.run_id
        for name, run_id in runs.items():
            page = await store.list_runs(name)
            same([one.run_id for one in page.headers], [run_id], f"the Runs of {name!r}")
        found = await store.ready(50)
        same(len(found.headers), len(_ALIKE), "tenants with a Run that is ready")
