"""What read_result and search_result give, to whom, and what they say when they cannot (TOOL-6)."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import pytest
from pydantic import JsonValue

from psych_runtime import deliver, publish, wait
from psych_runtime.blob.memory import MemoryBlobStore
from psych_runtime.errors import BlobUnavailable, InvalidSpec, RegistrationError
from psych_runtime.ports.blob import BlobStore
from psych_runtime.ports.policy import Allow, Decision, Deny, Policy, ToolFacts
from psych_runtime.ports.store import Store
from psych_runtime.testing.fake_model import ScriptedCall
from psych_runtime.tools.attachment import Attachment
from psych_runtime.tools.context import ToolContext
from psych_runtime.tools.policy import AskUnlessReadOnly
from psych_runtime.tools.registry import ToolRegistry
from psych_schema.common import Scope
from psych_schema.model import ModelRequest
from psych_schema.record import ToolCompleted, ToolRefused, ToolStarted
from psych_schema.spec import AgentSpec, BuiltinTool, Event
from tests.functional.engine.behaviour.talk import said as words_of
from tests.functional.engine.behaviour.talk import told
from tests.functional.engine.harness import ACME, Crew, admit, eventually, only
from tests.functional.engine.results.desk import (
    Reader,
    Turn,
    attached,
    content_of,
    desk,
    http_get,
    last_answers,
    made,
    names_in,
    read,
    reading,
    search,
    searching,
)

GLOBEX: Final = Scope(tenant="globex")
LONG: Final = "".join(f"{number:05d} é😀€\n" for number in range(6000))
SIZE: Final = len(LONG.encode())


@pytest.fixture
def blob_kind() -> str:
    """The quickest: blob stores are compared elsewhere."""
    return "memory"


@pytest.fixture(params=["in a blob", "in the log"])
def offload_bytes(request: pytest.FixtureRequest) -> int:
    """Where the whole is makes no difference to who reads it."""
    return 1024 if request.param == "in a blob" else 256 * 1024


def act() -> str:
    """Act."""
    return LONG


async def answered(
    store: Store,
    crew: Crew,
    blob: BlobStore | None,
    *turns: Turn,
    offload_bytes: int = 1024,
    spec: AgentSpec | None = None,
) -> list[str]:
    """Return what the model is told in each of these turns, behind the result."""
    model = Reader([("act", {})], *turns, "Done.")
    worker = await crew.start(made(store, model, act, blob=blob, offload_bytes=offload_bytes))
    found = await told(store, await admit(store, desk("act") if spec is None else spec))
    await crew.stop(worker)
    assert found.answer == "Done."
    return [text for one in model.requests[2:] for text in last_answers(one)]


async def test_tool_6_the_whole_is_read_in_ranges(
    store: Store, crew: Crew, blob: BlobStore, offload_bytes: int
) -> None:
    """Each says where the next begins; put together they are the whole, byte for byte."""

    def reads_on(request: ModelRequest) -> str | Sequence[ScriptedCall]:
        start = 0
        if len(request.messages) > 3:
            goes_on = re.match(r"\[.*; it goes on at ([0-9]+)\]\n", last_answers(request)[0])
            if goes_on is None:
                return "Done."
            start = int(goes_on[1])
        return [reading(names_in(request)[0], start, 1999)]

    model = Reader([("act", {})], *[reads_on] * 100)
    await crew.start(made(store, model, act, blob=blob, offload_bytes=offload_bytes))
    found = await told(store, await admit(store, desk("act", max_turns=1000)))
    assert found.answer == "Done."
    pieces = [content_of(only(last_answers(one))) for one in model.requests[2:]]
    assert "".join(pieces) == LONG
    assert max(len(one.encode()) for one in pieces) <= 1999


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
async def test_tool_6_a_range_that_is_narrower_than_a_character_has_it(
    store: Store, crew: Crew, blob: BlobStore, offload_bytes: int, size: int
) -> None:
    """So that whoever reads on gets further, and nothing is lost on the way."""
    at = LONG.encode().index("😀".encode())
    ranges = [read(at - 2, size), read(at, size), read(at + 4, size), read(SIZE - 1, size)]
    ranges.append(read(SIZE - 4, 3))
    told_ = await answered(store, crew, blob, *ranges, offload_bytes=offload_bytes)
    starts = (at - 2, at, at + 4)
    for start, text, before in zip(starts, told_, ("é😀", "😀€", "€\n0"), strict=False):
        given = content_of(text)
        assert before.startswith(given)
        assert given
        assert len(given.encode()) <= max(size, 4)
        stop = start + len(given.encode())
        assert text.startswith(f"[Bytes {start} to {stop} of {SIZE}; it goes on at {stop}]\n")
    assert told_[3] == f"[Bytes {SIZE - 1} to {SIZE} of {SIZE}]\n\n"
    assert told_[4] == f"[Bytes {SIZE - 4} to {SIZE - 1} of {SIZE}; it goes on at {SIZE - 1}]\n€"


async def test_tool_6_a_range_has_defaults_and_a_bound(
    store: Store, crew: Crew, blob: BlobStore, offload_bytes: int
) -> None:
    """The beginning, 8 KiB, and never more than the Spec shows at once."""
    spec = desk("act", shown_bytes=10_000)
    first, most, rest = await answered(
        store,
        crew,
        blob,
        read(),
        read(0, 1 << 40),
        read(SIZE - 20, 1 << 40),
        offload_bytes=offload_bytes,
        spec=spec,
    )
    assert content_of(first) == LONG.encode()[:8192].decode(errors="ignore")
    assert content_of(most) == LONG.encode()[:10_000].decode(errors="ignore")
    assert rest == f"[Bytes {SIZE - 20} to {SIZE} of {SIZE}]\n" + LONG.encode()[-20:].decode(
        errors="ignore"
    )


async def test_tool_6_a_search_goes_on_where_it_ended(
    store: Store, crew: Crew, blob: BlobStore, offload_bytes: int
) -> None:
    """Fifty lines at a time, each with the byte that it begins at."""

    def goes_on(request: ModelRequest) -> Sequence[ScriptedCall]:
        head = last_answers(request)[0].partition("\n")[0]
        start = int(head.rpartition("; to go on, start at ")[2].rstrip("]"))
        return [searching(names_in(request)[0], "^0[0-9]*7 ", start)]

    found = await answered(
        store, crew, blob, search("^0[0-9]*7 "), *[goes_on] * 3, offload_bytes=offload_bytes
    )
    hits = [line for one in found for line in one.split("\n")[1:]]
    assert hits == [f"{number * 16}: {number:05d} é😀€" for number in range(7, 7 + 200 * 10, 10)]
    assert found[0].startswith(f"[50 lines match in bytes 0 to {498 * 16} of {SIZE}; to go on,")


async def test_tool_6_a_search_says_that_there_is_nothing_more(
    store: Store, crew: Crew, blob: BlobStore, offload_bytes: int
) -> None:
    """One line, none, and none behind a byte."""
    found = await answered(
        store,
        crew,
        blob,
        search("05999"),
        search("6000"),
        search("^00000", 16),
        offload_bytes=offload_bytes,
    )
    assert found == [
        f"[1 line matches in bytes 0 to {SIZE} of {SIZE}; that is the end]\n95984: 05999 é😀€",
        f"[0 lines match in bytes 0 to {SIZE} of {SIZE}; that is the end]",
        f"[0 lines match in bytes 16 to {SIZE} of {SIZE}; that is the end]",
    ]


async def test_sec_3_a_search_looks_at_8_mib_at_most(
    store: Store, crew: Crew, blob: BlobStore
) -> None:
    """The next one begins there, at the beginning of a line."""
    line = "x" * 99 + "\n"

    def act() -> str:
        """Act."""
        return line * 90_000

    model = Reader([("act", {})], search("zz"), search("zz", 8_389_000), "Done.")
    await crew.start(made(store, model, act, blob=blob))
    await told(store, await admit(store, desk("act")))
    first, rest = [only(last_answers(one)) for one in model.requests[2:]]
    at = int(first.rpartition(" ")[2].rstrip("]"))
    assert first == f"[0 lines match in bytes 0 to {at} of 9000000; to go on, start at {at}]"
    assert 8 * 1024 * 1024 <= at < 9_000_000
    assert at % 100 == 0
    assert rest.endswith("to 9000000 of 9000000; that is the end]")


async def test_tool_6_what_others_delivered_is_shown_in_part_too(store: Store, crew: Crew) -> None:
    """The log has it: there is no blob store."""
    spec = desk().model_copy(
        update={
            "tools": (BuiltinTool(name="wait_for_event"),),
            "events": (Event(name="import", description="An import."),),
        }
    )
    model = Reader([("wait_for_event", {"event": "import"})], search("05999"), "Done.")
    await crew.start(made(store, model, blob=None))
    run = await admit(store, spec)
    await wait(store, run, scope=ACME, until="suspended", timeout_seconds=20)
    await deliver(store, run, scope=ACME, event="import", payload={"lines": LONG.split("\n")})
    assert (await told(store, run)).answer == "Done."
    assert "are left out here" in only(last_answers(model.requests[1]))
    assert '"05999 é😀€"' in only(last_answers(model.requests[2]))


async def test_sec_3_a_pattern_that_takes_too_long_is_said_to(
    store: Store, crew: Crew, blob: BlobStore
) -> None:
    """Where the search could go on, and where not one line could be looked at."""
    text = ("é" * 1500 + "\n" + "short\n" * 100) * 20

    def act() -> str:
        """Act."""
        return text

    model = Reader([("act", {})], search("é{1500}Z"), search("é{1490}"), "Done.")
    await crew.start(made(store, model, act, blob=blob))
    await told(store, await admit(store, desk("act")))
    goes_on, ends = [only(last_answers(one)) for one in model.requests[2:]]
    at = int(goes_on.rpartition(" ")[2].rstrip("]"))
    assert goes_on == f"[0 lines match in bytes 0 to {at} of 72020; to go on, start at {at}]"
    assert at > 0
    assert ends == (
        "[0 lines match in bytes 0 to 0 of 72020; "
        "this pattern takes too long: write one that is simpler]"
    )


FAULTS: Final[Sequence[tuple[Mapping[str, JsonValue], str, str]]] = [
    ({"start": -1}, "read_result", f"It has {SIZE} bytes, so start is 0 to {SIZE - 1}."),
    ({"start": SIZE}, "read_result", f"It has {SIZE} bytes, so start is 0 to {SIZE - 1}."),
    ({"start": 1 << 70}, "read_result", f"It has {SIZE} bytes, so start is 0 to {SIZE - 1}."),
    ({"size": 0}, "read_result", "Read at least one byte, and at most 2048."),
    ({"size": -5}, "read_result", "Read at least one byte, and at most 2048."),
    (
        {"pattern": "a", "start": SIZE},
        "search_result",
        f"It has {SIZE} bytes, so start is 0 to {SIZE - 1}.",
    ),
    ({"pattern": "(a"}, "search_result", "pattern: unclosed group. Nothing was looked for."),
    (
        {"pattern": "a" * 1025},
        "search_result",
        "pattern: has 1025 characters, the bound is 1024. Nothing was looked for.",
    ),
]


@pytest.mark.parametrize(("arguments", "name", "words"), FAULTS)
async def test_tool_6_what_cannot_be_read_is_an_error_in_words(
    store: Store,
    crew: Crew,
    blob: BlobStore,
    arguments: Mapping[str, JsonValue],
    name: str,
    words: str,
) -> None:
    """It says what would do."""

    def asks(request: ModelRequest) -> Sequence[ScriptedCall]:
        return [(name, {"result": names_in(request)[0], **arguments})]

    assert await answered(store, crew, blob, asks) == [words]


@pytest.mark.parametrize("name", ["read_result", "search_result"])
@pytest.mark.parametrize(
    "wrong",
    [{"start": "x"}, {"start": 1.5}, {"start": None}, {"start": True}, {"other": 1}, {"result": 7}],
)
async def test_mod_2_arguments_that_do_not_fit_are_malformed(
    store: Store, crew: Crew, blob: BlobStore, name: str, wrong: Mapping[str, JsonValue]
) -> None:
    """As those of any tool."""

    def asks(request: ModelRequest) -> Sequence[ScriptedCall]:
        named: dict[str, JsonValue] = {"result": names_in(request)[0]}
        more: dict[str, JsonValue] = {"pattern": "a"} if name == "search_result" else {}
        return [(name, {**named, **more, **wrong})]

    [said] = await answered(store, crew, blob, asks)
    assert said.startswith(f"Malformed arguments of {name}: ")
    assert "The tool was not executed." in said


@pytest.mark.parametrize("name", ["", "call_" + "0" * 26, "../etc", "é\x00", "x" * 5000])
async def test_tool_6_a_name_that_nobody_knows_is_said_to_be_none(
    store: Store, crew: Crew, blob: BlobStore, name: str
) -> None:
    """With those that there are, shortened where it is long."""

    def asks(request: ModelRequest) -> Sequence[ScriptedCall]:
        return [reading(name), searching(name, "a")]

    for said in await answered(store, crew, blob, asks):
        assert re.fullmatch(
            r'There is no result ".*"\. The last of them: call_[0-9a-z]{26}\.', said
        )
        assert len(said) < 250


async def test_tool_6_the_last_ten_names_are_said(
    store: Store, crew: Crew, blob: BlobStore
) -> None:
    """Of many results."""
    asked: list[Sequence[ScriptedCall] | Turn] = [[("many", {"n": n}) for n in range(12)]]
    asked.append(lambda _: [("read_result", {"result": "?"})])

    def many(n: int) -> str:
        """Act.

        Args:
            n: Which.
        """
        return f"{n}" + LONG

    model = Reader(*asked, "Done.")
    await crew.start(made(store, model, many, blob=blob))
    await told(store, await admit(store, desk("many")))
    [said] = last_answers(model.requests[2])
    names = said.removeprefix('There is no result "?". The last of them: ').rstrip(".").split(", ")
    assert len(names) == 10
    assert set(names) < set(names_in(model.requests[1]))


async def test_tool_6_nobody_else_reads_a_result(
    store: Store, crew: Crew, blob: BlobStore, offload_bytes: int
) -> None:
    """Another tenant's Run, and another Run of the tenant, are told that there is none.

    They know the name, and have a large result of their own, without which nothing is offered.
    """
    model = Reader([("act", {})], "Done.")
    first = await crew.start(made(store, model, act, blob=blob, offload_bytes=offload_bytes))
    run = await admit(store, desk("act"))
    await told(store, run)
    await crew.stop(first)
    [stolen] = names_in(model.requests[1])

    def steals(request: ModelRequest) -> Sequence[ScriptedCall]:
        own = only(names_in(request))
        assert own != stolen
        return [reading(stolen), searching(stolen, "é"), reading(own, size=8)]

    thief = Reader([("act", {})], steals, "Done.")
    await crew.start(made(store, thief, act, blob=blob, offload_bytes=offload_bytes))
    for scope in (GLOBEX, ACME):
        other = await admit(store, desk("act"), scope=scope)
        found = await told(store, other, tenant=scope.tenant)
        assert found.answer == "Done."
        read_, searched, own = last_answers(thief.requests[-1])
        for said in (read_, searched):
            assert said.startswith(f'There is no result "{stolen}". The last of them: call_')
        assert content_of(own) == "00000 é"


async def test_tool_6_who_was_shown_everything_has_no_such_tools(
    store: Store, crew: Crew, blob: BlobStore
) -> None:
    """A call of one is a call of a tool that there is not."""

    def small() -> str:
        """Act."""
        return "small"

    model = Reader([("small", {})], [("read_result", {"result": "call_1"})], "Done.")
    await crew.start(made(store, model, small, blob=blob))
    found = await told(store, await admit(store, desk("small")))
    assert found.refusals == [("unknown", "There is no tool 'read_result'. You can call: small.")]


class Permits(Policy):
    """Permits what it is told."""

    def __init__(self, *patterns: str) -> None:
        self._patterns = patterns
        self.judged: list[ToolFacts] = []

    async def permitted(self, scope: Scope) -> Sequence[str]:
        return self._patterns

    async def decide_tool(
        self, scope: Scope, tool: ToolFacts, arguments: Mapping[str, JsonValue]
    ) -> Decision:
        self.judged.append(tool)
        return Deny("not that") if tool.name == "search_result" else Allow()


@pytest.mark.parametrize(
    ("patterns", "offered"),
    [
        (("code:*",), ["act"]),
        (("code:*", "builtin:read_result"), ["act", "read_result"]),
        (("code:*", "builtin:*"), ["act", "read_result", "search_result"]),
    ],
)
async def test_tool_3_reading_is_permitted_as_any_tool_is(
    store: Store, crew: Crew, blob: BlobStore, patterns: tuple[str, ...], offered: list[str]
) -> None:
    """What a policy does not permit is not offered, and called in vain."""
    model = Reader(
        [("act", {})],
        lambda request: [
            reading(names_in(request)[0], size=5),
            searching(names_in(request)[0], "a"),
        ],
        "Done.",
    )
    policy = Permits(*patterns)
    await crew.start(made(store, model, act, blob=blob, policy=policy))
    found = await told(store, await admit(store, desk("act")))
    assert [one.name for one in model.requests[1].tools] == offered
    read_, searched = last_answers(model.requests[2])
    if "read_result" in offered:
        assert content_of(read_) == "00000"
    else:
        assert read_ == "There is no tool 'read_result'. You can call: act."
    if "search_result" in offered:
        assert searched == "The call was denied: not that"
        facts = policy.judged[-1]
        assert (facts.identity, facts.risk) == ("builtin:search_result", "read_only")
    else:
        assert searched.startswith("There is no tool 'search_result'.")
    assert {one.code for one in found.every(ToolRefused)} <= {"unknown", "denied"}


async def test_tool_3_nobody_is_asked_before_a_result_is_read(
    store: Store, crew: Crew, blob: BlobStore
) -> None:
    """By the default policy, which lets through what is read-only."""

    def look() -> str:
        """Look."""
        return LONG

    functions = ToolRegistry()
    functions.register(look, annotations={"read-only"})
    model = Reader([("look", {})], read(0, 5), search("00001"), "Done.")
    runtime = made(store, model, blob=blob, policy=AskUnlessReadOnly())
    runtime.registry = functions
    await crew.start(runtime)
    found = await told(store, await admit(store, desk("look")))
    assert [one.outcome for one in found.every(ToolCompleted)] == ["ok"] * 3
    assert [one.identity for one in found.every(ToolStarted)] == [
        "code:look",
        "builtin:read_result",
        "builtin:search_result",
    ]


@pytest.mark.parametrize("name", ["read_result", "search_result"])
async def test_tool_1_no_tool_of_a_consumer_has_their_names(store: Store, name: str) -> None:
    """Refused when it is registered, and when a Spec declares it."""
    with pytest.raises(RegistrationError, match="reserved for a tool of the runtime"):
        ToolRegistry().register(act, name=name)
    with pytest.raises(InvalidSpec, match="/tools/0/name: this name is reserved"):
        await publish(store, desk(http_get(name, "https://example.com/")), scope=ACME)


async def test_tool_6_what_was_read_is_a_result_like_any_other(
    store: Store, crew: Crew, blob: BlobStore
) -> None:
    """In the log as it was shown, and never shown in part itself."""
    model = Reader([("act", {})], read(0, 2048), search("é"), "Done.")
    await crew.start(made(store, model, act, blob=blob))
    found = await told(store, await admit(store, desk("act")))
    _, *ours = found.every(ToolCompleted)
    assert [(one.outcome, one.elided, one.shown_bytes) for one in ours] == [("ok", None, None)] * 2
    shown = [only(last_answers(one)) for one in model.requests[2:]]
    assert [words_of(one) for one in ours] == shown
    assert len(names_in(model.requests[3])) == 1


async def test_tool_6_a_large_file_of_text_is_named_and_read(
    store: Store, crew: Crew, blob: BlobStore, offload_bytes: int
) -> None:
    """Each of several under a name of its own; a small one, and what is no text, is sent."""
    csv = "".join(f"{number},é\n" for number in range(2000)).encode()
    picture = b"\x89PNG" * 2000

    def files() -> list[str | Attachment]:
        """Get files."""
        return [
            "Three files, and a picture.",
            Attachment(csv, "text/csv", name="orders.csv"),
            Attachment(b"small", "text/plain", name="small.txt"),
            Attachment(picture, "image/png"),
            Attachment(csv[::-1], "application/json; charset=utf-8"),
        ]

    def looks(request: ModelRequest) -> Sequence[ScriptedCall]:
        first, second = names_in(request)
        return [reading(first, 9, 12), searching(first, "^1999,"), reading(second, 0, 8)]

    model = Reader([("files", {})], looks, "Done.")
    await crew.start(made(store, model, files, blob=blob, offload_bytes=offload_bytes))
    found = await told(store, await admit(store, desk("files")))
    assert found.answer == "Done."
    call = next(iter(found.every(ToolCompleted)))
    assert len(call.attachments) == 4
    parts = model.requests[1].messages[-1].parts
    texts = [getattr(one, "text", "") for one in parts]
    assert texts[0] == "Three files, and a picture."
    [line] = [one for one in texts if "orders.csv" in one]
    assert line.startswith(f"[orders.csv, text/csv, {len(csv)} bytes, is not shown here. Read it ")
    assert line.endswith(f'result="{names_in(model.requests[1])[0]}"]')
    assert [one.name for one in model.requests[1].tools][-2:] == ["read_result", "search_result"]
    assert sorted(one.blob.media_type for one in parts if one.kind == "blob") == [
        "image/png",
        "text/plain",
    ]
    ranged, searched, other = last_answers(model.requests[2])
    assert content_of(ranged).encode() == csv[9:21]
    assert searched.endswith(f"\n{csv.index(b'1999,')}: 1999,é")
    assert content_of(other).encode() == csv[::-1][:8].decode(errors="replace").encode()


async def test_tool_6_a_large_file_is_named_beside_a_text_that_a_blob_keeps(
    store: Store, crew: Crew, blob: BlobStore
) -> None:
    """The text is sent whole, since it may be shown whole; the file is read."""
    csv = "".join(f"{number},é\n" for number in range(2000)).encode()

    def act() -> list[object]:
        """Act."""
        return ["x" * 1500, Attachment(csv, "text/csv", name="a.csv")]

    model = Reader([("act", {})], read(0, 9), "Done.")
    await crew.start(made(store, model, act, blob=blob, offload_bytes=1024))
    found = await told(store, await admit(store, desk("act")))
    assert attached(model.requests[1]) == [b"x" * 1500]
    assert "[a.csv, text/csv, " in only(last_answers(model.requests[1]))
    assert content_of(only(last_answers(model.requests[2]))).encode() == csv[:9]
    ended = found.every(ToolCompleted)[0]
    assert (ended.elided, ended.shown_bytes) == (None, 2048)


async def test_tool_6_a_text_in_a_blob_needs_a_blob_store(
    store: Store, crew: Crew, blob: BlobStore
) -> None:
    """A worker without one says so; the Run goes on."""
    model = Reader([("act", {})], "never said")
    model.stalls_at = 1
    runtime = made(store, model, act, blob=blob, offload_bytes=1024)
    first = await crew.start(runtime, grace_seconds=0.1)
    run = await admit(store, desk("act"))
    await eventually(lambda: len(model.requests) == 2)
    await crew.stop(first)
    without = Reader([("act", {})], read(), "Done.")
    await crew.start(made(store, without, act, blob=None))
    assert (await told(store, run)).answer == "Done."
    assert last_answers(without.requests[1]) == [
        "This Runtime has no blob store, where the result is."
    ]


class _Away(MemoryBlobStore):
    """Cannot read for a while."""

    failures = 1

    async def read(
        self, tenant: str, run_id: str, hash: str, *, start: int = 0, stop: int | None = None
    ) -> bytes:
        """Fail, as long as it is told to."""
        if self.failures:
            self.failures -= 1
            raise BlobUnavailable(problem="away")
        return await super().read(tenant, run_id, hash, start=start, stop=stop)


async def test_tool_6_a_blob_store_that_is_away_is_an_error_in_words(
    store: Store, crew: Crew
) -> None:
    """The model may ask again, and gets it."""
    first, second = await answered(store, crew, _Away(), read(0, 5), read(0, 5))
    assert first == "The result cannot be read now: the blob store did not answer."
    assert content_of(second) == "00000"


async def test_tool_5_what_cannot_be_read_is_no_failure_of_the_tool(
    store: Store, crew: Crew
) -> None:
    """However often: the store may come back, and another pattern be one."""
    away = _Away()
    away.failures = 4
    faults = [search("(a"), read(SIZE), search("(b"), read(-1), search("(c"), read(0, 0)]
    told = await answered(store, crew, away, *[read(n, 5) for n in range(4)], *faults, read(0, 5))
    assert told[:4] == ["The result cannot be read now: the blob store did not answer."] * 4
    assert content_of(told[-1]) == "00000"


class _Altered(MemoryBlobStore):
    """Gives another number of bytes than it was asked for, or a bug of its own."""

    def __init__(self, change: Callable[[bytes], bytes]) -> None:
        super().__init__()
        self._change = change

    async def read(
        self, tenant: str, run_id: str, hash: str, *, start: int = 0, stop: int | None = None
    ) -> bytes:
        """Give what it makes of it."""
        return self._change(await super().read(tenant, run_id, hash, start=start, stop=stop))


@pytest.mark.parametrize("asks", [read(0, 100), search("é")])
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: b"", "the blob store has other bytes than were put there"),
        (lambda data: data[:-1], "the blob store has other bytes than were put there"),
        (lambda data: data + b"x", "the blob store has other bytes than were put there"),
        (lambda data: data[1 << 40], "the blob store cannot be used"),
    ],
)
async def test_r_23_a_damaged_blob_is_not_read_as_a_good_one(
    store: Store,
    crew: Crew,
    caplog: pytest.LogCaptureFixture,
    change: Callable[[bytes], bytes],
    words: str,
    asks: Turn,
) -> None:
    """Where its size shows it; the operator reads of it, too, and of an adapter's bug."""
    told = await answered(store, crew, _Altered(change), asks)
    assert told == [f"The result cannot be read now: {words}."]
    assert [one for one in caplog.messages if "cannot be read" in one]


async def test_tool_6_a_blob_that_is_gone_is_an_error_in_words(
    store: Store, crew: Crew, blob: BlobStore
) -> None:
    """Somebody deleted it; what was shown stays."""

    async def forget_it(context: ToolContext) -> str:
        """Lose what came before."""
        return f"{await blob.delete(ACME.tenant, context.run_id)} lost"

    model = Reader([("act", {})], [("forget_it", {})], read(0, 5), search("é"), "Done.")
    await crew.start(made(store, model, act, forget_it, blob=blob, offload_bytes=1024))
    found = await told(store, await admit(store, desk("act", "forget_it")))
    assert found.answer == "Done."
    assert last_answers(model.requests[2]) == ["1 lost"]
    for request in model.requests[3:]:
        assert only(last_answers(request)).startswith("The result cannot be read now: ")
    assert LONG[:500] in only(last_answers(model.requests[1]))
