"""A DynamoDB for the store's tests."""

from collections.abc import AsyncIterator

import aioboto3  # noqa: F401  loaded here: urllib3, which it loads, binds a socket to learn of IPv6
import pytest

from psych_runtime.ports.store import Store
from tests.functional.store.dynamodb.harness import DynamoHarness, NewHarness, Wrap
from tests.services import start_server


@pytest.fixture(scope="session")
def endpoint_url() -> str:
    """Where DynamoDB is."""
    return start_server("aws").url


@pytest.fixture
async def new_harness(endpoint_url: str) -> AsyncIterator[NewHarness]:
    """What makes empty stores; their tables are deleted in the end."""
    made: list[DynamoHarness] = []

    def make(wrap: Wrap | None = None, *, shards: int = 4) -> DynamoHarness:
        made.append(DynamoHarness(endpoint_url, wrap, shards=shards))
        return made[-1]

    yield make
    for each in made:
        await each.drop()


@pytest.fixture
def harness(new_harness: NewHarness) -> DynamoHarness:
    """One empty store."""
    return new_harness()


@pytest.fixture
async def store(harness: DynamoHarness) -> AsyncIterator[Store]:
    """A handle of an empty, migrated store."""
    async with harness.open() as opened:
        yield opened
