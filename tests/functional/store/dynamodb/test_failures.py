"""What goes wrong between the store and DynamoDB is told in the port's words, without secrets."""

import socket
import traceback
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple

import pytest
from botocore import exceptions
from botocore.exceptions import ClientError

from psych_runtime.errors import (
    PayloadTooLarge,
    PsychError,
    SchemaMissing,
    StoreDenied,
    StoreFull,
    StoreUnavailable,
    UnsupportedStore,
)
from psych_runtime.ports.store import Store
from psych_runtime.store.contract._build import (
    TENANT,
    admission,
    admit,
    claim,
    enlisted,
    key_row,
    unit,
)
from psych_runtime.store.dynamodb._client import DynamoClient, DynamoOptions
from psych_runtime.store.dynamodb._failures import Again, Exists, Refused, translate
from psych_runtime.store.dynamodb.store import DynamoStore
from psych_schema.store import RunRow
from tests.functional.store.dynamodb.answering import answering, silent
from tests.functional.store.dynamodb.harness import DynamoHarness
from tests.functional.store.dynamodb.probes import Answer, Call, Hook, hooked

SECRET = "FwoGZXIvYXdzEJr-a-session-token"


def store_at(endpoint_url: str, *, region: str | None = "us-east-1") -> DynamoStore:
    return DynamoStore(
        DynamoOptions(region=region, endpoint_url=endpoint_url, patience_seconds=1.5)
    )


async def failure_of(store: DynamoStore) -> Exception:
    """Return what entering the store raises, for two ways of asking it."""
    with pytest.raises(PsychError) as entered:
        async with store:
            raise AssertionError
    return entered.value


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


async def test_st_2_nobody_there_is_unavailable() -> None:
    """A port where nobody listens, within the patience."""
    failure = await failure_of(store_at(f"http://127.0.0.1:{free_port()}"))
    assert isinstance(failure, StoreUnavailable)
    assert "EndpointConnectionError" in str(failure)


async def test_st_2_a_server_that_does_not_answer_is_unavailable() -> None:
    """It takes the connection, and that is all."""
    async with silent() as url:
        assert isinstance(await failure_of(store_at(url)), StoreUnavailable)


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (500, "InternalServerError", StoreUnavailable),
        (503, "ServiceUnavailable", StoreUnavailable),
        (400, "ThrottlingException", StoreUnavailable),
        (400, "ProvisionedThroughputExceededException", StoreUnavailable),
        (400, "RequestLimitExceeded", StoreUnavailable),
        (400, "UnrecognizedClientException", StoreDenied),
        (400, "AccessDeniedException", StoreDenied),
        (400, "ExpiredTokenException", StoreDenied),
        (403, "SomethingNew", StoreDenied),
    ],
)
async def test_st_2_answers_of_the_service_are_told_in_our_words(
    status: int, code: str, kind: type[PsychError]
) -> None:
    """With the code and what to do, without the service's text: that may hold a token."""
    async with answering(status, code, f"signed with {SECRET}") as url:
        failure = await failure_of(store_at(url))
    assert type(failure) is kind
    assert code in str(failure)
    assert "GetItem" in str(failure)
    told = "".join(traceback.format_exception(failure))
    assert SECRET not in told
    assert failure.__context__ is None


async def test_st_2_credentials_that_are_missing_are_named(
    monkeypatch: pytest.MonkeyPatch, endpoint_url: str
) -> None:
    """Nothing of the AWS chain has any."""
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    failure = await failure_of(store_at(endpoint_url))
    assert isinstance(failure, StoreDenied)
    assert "credentials" in failure.remedy


async def test_st_3_a_region_that_is_missing_is_named(endpoint_url: str) -> None:
    """Neither the options nor the AWS chain say one."""
    failure = await failure_of(store_at(endpoint_url, region=None))
    assert isinstance(failure, UnsupportedStore)
    assert "region" in failure.remedy


def answer(code: str, message: str = "", status: int = 400) -> ClientError:
    response: Mapping[str, object] = {
        "Error": {"Code": code, "Message": message},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    return ClientError(response, "PutItem")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (answer("ResourceNotFoundException"), SchemaMissing),
        (answer("ResourceInUseException"), Exists),
        (answer("ConditionalCheckFailedException"), Refused),
        (answer("TransactionInProgressException"), Again),
        (answer("ItemCollectionSizeLimitExceededException"), StoreFull),
        (
            answer("ValidationException", "Item size has exceeded the maximum allowed size"),
            PayloadTooLarge,
        ),
        (
            answer("ValidationException", "The provided key element does not match the schema"),
            UnsupportedStore,
        ),
        (
            answer("ValidationException", "The table does not have the specified index: claim"),
            SchemaMissing,
        ),
        (answer("ValidationException", "Invalid UpdateExpression"), ClientError),
        (exceptions.ConnectionClosedError(endpoint_url="x"), Again),
        (exceptions.PartialCredentialsError(provider="x", cred_var="y"), StoreDenied),
        (exceptions.InvalidRegionError(region_name="x y"), UnsupportedStore),
        (ConnectionResetError(), Again),
        (TimeoutError(), Again),
        (KeyError("x"), KeyError),
    ],
    ids=lambda value: str(value)[:60],
)
def test_st_2_an_error_has_one_meaning(error: Exception, kind: type[Exception]) -> None:
    """What is nobody's answer and no failure of the network is a bug, and stays itself."""
    assert type(translate(error, "PutItem")) is kind


