"""Tables of the bench's own in DynamoDB's emulator, gone with the block."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

from aiobotocore.client import AioBaseClient
from aiobotocore.session import get_session

from tests.bench.servers import NAME
from tests.services import start_server
from tests.stores.aws import emulator_alone

__all__ = ["LEASE_SECONDS", "DynamoPlace", "dynamodb_place"]

LEASE_SECONDS: Final = 60.0
"""Of a worker there: the emulator answers one request after another, and many wait."""

_REGION: Final = "us-east-1"


class DynamoPlace(NamedTuple):
    """Tables whose names begin with `prefix`, and the driver's own client."""

    address: str
    prefix: str
    client: AioBaseClient

    @property
    def url(self) -> str:
        """The URL for workers with leases of `LEASE_SECONDS`, and for those who have time."""
        return self.url_for(LEASE_SECONDS)

    def url_for(self, lease_seconds: float) -> str:
        """Return the URL for workers with such leases."""
        where = f"dynamodb://{_REGION}?endpoint_url={self.address}"
        return f"{where}&patience_seconds={lease_seconds / 3:g}"


@asynccontextmanager
async def dynamodb_place() -> AsyncIterator[DynamoPlace]:
    """Yield where tables may be made; they are deleted with the block."""
    address, prefix = start_server("aws").url, f"{NAME}_"
    with emulator_alone():
        opening = get_session().create_client("dynamodb", region_name=_REGION, endpoint_url=address)
        async with opening as client:
            try:
                yield DynamoPlace(address, prefix, client)
            finally:
                await _delete_tables(client, prefix)


async def _delete_tables(client: AioBaseClient, prefix: str) -> None:
    async for page in client.get_paginator("list_tables").paginate():
        for name in page["TableNames"]:
            if name.startswith(prefix):
                await client.delete_table(TableName=name)
