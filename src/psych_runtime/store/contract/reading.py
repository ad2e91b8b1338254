"""What is read back: pages, bytes, tenants' walls, texts by hash, lists of Runs."""

from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from functools import partial
from typing import Final

from psych_runtime.core.canonical import MAX_SPEC_BYTES
from psych_runtime.errors import InvalidPayload, RunNotFound
from psych_runtime.ports import answers
from psych_runtime.ports.checks import check, same
from psych_runtime.ports.store import (
    Change,
    Exclude,
    HeaderChange,
    RunFilter,
    Sealed,
    Store,
    Unit,
)
from psych_runtime.store.contract._build import (
    START,
    TENANT,
    Text,
    admission,
    admit,
    change,
    claimed,
    key_row,
    new_id,
    sealed,
    unit,
    write,
)
from psych_runtime.store.contract._check import Harness

__all__ = [
    "a_cursor_that_is_not_ours_is_refused",
    "a_document_is_kept_once_for_its_tenant",
    "a_header_comes_back_as_admitted",
    "a_list_gives_what_the_filter_says",
    "a_list_is_newest_first_and_pages_through_ties",
    "a_text_of_the_largest_size_is_kept",
    "a_unit_cannot_mix_tenants",
    "a_version_is_kept_once_for_its_tenant",
    "another_tenants_run_looks_missing",
    "bodies_and_contents_come_back_as_written",
    "no_content_is_not_an_empty_content",
    "pages_of_a_log_meet_without_overlap",
    "the_column_open_is_edited",
    "what_no_store_keeps_is_refused",
]

_OTHER: Final = "globex"
_LONG: Final = 30.0

type _Ask = Callable[[], Awaitable[object]]

_AWKWARD: Final = (
    '{"a":1.0,"b":1e300,"c":9007199254740993, "spaced" : [ ] }',
    '{"nul":"\\u0000","raw":"\x01"}',
    '{"emoji":"\U0001f9e0\U0001f468\u200d\U0001f469\u200d\U0001f467","lone":"\\ud83d","upper":"\\uD83D"}',
    '{"lines":"\u2028\u2029\u0085\\n\r\n\t"}',
    '{"quotes":"\'\\"`--;","percent":"%s %(x)s {prefix} :name ?1"}',
    '{"marks":"e\u0301 \u00e9 \ufeff \u202e \uffff"}',
    " ",
    "",
)


@check("LOG-5", "LOG-6", methods=("commit", "read"))
async def bodies_and_contents_come_back_as_written(harness: Harness) -> None:
    """Byte for byte: escapes of NUL and surrogates, emoji, line separators, very long texts."""
    texts = [*_AWKWARD, '{"k":"' + "x" * 262_144 + '"}', '"' + "\U0001f9e0" * 200_000 + '"']
    async with harness.open() as store:
        run_id = await admission(store)
        records: list[Sealed] = []
        for seq, text in enumerate(texts, 2):
            records.append(sealed(run_id, seq, text=Text(text, text, f"{seq:032x}")))
        for record in records:
            plain = Change(run_id, record.row.seq - 1, None, (record,), HeaderChange())
            await write(store, unit(plain))
        rows = await store.read(TENANT, run_id, after=1)
        for row, record in zip(rows, records, strict=True):
            same(row, record.row, f"row {row.seq}")


@check("LOG-6", methods=("commit", "read"))
async def no_content_is_not_an_empty_content(harness: Harness) -> None:
    """Null and empty stay apart, in content and in salt."""
    async with harness.open() as store:
        run_id = await admission(store)
        texts = (Text(), Text(content=""), Text(salt="0" * 32), Text(content="null", salt=""))
        records = tuple(sealed(run_id, seq, text=text) for seq, text in enumerate(texts, 2))
        await write(store, unit(Change(run_id, 1, None, records, HeaderChange())))
        found = [(row.content, row.salt) for row in await store.read(TENANT, run_id, after=1)]
        wanted = [(text.content, text.salt) for text in texts]
        same(found, wanted, "contents and salts")


