"""One row with a driver alone, and nothing around it: the yardstick of a step."""

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from itertools import count
from pathlib import Path

import asyncpg

from tests.bench.by_hand_dynamodb import make_table
from tests.bench.dynamodb_server import DynamoPlace
from tests.bench.servers import mysql_connections

__all__ = ["Insert", "dynamodb_insert", "mysql_insert", "postgresql_insert", "sqlite_insert"]

type Insert = Callable[[str], Awaitable[object]]
"""Writes a row with such a text; done once it is on the disk."""


@asynccontextmanager
async def sqlite_insert(path: Path) -> AsyncIterator[Insert]:
    """Insert and commit in a file of its own, which has the store's settings."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL").fetchone()
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE bare (seq INTEGER PRIMARY KEY, body TEXT NOT NULL)")

        async def insert(text: str) -> object:
            return connection.execute("INSERT INTO bare (body) VALUES (?)", (text,))

        yield insert


@asynccontextmanager
async def postgresql_insert(url: str) -> AsyncIterator[Insert]:
    """Insert and commit with a prepared statement."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("CREATE TABLE bare (seq bigserial PRIMARY KEY, body text)")
        prepared = await connection.prepare("INSERT INTO bare (body) VALUES ($1)")
        yield prepared.fetch
    finally:
        await connection.close()


@asynccontextmanager
async def mysql_insert(url: str) -> AsyncIterator[Insert]:
    """Insert and commit."""
    async with mysql_connections(url, 1) as [connection], connection.cursor() as cursor:
        await cursor.execute("CREATE TABLE bare (seq SERIAL PRIMARY KEY, body MEDIUMTEXT)")

        async def insert(text: str) -> object:
            affected: int = await cursor.execute("INSERT INTO bare (body) VALUES (%s)", (text,))
            return affected

        yield insert


@asynccontextmanager
async def dynamodb_insert(place: DynamoPlace) -> AsyncIterator[Insert]:
    """Put an item that must be new, and move the head beside it: there is no less in one step."""
    table, numbers = await make_table(place, "bare"), count(1)

    async def insert(text: str) -> object:
        seq = str(next(numbers))
        item = {"id": {"S": "bare"}, "seq": {"N": seq}, "body": {"S": text}}
        new = {"TableName": table, "Item": item, "ConditionExpression": "attribute_not_exists(id)"}
        head = {
            "TableName": table,
            "Key": {"id": {"S": "bare"}, "seq": {"N": "0"}},
            "UpdateExpression": "SET head = :head",
            "ExpressionAttributeValues": {":head": {"N": seq}},
        }
        both = [{"Put": new}, {"Update": head}]
        answer: object = await place.client.transact_write_items(TransactItems=both)
        return answer

    yield insert
