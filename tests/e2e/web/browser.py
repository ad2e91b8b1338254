"""A client of the example over real HTTP, which follows Runs as a browser's EventSource does."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Final, NamedTuple

import httpx2
from pydantic import JsonValue
from pydantic_core import from_json

from tests.e2e.web.running import START_SECONDS
from tests.functional.engine.harness import BOUND_SECONDS

__all__ = ["ANN", "Browser", "Event", "Reader", "never"]

ANN: Final = {"X-Tenant": "acme", "X-User": "ann"}


class Event(NamedTuple):
    """One record as it came."""

    id: int
    type: str
    data: Mapping[str, JsonValue]


def never(_: Event) -> bool:
    """Go on reading."""
    return False


class Browser:
    """Requests of one person; `address` may change, as when a server is replaced."""

    def __init__(self, address: str, headers: Mapping[str, str] = ANN) -> None:
        self.address = address
        self._client = httpx2.AsyncClient(headers=headers, timeout=BOUND_SECONDS)

    async def ask(
        self, method: str, path: str, json: JsonValue = None, *, key: str | None = None
    ) -> httpx2.Response:
        """Send a request and return its answer."""
        headers = {} if key is None else {"Idempotency-Key": key}
        url = f"{self.address}{path}"
        return await self._client.request(method, url, json=json, headers=headers)

    async def told(
        self, method: str, path: str, json: JsonValue = None, *, key: str | None = None
    ) -> dict[str, JsonValue]:
        """Send a request that succeeds, and return what it says."""
        answer = await self.ask(method, path, json, key=key)
        assert answer.is_success, answer.text
        found: dict[str, JsonValue] = answer.json()
        return found

    async def start(self, message: str, *, key: str | None = None) -> str:
        """Start a Run and return its id."""
        return str((await self.told("POST", "/runs", {"message": message}, key=key))["run_id"])

    async def lines(self, run: str, after: int = 0) -> AsyncGenerator[str]:
        """Yield the lines of a Run's stream."""
        url, headers = f"{self.address}/runs/{run}/events", {"Last-Event-ID": str(after)}
        async with self._client.stream("GET", url, headers=headers) as answer:
            assert answer.is_success, await answer.aread()
            async for line in answer.aiter_lines():
                yield line

    async def close(self) -> None:
        """Close its connections."""
        await self._client.aclose()


class Reader:
    """Follows one Run over any number of connections; `seen` is all that came."""

    def __init__(self, browser: Browser, run: str) -> None:
        self.seen: list[Event] = []
        self.connections = 0
        self._browser = browser
        self._run = run

    @property
    def ids(self) -> list[int]:
        """The id of each event."""
        return [event.id for event in self.seen]

    async def until(self, enough: Callable[[Event], bool]) -> None:
        """Connect behind the last event; cut the connection at one that is enough, or at the end.

        Raises what httpx2 does when the server is gone.
        """
        async with asyncio.timeout(START_SECONDS):  # comments would keep it waiting for ever
            await self._connect(enough)

    async def _connect(self, enough: Callable[[Event], bool]) -> None:
        self.connections += 1
        after = self.seen[-1].id if self.seen else 0
        fields: dict[str, str] = {}
        async with aclosing(self._browser.lines(self._run, after)) as lines:
            async for line in lines:
                name, _, value = line.partition(": ")
                if name:
                    fields[name] = value
                elif "data" in fields:
                    event = Event(int(fields["id"]), fields["event"], from_json(fields["data"]))
                    fields = {}
                    assert event.id == len(self.seen) + 1
                    self.seen.append(event)
                    if enough(event):
                        return

    async def until_type(self, kind: str) -> Event:
        """Read until there is a record of that type, cut the connection, and return it."""
        await self.until(lambda event: event.type == kind)
        assert self.seen[-1].type == kind
        return self.seen[-1]

    async def in_pieces(self) -> None:
        """Read to the end, over a new connection for each two records."""
        while not self.seen or self.seen[-1].type != "run.settled":
            await self.until(lambda _: len(self.seen) % 2 == 0)

    def answers(self) -> list[str]:
        """Return what each model call said, after a check that its deltas are a beginning of it."""
        pieces: dict[JsonValue, str] = {}
        found: list[str] = []
        for _, kind, data in self.seen:
            if kind == "model.delta" and data["channel"] == "text":
                pieces[data["call"]] = pieces.get(data["call"], "") + str(data["text"])
            elif kind == "model.completed":
                assert isinstance(data["said"], dict)
                assert isinstance(data["said"]["parts"], list)
                parts = [one["text"] for one in data["said"]["parts"] if isinstance(one, dict)]
                found.append("".join(map(str, parts)))
                assert pieces[data["call"]]
                assert found[-1].startswith(pieces[data["call"]])
        return found