def cancelled(*codes: str) -> ClientError:
    error = answer("TransactionCanceledException")
    error.response["CancellationReasons"] = [{"Code": code} for code in codes]
    return error


@pytest.mark.parametrize(
    ("codes", "kind"),
    [
        (("ConditionalCheckFailed", "None"), Refused),
        (("ConditionalCheckFailed", "TransactionConflict"), Again),
        (("None", "ThrottlingError"), Again),
        (("ProvisionedThroughputExceeded",), Again),
        (("None", "ItemCollectionSizeLimitExceeded"), PayloadTooLarge),
        (("DuplicateItem",), Again),
    ],
)
def test_r_1_a_cancelled_transaction_is_judged_by_all_its_reasons(
    codes: tuple[str, ...], kind: type[Exception]
) -> None:
    """A conflict hides conditions that were not judged: only a second try tells the first fault."""
    assert type(translate(cancelled(*codes), "TransactWriteItems")) is kind


class Known(NamedTuple):
    """What was there before a role lost its permissions."""

    header: RunRow
    worker: str
    observer: str


type _Write = Callable[[Store, Known], Awaitable[object]]

LONG: Final = "x" * 450_000
WRITES: Final[Mapping[str, tuple[str, _Write]]] = {
    "admit": (
        "transact_write_items update_item",
        lambda store, _: store.commit([unit(admit(), keys=[key_row("denied")])]),
    ),
    "claim": (
        "transact_write_items put_item",
        lambda store, known: store.commit([claim(known.header, "wrk_denied")]),
    ),
    "delete_runs": (
        "transact_write_items",
        lambda store, known: store.delete_runs(TENANT, [known.header]),
    ),
    "enlist": (
        "put_item",
        lambda store, _: store.enlist("wrk_denied", lease_seconds=9.0, build="b", tools=()),
    ),
    "put_version": ("put_item", lambda store, _: store.put_version(TENANT, "d" * 64, LONG)),
    "put_document": (
        "put_item",
        lambda store, _: store.put_document(TENANT, "d" * 64, "tool", "{}"),
    ),
    "put_value": (
        "put_item",
        lambda store, _: store.put_value(TENANT, "test", "denied", "{}", expect=None),
    ),
    "renew": (
        "update_item",
        lambda store, known: store.renew(known.worker, lease_seconds=9.0, run_ids=()),
    ),
    "bury": ("update_item", lambda store, known: store.bury(known.observer)),
    "set_cap": ("update_item", lambda store, _: store.set_cap(TENANT, 7)),
}
"""Each write of the port, and what it may not be done without."""


async def all_of(store: Store, known: Known) -> list[object]:
    """Return what can be read, of everything that a write would change."""
    return [
        await store.list_runs(TENANT),
        await store.read(TENANT, known.header.run_id),
        await store.key(TENANT, "", "denied"),
        await store.workers(),
        await store.ready(9),
        await store.version(TENANT, "d" * 64),
        await store.document(TENANT, "d" * 64),
        await store.list_values(TENANT, "test"),
        await store.cap(TENANT),
    ]


@pytest.mark.parametrize("denied", ["transact_write_items", "put_item", "update_item"])
async def test_st_2_a_role_that_may_not_write_is_told_so_and_has_written_nothing(
    harness: DynamoHarness, denied: str
) -> None:
    """What it may not do alone: the rest of such a call was not done, or cannot be seen."""
    may_write = False

    async def refuse(call: Call, arguments: Mapping[str, object]) -> Answer:
        if may_write:
            return await call(**arguments)
        raise answer("AccessDeniedException", f"{SECRET} is not authorized to perform")

    hooks: dict[str, Hook] = {denied: refuse}

    def wrap(client: DynamoClient) -> DynamoClient:
        return hooked(**hooks)(client)

    async with harness.open() as allowed, harness.elsewhere(wrap).open() as store:
        header = await allowed.header(TENANT, await admission(allowed))
        observer = await enlisted(allowed, lease_seconds=0.0)
        known = Known(header, await enlisted(allowed, lease_seconds=0.0), observer)
        before = await all_of(allowed, known)
        wanting = [write for needs, write in WRITES.values() if denied in needs.split()]
        assert len(wanting) >= 3
        for write in wanting:
            with pytest.raises(StoreDenied) as caught:
                await write(store, known)
            assert "AccessDeniedException" in caught.value.problem
            assert "UpdateItem" in caught.value.remedy
            assert SECRET not in "".join(traceback.format_exception(caught.value))
            assert await all_of(allowed, known) == before
            assert await all_of(store, known) == before
        may_write = True
        for write in wanting:
            await write(store, known)
