"""Small values: written where their revision is as expected, listed in the order of their keys."""

import asyncio
import json
from collections.abc import Awaitable
from typing import Final

from psych_runtime.errors import InvalidPayload, PayloadTooLarge, StoreUnavailable
from psych_runtime.ports.checks import check, same
from psych_runtime.ports.store import MAX_VALUE_BYTES, MAX_VALUE_KEY_CHARACTERS, Store
from psych_runtime.store.contract._build import TENANT
from psych_runtime.store.contract._check import Harness
from psych_runtime.store.contract._faults import Steered, behind, in_doubt, same_struck
from psych_runtime.store.faults import FaultKind, FaultyStore
from psych_schema.store import KvRow

__all__ = [
    "a_value_comes_back_as_written",
    "a_value_is_deleted_by_one_caller_alone",
    "a_value_is_written_at_its_revision_only",
    "a_value_whose_answer_was_lost_is_known_by_what_it_says",
    "of_racing_writers_one_wins_each_revision",
    "values_are_listed_in_the_order_of_code_points",
    "values_of_other_tenants_kinds_and_keys_are_apart",
    "what_is_no_value_is_refused",
    "writers_of_a_value_behind_faults_lose_no_word",
]

_KIND: Final = "contract"
_WRITERS: Final = 16
_ROUNDS: Final = 5
_TRIES: Final = 1000
_LAST: Final = "\U0010ffff"
_VALUES: Final = (
    "",
    "{}",
    '{"a": "\\u0000 \\ud800"}',
    "o'hara \\' \"hi\" $1 :tenant %s {prefix}\n\t\r ",
    "\U0001f9e0 acme\u0301 \u2028",
    "\u00e9" * (MAX_VALUE_BYTES // 2),
)
_KEYS: Final = (
    " k",
    "#",
    "$",
    "%",
    "%23",
    "'; DROP TABLE kv; --",
    "K",
    '\\"k\\"',
    "k",
    "k ",
    "k  ",
    "k#a",
    "kA",
    "ka",
    "k\u0301",
    "k\u200b",
    "k\ud7ffz",
    "k\ue000",
    "k\ufffd",
    "k\U0001f9e0",
    f"k{_LAST}",
    f"k{_LAST}{_LAST}a",
    "l",
    "\u00e9",
    _LAST * MAX_VALUE_KEY_CHARACTERS,
)
"""Keys in the order of their code points, and so of their bytes in UTF-8."""


async def _put(store: Store, key: str, value: str, expect: int | None) -> KvRow | None:
    """Put, and read where the answer did not come; nobody else writes this value."""
    try:
        return await store.put_value(TENANT, _KIND, key, value, expect=expect)
    except StoreUnavailable:
        row = await store.value(TENANT, _KIND, key)
        return row if row is not None and row.value == value else None


async def _written(store: Store, key: str, value: str, expect: int | None = None) -> KvRow:
    """Put a value that is there then."""
    row = await _put(store, key, value, expect)
    if row is None:
        raise AssertionError(f"a put of {key!r} at {expect} is refused")
    return row


async def _gone(store: Store, key: str, expect: int | None = None) -> bool:
    """Delete, and read where the answer did not come; nobody else deletes."""
    try:
        return await store.delete_value(TENANT, _KIND, key, expect=expect)
    except StoreUnavailable:
        return await store.value(TENANT, _KIND, key) is None


@check("ST-1", "R-1", methods=("put_value", "value", "list_values", "delete_value"))
async def a_value_comes_back_as_written(harness: Harness) -> None:
    """To the last byte, for another handle, also when it is written anew; then it is gone."""
    async with harness.open() as store, harness.open() as other:
        same(await store.value(TENANT, _KIND, "k"), None, "a value that nobody has put")
        row: KvRow | None = None
        for value in _VALUES:
            expect = None if row is None else row.revision
            row = await _written(store, "k", value, expect)
            told = (row.tenant, row.kind, row.key, row.value)
            same(told, (TENANT, _KIND, "k", value), "the row that a put returns")
            same(row.revision >= 1, True, f"{row.revision}, at least 1")
            same(expect is None or row.revision == expect + 1, True, "a revision that grows by 1")
            same(await other.value(TENANT, _KIND, "k"), row, "the value, read")
            same(await other.list_values(TENANT, _KIND), [row], "the values, listed")
        same(await _gone(store, "k"), True, "a delete of a value that is there")
        same(await other.value(TENANT, _KIND, "k"), None, "a value that was deleted")
        same(await other.list_values(TENANT, _KIND), [], "values when it was deleted")
        same(await store.delete_value(TENANT, _KIND, "k"), False, "a delete of nothing")


@check("ST-1", "R-1", methods=("put_value", "value", "delete_value"))
async def a_value_is_written_at_its_revision_only(harness: Harness) -> None:
    """Not where there is one, or another, or none; nor at a revision from before it was deleted."""
    async with harness.open() as store:
        one = await _written(store, "k", "one")
        for expect in (None, one.revision + 1, one.revision - 1):
            refused = await _put(store, "k", "none", expect)
            same(refused, None, f"a put at {expect} where {one.revision} stands")
            if expect is not None:
                deleted = await store.delete_value(TENANT, _KIND, "k", expect=expect)
                same(deleted, False, f"a delete at {expect} where {one.revision} stands")
        same(await store.value(TENANT, _KIND, "k"), one, "the value after what was refused")
        absent = await _put(store, "absent", "none", one.revision)
        same(absent, None, "a put at a revision where there is none")
        same(await store.value(TENANT, _KIND, "absent"), None, "the value after it")
        two = await _written(store, "k", "two", one.revision)
        same(await _put(store, "k", "x", one.revision), None, "a put at one that is old")
        same(await _gone(store, "k", two.revision), True, "a delete at its revision")
        same(await _put(store, "k", "x", two.revision), None, "a put at one that is gone")
        again = await _written(store, "k", "again")
        seen = {one.revision, two.revision, two.revision + 1}
        same(again.revision in seen, False, "a revision that was seen before, of a new row")


async def _is_first(store: Store, mark: str, expect: int | None) -> bool:
    return await _put(store, "k", mark, expect) is not None


@check("ST-1", "R-1", methods=("put_value", "value", "twin"))
async def of_racing_writers_one_wins_each_revision(harness: Harness) -> None:
    """Sixteen that put at one revision, from a value that is not there on; the winner's stands."""
    async with harness.open() as store:
        twins = [store.twin() for _ in range(_WRITERS)]
        expect: int | None = None
        for turn in range(_ROUNDS):
            marks = [f"{turn} of {place}" for place in range(_WRITERS)]
            pairs = zip(twins, marks, strict=True)
            first = await asyncio.gather(*[_is_first(twin, mark, expect) for twin, mark in pairs])
            winners = [mark for mark, won in zip(marks, first, strict=True) if won]
            same(len(winners), 1, f"winners of round {turn}")
            row = await store.value(TENANT, _KIND, "k")
            same(None if row is None else row.value, winners[0], f"the value of round {turn}")
            expect = None if row is None else row.revision
        for twin in twins:
            await twin.close()


async def _deletes(store: Store) -> bool | None:
    try:
        return await store.delete_value(TENANT, _KIND, "k")
    except StoreUnavailable:
        return None


@check("ST-1", "R-1", methods=("delete_value", "put_value", "value", "twin"))
async def a_value_is_deleted_by_one_caller_alone(harness: Harness) -> None:
    """So that what is good for one use is used once: the others are told, or in doubt."""
    async with harness.open() as store:
        twins = [store.twin() for _ in range(_WRITERS)]
        for _ in range(_ROUNDS):
            await _written(store, "k", "{}")
            told = await asyncio.gather(*map(_deletes, twins))
            same(told.count(True) == 1 or None in told, True, f"{told.count(True)} that deleted it")
            same(told.count(True) <= 1, True, f"{told.count(True)} that deleted it, at most one")
            if True not in told:
                await _gone(store, "k")  # each was in doubt: it may be there
            same(await store.value(TENANT, _KIND, "k"), None, "the value that was deleted")
        for twin in twins:
            await twin.close()


@check("SEC-3", "LOG-5", methods=("put_value", "value", "list_values", "delete_value"))
async def values_of_other_tenants_kinds_and_keys_are_apart(harness: Harness) -> None:
    """Names are bytes that are compared: case, spaces and accents, and what looks like code."""
    async with harness.open() as store:
        owners = [(TENANT, _KIND), ("Acme", _KIND), ("acme ", _KIND), (TENANT, "contract.2")]
        owners += [("acme#contract", "x"), ("acme", "contract-x")]
        for tenant, kind in owners:
            wanted = [f"{tenant} {kind} {key}" for key in _KEYS]
            for key, value in zip(_KEYS, wanted, strict=True):
                same(await store.value(tenant, kind, key), None, f"a new {key!r} of {tenant!r}")
                await store.put_value(tenant, kind, key, value, expect=None)
            found = [row.value for row in await store.list_values(tenant, kind)]
            same(found, wanted, f"the values of {tenant!r} and {kind}")
        same(await _gone(store, "k"), True, "a delete of one of them")
        for tenant, kind in owners:
            row = await store.value(tenant, kind, "k")
            same(row is None, (tenant, kind) == (TENANT, _KIND), f"k of {tenant!r}, {kind} is gone")
            rest = await store.list_values(tenant, kind)
            same(len(rest), len(_KEYS) - (row is None), f"values of {tenant!r}, {kind}")


async def _listed(store: Store, *, prefix: str = "", after: str = "") -> list[str]:
    rows = await store.list_values(TENANT, _KIND, prefix=prefix, after=after)
    return [row.key for row in rows]


@check("ST-1", methods=("list_values", "put_value"))
async def values_are_listed_in_the_order_of_code_points(harness: Harness) -> None:
    """Page by page, whatever the limit; behind any place; of a prefix just what begins with it."""
    async with harness.open() as store:
        same(await _listed(store), [], "values of an empty store")
        for key in reversed(_KEYS):
            await _written(store, key, "{}")
        same(await _listed(store), list(_KEYS), "all keys")
        for limit in (1, 2, len(_KEYS) - 1, len(_KEYS), len(_KEYS) + 1):
            found: list[str] = []
            for _ in range(len(_KEYS) + 1):
                after = found[-1] if found else ""
                page = await store.list_values(TENANT, _KIND, after=after, limit=limit)
                found += [row.key for row in page]
                same(len(page) <= limit, True, f"{len(page)} of at most {limit}")
                if len(page) < limit:
                    break
            same(found, list(_KEYS), f"pages of {limit}")
        for prefix in ("k", "k ", "k\ud7ff", f"k{_LAST}", _LAST, "%", "_", "l", "z", ""):
            wanted = [key for key in _KEYS if key.startswith(prefix)]
            same(await _listed(store, prefix=prefix), wanted, f"keys that begin with {prefix!r}")
            for after in ("K", "k", "kA", "kB", f"k{_LAST}", "m"):
                behind_it = [key for key in wanted if key > after]
                found = await _listed(store, prefix=prefix, after=after)
                same(found, behind_it, f"keys that begin with {prefix!r}, behind {after!r}")


async def _refused(answer: Awaitable[object], kind: type[Exception], what: str) -> None:
    try:
        found = await answer
    except kind:
        return
    raise AssertionError(f"{what}: {found!r}, not {kind.__name__}")


@check("LOG-5", "ST-1", methods=("put_value", "value", "delete_value", "list_values"))
async def what_is_no_value_is_refused(harness: Harness) -> None:
    """Alike by every store, before anything is written; what is just within the bounds is kept."""
    async with harness.open() as store:
        keys = ("", "k" * (MAX_VALUE_KEY_CHARACTERS + 1), "a\0b", "\ud800")
        for key in keys:
            put = store.put_value(TENANT, _KIND, key, "{}", expect=None)
            await _refused(put, InvalidPayload, f"a put of {key[:9]!r}")
            await _refused(store.value(TENANT, _KIND, key), InvalidPayload, f"{key[:9]!r}")
            gone = store.delete_value(TENANT, _KIND, key)
            await _refused(gone, InvalidPayload, f"a delete of {key[:9]!r}")
        for text in keys[1:]:
            await _refused(_listed(store, prefix=text), InvalidPayload, f"a prefix {text[:9]!r}")
            await _refused(_listed(store, after=text), InvalidPayload, f"behind {text[:9]!r}")
        for value in ("a\0b", "\ud800"):
            put = store.put_value(TENANT, _KIND, "k", value, expect=None)
            await _refused(put, InvalidPayload, f"a put of the value {value!r}")
        for value in ("x" * (MAX_VALUE_BYTES + 1), "\u00e9" * (MAX_VALUE_BYTES // 2) + "x"):
            put = store.put_value(TENANT, _KIND, "k", value, expect=None)
            await _refused(put, PayloadTooLarge, "a value above the bound")
        for tenant in ("", "t" * 129, "a\0b", "\ud800"):
            put = store.put_value(tenant, _KIND, "k", "{}", expect=None)
            await _refused(put, InvalidPayload, f"a value of the tenant {tenant[:9]!r}")
        for kind in ("", "K", "a b", "a#b", "\u00e9", "k" * 65):
            put = store.put_value(TENANT, kind, "k", "{}", expect=None)
            await _refused(put, ValueError, f"a value of the kind {kind[:9]!r}")
        same(await _listed(store), [], "values after what was refused")
        longest = "k" * MAX_VALUE_KEY_CHARACTERS
        await _written(store, longest, "x" * MAX_VALUE_BYTES)
        await store.put_value("t" * 128, "k" * 64, longest, "{}", expect=None)
        same(await _listed(store), [longest], "what is just within the bounds")


@check("R-20", methods=("put_value", "delete_value", "value"))
async def a_value_whose_answer_was_lost_is_known_by_what_it_says(harness: Harness) -> None:
    """The same put again is refused by the first one; read, the value stands behind `expect`."""
    fates: tuple[tuple[FaultKind, bool], ...] = (("lost", False), ("unanswered", True))
    for kind, is_there in fates:
        async with harness.open() as store:
            lossy, faults = behind(store, kind)
            expect: int | None = None
            for turn in range(2):
                key, mark = f"k {kind}", f"{kind} {turn}"
                put = lossy.put_value(TENANT, _KIND, key, mark, expect=expect)
                await in_doubt(put, f"a put that is {kind}")
                again = await _put(store, key, mark, expect)
                same(again is None, is_there, f"a put again that was {kind}, refused")
                row = await store.value(TENANT, _KIND, key)
                same(row and row.value, mark, f"the value of a put that was {kind}")
                wrong = row is not None and expect is not None and row.revision != expect + 1
                same(wrong, False, "a revision that has grown twice")
                expect = None if row is None else row.revision
            await in_doubt(lossy.delete_value(TENANT, _KIND, f"k {kind}"), f"a delete, {kind}")
            same(await _gone(store, f"k {kind}"), not is_there, f"a delete again that was {kind}")
            same_struck(faults, **{kind: 3})


async def _say(store: Store, word: str) -> None:
    """Add a word to the value, once, whatever answers are lost."""
    for _ in range(_TRIES):
        try:
            row = await store.value(TENANT, _KIND, "k")
            words = [] if row is None else json.loads(row.value)
            if word in words:
                return
            expect = None if row is None else row.revision
            value = json.dumps([*words, word])
            await store.put_value(TENANT, _KIND, "k", value, expect=expect)
        except StoreUnavailable:
            await asyncio.sleep(0.001)
    raise AssertionError(f"{word} was not said in {_TRIES} tries")


@check("R-20", "R-1", "ST-1", methods=("put_value", "value", "twin"))
async def writers_of_a_value_behind_faults_lose_no_word(harness: Harness) -> None:
    """Sixteen that each add a word to one value: all of them are in it, once."""
    async with harness.open() as store:
        faults = Steered({"lost": 0.1, "unanswered": 0.1, "delayed": 0.3})
        handles = [FaultyStore(store.twin(), faults) for _ in range(_WRITERS)]
        words = [f"word {place}" for place in range(_WRITERS)]
        pairs = zip(handles, words, strict=True)
        await asyncio.gather(*[_say(handle, word) for handle, word in pairs])
        for handle in handles:
            await handle.close()
        row = await store.value(TENANT, _KIND, "k")
        found: list[str] = [] if row is None else json.loads(row.value)
        same(sorted(found), sorted(words), "words in the value")
        same(faults.struck.keys(), {"lost", "unanswered", "delayed"}, "faults that struck")