@check("STR-1", "LOG-1", methods=("read",))
async def pages_of_a_log_meet_without_overlap(harness: Harness) -> None:
    """`after` is exclusive, `limit` is exact, and beyond the end there is nothing."""
    async with harness.open() as store:
        run_id = await admission(store)
        await write(store, unit(change(run_id, 1, count=6)))

        async def seqs(after: int, limit: int | None) -> list[int]:
            return [row.seq for row in await store.read(TENANT, run_id, after=after, limit=limit)]

        same(await seqs(0, None), [1, 2, 3, 4, 5, 6, 7], "the whole log")
        same(await seqs(0, 3), [1, 2, 3], "the first page")
        same(await seqs(3, 3), [4, 5, 6], "the second page")
        same(await seqs(6, 3), [7], "the last page")
        same(await seqs(7, 3), [], "behind the end")
        same(await seqs(99, None), [], "far behind the end")
        same(await seqs(2, 1), [3], "a page of one")


@check("SEC-3", methods=("read", "header", "commit", "key", "tail", "list_runs", "wait"))
async def another_tenants_run_looks_missing(harness: Harness) -> None:
    """Whatever is asked with the wrong tenant: as if the Run did not exist."""
    async with harness.open() as store:
        run_id = await admission(store)
        await write(store, unit(change(run_id, 1), keys=[key_row("k", run_id=run_id)]))
        before = await store.header(TENANT, run_id)
        for wrong in (_OTHER, "ACME", "acme "):
            same(await _is_missing(store, wrong, run_id), True, f"the Run as {wrong!r}")
            foreign = unit(change(run_id, 2, fence=0, tenant=wrong), tenant=wrong)
            missing = [answers.RunNotFound(run_id)]
            same(await store.commit([foreign]), missing, f"a commit as {wrong!r}")
            same(await store.key(wrong, run_id, "k"), None, f"a key as {wrong!r}")
            same(await store.tail(wrong, run_id), None, f"a thread as {wrong!r}")
            page = await store.list_runs(wrong)
            same(page.headers, (), f"a list as {wrong!r}")
            same(await store.wait(wrong, {run_id: 0}, 0), frozenset(), f"a wait as {wrong!r}")
        same(await store.header(TENANT, run_id), before, "the header after foreign calls")


async def _is_missing(store: Store, tenant: str, run_id: str) -> bool:
    missing = 0
    try:
        await store.header(tenant, run_id)
    except RunNotFound as error:
        missing += error.run_id == run_id
    try:
        await store.read(tenant, run_id)
    except RunNotFound as error:
        missing += error.run_id == run_id
    return missing == 2


@check("SEC-3", "R-1", methods=("commit",))
async def a_unit_cannot_mix_tenants(harness: Harness) -> None:
    """One foreign Run among a unit's changes, and nothing of the unit is written."""
    async with harness.open() as store:
        ours, theirs = await admission(store), await admission(store, tenant=_OTHER)
        mixed = unit(change(ours, 1), change(theirs, 1))
        same(await store.commit([mixed]), [answers.RunNotFound(theirs)], "a unit of two tenants")
        same((await store.header(TENANT, ours)).head, 1, "our head after it")
        same((await store.header(_OTHER, theirs)).head, 1, "their head after it")


@check("SPEC-4", "PUB-2", "SEC-3", methods=("put_version", "version"))
async def a_version_is_kept_once_for_its_tenant(harness: Harness) -> None:
    """The same hash again changes nothing; another tenant does not see it."""
    async with harness.open() as store:
        text = '{"name":"\\u0000\U0001f9e0"}'
        for again in (text, text, "another text"):
            await store.put_version(TENANT, "a" * 64, again)
        await store.put_version(TENANT, "b" * 64, "{}")
        await store.put_version(_OTHER, "b" * 64, "[]")
        same(await store.version(TENANT, "a" * 64), text, "the Version")
        same(await store.version(TENANT, "b" * 64), "{}", "a hash that two tenants have")
        same(await store.version(_OTHER, "b" * 64), "[]", "the other tenant's Version")
        same(await store.version(_OTHER, "a" * 64), None, "another tenant's Version")
        same(await store.version(TENANT, "c" * 64), None, "no Version")


