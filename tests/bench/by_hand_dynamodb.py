"""Keeping records by hand in DynamoDB: one transaction of two items for each record."""

from typing import Final

from aiobotocore.client import AioBaseClient

from tests.bench.by_hand import Texts
from tests.bench.dynamodb_server import DynamoPlace

__all__ = ["Keeper", "make_table"]


async def make_table(place: DynamoPlace, name: str) -> str:
    """Make a table of items with the key (id, seq); return its whole name."""
    whole = f"{place.prefix}{name}"
    await place.client.create_table(
        TableName=whole,
        AttributeDefinitions=[
            {"AttributeName": "id", "AttributeType": "S"},
            {"AttributeName": "seq", "AttributeType": "N"},
        ],
        KeySchema=[
            {"AttributeName": "id", "KeyType": "HASH"},
            {"AttributeName": "seq", "KeyType": "RANGE"},
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    return whole


_RUN: Final = {"N": "0"}  # the seq of the item that is the Run's row


class Keeper:
    """Who writes: the Run's row moves on, if it is where we left it, and the record is put."""

    def __init__(self, client: AioBaseClient, table: str) -> None:
        self._client = client
        self._table = table
        self._heads: dict[str, int] = {}

    async def keep(self, run_id: str, texts: Texts) -> None:
        """Write a record; return once it is kept."""
        [text] = texts
        head = self._heads.get(run_id, 0)
        key = {"id": {"S": run_id}, "seq": _RUN}
        if head:
            values = {":now": {"N": str(head + 1)}, ":was": {"N": str(head)}}
            move: dict[str, object] = {
                "Update": {
                    "TableName": self._table,
                    "Key": key,
                    "UpdateExpression": "SET head = :now",
                    "ConditionExpression": "head = :was",
                    "ExpressionAttributeValues": values,
                }
            }
        else:
            move = self._put({**key, "head": {"N": "1"}})
        record = {"id": {"S": run_id}, "seq": {"N": str(head + 1)}, "body": {"S": text}}
        await self._client.transact_write_items(TransactItems=[move, self._put(record)])
        self._heads[run_id] = head + 1

    def _put(self, item: dict[str, dict[str, str]]) -> dict[str, object]:
        condition = "attribute_not_exists(id)"
        return {"Put": {"TableName": self._table, "Item": item, "ConditionExpression": condition}}