@check("MOD-8", "SEC-3", methods=("put_document", "document"))
async def a_document_is_kept_once_for_its_tenant(harness: Harness) -> None:
    """System prompts and tool definitions, by hash."""
    async with harness.open() as store:
        for again in ("Be kind.\r\n", "Be kind.\r\n", "Be brief."):
            await store.put_document(TENANT, "a" * 64, "system", again)
        await store.put_document(TENANT, "b" * 64, "tool", "{}")
        same(await store.document(TENANT, "a" * 64), "Be kind.\r\n", "a system prompt")
        same(await store.document(TENANT, "b" * 64), "{}", "a tool definition")
        same(await store.document(_OTHER, "a" * 64), None, "another tenant's document")
        same(await store.document(TENANT, "c" * 64), None, "no document")


@check("SEC-3", "LOG-5", methods=("put_version", "version", "put_document", "document"))
async def a_text_of_the_largest_size_is_kept(harness: Harness) -> None:
    """A Spec of the bound that holds on all stores, and a prompt of it; the first one stays."""
    fill = "\U0001f9e0" * (MAX_SPEC_BYTES // 4 - 1)
    text, other = f"[1]{fill}~", f"~{fill}[2]"
    same(len(text.encode()), MAX_SPEC_BYTES, "the bytes of the text")
    async with harness.open() as store, harness.open() as reader:
        for again in (text, text, other, "{}"):
            await store.put_version(TENANT, "a" * 64, again)
            await store.put_document(TENANT, "a" * 64, "system", again)
        for again in ("{}", text):
            await store.put_version(TENANT, "b" * 64, again)
        same(await reader.version(TENANT, "a" * 64) == text, True, "whether it is the Version")
        same(await reader.document(TENANT, "a" * 64) == text, True, "whether it is the document")
        same(await reader.version(TENANT, "b" * 64), "{}", "a short Version that was there first")
        same(await reader.version(_OTHER, "a" * 64), None, "another tenant's Version")


@check("RUN-9", methods=("list_runs",))
async def a_list_is_newest_first_and_pages_through_ties(harness: Harness) -> None:
    """Runs of one instant are neither lost nor doubled between pages."""
    async with harness.open() as store:
        instants = [START + timedelta(seconds=second) for second in (3, 1, 2, 2, 2, 2, 1)]
        ids = [await admission(store, columns={"created_at": instant}) for instant in instants]
        wanted = [run_id for _, run_id in sorted(zip(instants, ids, strict=True), reverse=True)]
        await admission(store, tenant=_OTHER)
        for limit in (1, 2, 3, 7, 8):
            found: list[str] = []
            cursor: str | None = None
            for _ in range(len(ids)):
                page = await store.list_runs(TENANT, cursor=cursor, limit=limit)
                same(len(page.headers) <= limit, True, f"a page of at most {limit}")
                found += [row.run_id for row in page.headers]
                cursor = page.cursor
                if cursor is None:
                    break
            same(found, wanted, f"the list by pages of {limit}")
            same(cursor, None, f"the end of the list by pages of {limit}")


@check("RUN-9", methods=("list_runs",))
async def a_list_gives_what_the_filter_says(harness: Harness) -> None:
    """Each filter alone, two together, and a cursor with a filter."""
    async with harness.open() as store:
        parent, version = new_id(), "f" * 64
        later = START + timedelta(seconds=1)
        one = await admission(store, columns={"version": version})
        two = await admission(store, columns={"thread": "line", "created_at": later})
        three = await admission(store, columns={"parent": parent, "version": version})
        held = await claimed(store, "wrk_1")

        async def ids(wanted: RunFilter) -> set[str]:
            page = await store.list_runs(TENANT, filter=wanted)
            return {row.run_id for row in page.headers}

        same(await ids(RunFilter()), {one, two, three, held}, "every Run")
        same(await ids(RunFilter(state="running")), {held}, "running Runs")
        same(await ids(RunFilter(version=version)), {one, three}, "Runs of a Version")
        same(await ids(RunFilter(thread="line")), {two}, "Runs of a thread")
        same(await ids(RunFilter(parent=parent)), {three}, "children of a Run")
        same(await ids(RunFilter(created_after=START)), {two}, "Runs after an instant")
        same(await ids(RunFilter(state="ready", version=version)), {one, three}, "two filters")
        same(await ids(RunFilter(state="settled")), set(), "settled Runs")
        wanted = RunFilter(version=version)
        first = await store.list_runs(TENANT, filter=wanted, limit=1)
        second = await store.list_runs(TENANT, filter=wanted, limit=1, cursor=first.cursor)
        found = [row.run_id for row in first.headers + second.headers]
        same(found, [three, one], "a filter by pages of one")
        same(second.cursor, None, "the end of a filtered list")


@check("RUN-9", methods=("list_runs",))
async def a_cursor_that_is_not_ours_is_refused(harness: Harness) -> None:
    """InvalidPayload, not a wrong page."""
    async with harness.open() as store:
        await admission(store)
        for cursor in ("", "x", "' OR 1=1", "2026-13-01T00:00:00.000000Z_" + new_id()):
            ask = partial(store.list_runs, TENANT, cursor=cursor)
            same(await _is_refused(ask), True, f"the cursor {cursor!r}")


@check(
    "LOG-5",
    methods=(
        "blank",
        "bury",
        "cap",
        "commit",
        "delete_runs",
        "document",
        "enlist",
        "header",
        "held_by",
        "key",
        "list_runs",
        "put_document",
        "put_version",
        "read",
        "ready",
        "renew",
        "set_cap",
        "tail",
        "version",
        "wait",
    ),
)
async def what_no_store_keeps_is_refused(harness: Harness) -> None:
    """InvalidPayload for a name or a text with U+0000 or without UTF-8; the store goes on."""
    async with harness.open() as store:
        run_id = await admission(store)
        for odd in ("run_\ud800", "run_\0", "\U0001f9e0\0"):
            for what, ask in (
                *_asks(store, run_id, odd),
                *_asks_of_workers(store, odd),
                *_commits(store, run_id, odd),
            ):
                same(await _is_refused(ask), True, f"{what} with {odd!r}")
        same((await store.header(TENANT, run_id)).head, 1, "a header after all of them")
        same(await store.wait(TENANT, {run_id: 0}, _LONG), frozenset({run_id}), "a wait after them")
        same(await store.version(TENANT, "a" * 64), None, "a version that was refused")
        same(await store.document(TENANT, "a" * 64), None, "a document that was refused")
        same(await store.workers(), [], "workers that were refused")


def _asks(store: Store, run_id: str, odd: str) -> tuple[tuple[str, _Ask], ...]:
    """Return what asks for names that no store keeps, or to keep such texts."""
    row = admit().header.model_copy(update={"run_id": odd})
    return (
        ("a header", lambda: store.header(TENANT, odd)),
        ("a header of a tenant", lambda: store.header(odd, run_id)),
        ("a log", lambda: store.read(TENANT, odd)),
        ("a log of a tenant", lambda: store.read(odd, run_id)),
        ("a thread", lambda: store.tail(TENANT, odd)),
        ("a key", lambda: store.key(TENANT, "", odd)),
        ("a version", lambda: store.version(TENANT, odd)),
        ("a version to keep", lambda: store.put_version(TENANT, "a" * 64, odd)),
        ("a document", lambda: store.document(TENANT, odd)),
        ("a document to keep", lambda: store.put_document(TENANT, "a" * 64, "tool", odd)),
        ("a wait", lambda: store.wait(TENANT, {odd: 0}, _LONG)),
        ("a list of a tenant", lambda: store.list_runs(odd)),
        ("a list of a thread", lambda: store.list_runs(TENANT, filter=RunFilter(thread=odd))),
        ("a list of a version", lambda: store.list_runs(TENANT, filter=RunFilter(version=odd))),
        ("a list of a parent", lambda: store.list_runs(TENANT, filter=RunFilter(parent=odd))),
        ("a cap", lambda: store.cap(odd)),
        ("a cap to set", lambda: store.set_cap(odd, 1)),
        ("a Run to blank", lambda: store.blank(TENANT, odd)),
        ("a Run to delete", lambda: store.delete_runs(TENANT, [row])),
        ("a key to delete", lambda: store.delete_runs(TENANT, (), [odd])),
    )


def _asks_of_workers(store: Store, odd: str) -> tuple[tuple[str, _Ask], ...]:
    """Return what names workers, or Runs for them."""

    def enlist(worker: str, build: str, *tools: str) -> Awaitable[object]:
        return store.enlist(worker, lease_seconds=_LONG, build=build, tools=tools)

    return (
        ("a worker", lambda: enlist(odd, "b")),
        ("a worker's build", lambda: enlist("wrk_1", odd)),
        ("a worker's tool", lambda: enlist("wrk_1", "b", odd)),
        ("a renewal", lambda: store.renew(odd, lease_seconds=_LONG, run_ids=())),
        ("a Run to renew", lambda: store.renew("wrk_1", lease_seconds=_LONG, run_ids=(odd,))),
        ("an observer", lambda: store.bury(odd)),
        ("a holder", lambda: store.held_by(odd)),
        ("a cursor over tenants", lambda: store.ready(1, after_tenant=odd)),
        ("a Run in hand", lambda: store.ready(1, exclude=Exclude(run_ids=(odd,)))),
        ("a Version", lambda: store.ready(1, exclude=Exclude(versions=(odd,)))),
    )


def _commits(store: Store, run_id: str, odd: str) -> Iterator[tuple[str, _Ask]]:
    """Yield units, in each of which one text is such a one."""
    record = sealed(run_id, 2)

    def written(**columns: object) -> Change:
        row = record.row.model_copy(update=columns)
        return Change(run_id, 1, None, (record._replace(row=row),), HeaderChange())

    def keyed(**columns: object) -> Unit:
        row = key_row("k", run_id=run_id).model_copy(update=columns)
        return unit(change(run_id, 1), keys=[row])

    for what, sent in (
        ("of a body", unit(written(body=odd))),
        ("of a content", unit(written(content=odd))),
        ("of a salt", unit(written(content="", salt=odd))),
        ("of a type", unit(written(type=odd))),
        ("of a Run", unit(change(odd, 1, count=0))),
        ("of a tenant", unit(written(tenant=odd), tenant=odd)),
        ("of a thread", unit(admit(columns={"thread": odd}))),
        ("of a version", unit(admit(columns={"version": odd}))),
        ("with a key", keyed(key=odd)),
        ("with a receipt", keyed(receipt=odd)),
    ):
        yield f"a commit {what}", partial(store.commit, [sent])


async def _is_refused(ask: _Ask) -> bool:
    try:
        await ask()
    except InvalidPayload:
        return True
    except RunNotFound:
        return False
    return False


@check("R-1", "R-13", methods=("commit", "header"))
async def the_column_open_is_edited(harness: Harness) -> None:
    """What opens has its seq, what closes is gone, the rest stays."""
    async with harness.open() as store:
        run_id = await admission(store, columns={"open": {"ent_0": 1}})
        edits: tuple[tuple[HeaderChange, dict[str, int]], ...] = (
            (HeaderChange(opened={"apr_1": 2, "wait_1": 2}), {"ent_0": 1, "apr_1": 2, "wait_1": 2}),
            (HeaderChange(), {"ent_0": 1, "apr_1": 2, "wait_1": 2}),
            (HeaderChange(opened={"apr_1": 4}, closed=("ent_0",)), {"apr_1": 4, "wait_1": 2}),
            (HeaderChange(closed=("wait_1", "none")), {"apr_1": 4}),
            (HeaderChange(state="suspended", opened={"a": 6}, closed=("a",)), {"apr_1": 4}),
            (HeaderChange(closed=("apr_1",)), {}),
        )
        for head, (edit, wanted) in enumerate(edits, 1):
            await write(store, unit(change(run_id, head, edit=edit)))
            same(dict((await store.header(TENANT, run_id)).open), wanted, f"open at {head + 1}")
        page = await store.list_runs(TENANT)
        same(dict(page.headers[0].open), {}, "open in a list")


@check("R-1", methods=("commit", "header"))
async def a_header_comes_back_as_admitted(harness: Harness) -> None:
    """Every column, also those that are rarely set, to the microsecond."""
    async with harness.open() as store:
        instant = START + timedelta(microseconds=1)
        columns: dict[str, object] = {
            "priority": 9,
            "schema_version": 4,
            "thread": "line \U0001f9e0",
            "position": 3,
            "previous": new_id(),
            "parent": new_id(),
            "root": new_id(),
            "referenced": True,
            "created_at": instant,
            "head_at": instant,
            "wake_at": instant,
            "open": {"ent_1": 1},
        }
        admitted = admit(columns=columns)
        await write(store, unit(admitted))
        same(await store.header(TENANT, admitted.run_id), admitted.header, "the header")
        found = await store.tail(TENANT, "line \U0001f9e0")
        same(found, admitted.header, "the header as a thread's tail")
        same((await store.list_runs(TENANT)).headers, (admitted.header,), "the header in a list")
