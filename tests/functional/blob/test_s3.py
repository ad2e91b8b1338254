"""Blobs in S3: pages, prefixes, loops, and what the service or its absence says."""

import asyncio
import socket
import subprocess
import sys
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor

import pytest

from psych_runtime.blob import _s3_client
from psych_runtime.blob._keys import parts_of
from psych_runtime.blob._s3_errors import translate
from psych_runtime.blob.contract._check import OURS, THEIRS, put
from psych_runtime.blob.s3 import S3BlobStore, _range
from psych_runtime.errors import (
    BlobError,
    BlobNotFound,
    BlobStoreClosed,
    BlobStoreFull,
    BlobStoreUnusable,
    BlobUnavailable,
    InvalidArgument,
    MissingExtra,
)
from psych_runtime.ports.blob import BlobOwner
from tests.functional.blob.answering import Answering, error_body
from tests.functional.blob.conftest import Service
from tests.functional.blob.harness import S3BlobHarness

TEN = "84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882"
LATER = OURS._replace(run_id="run_01k5a0000000000000000000z0")


def at(endpoint_url: str, bucket: str = "blobs") -> S3BlobStore:
    return S3BlobStore(bucket, endpoint_url=endpoint_url, region="us-east-1")


async def test_r_23_more_blobs_than_a_page_are_all_seen(
    s3: S3BlobHarness, service: Service
) -> None:
    """1005 blobs of one Run: listed, one owner among others, and all deleted."""
    hashes = [f"{number:064x}" for number in range(1005)]
    folder = s3.prefix.strip("/") + "/" + "/".join(parts_of(OURS))

    def place(hash: str) -> None:
        service.put_object(Bucket=s3.bucket, Key=f"{folder}/{hash}", Body=b"x")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(place, hashes))
    async with s3.store() as store:
        await put(store, LATER, b"0123456789")
        await put(store, THEIRS, b"0123456789")
        assert [blob.hash for blob in await store.listed(*OURS)] == hashes
        assert await store.runs() == [OURS, LATER, THEIRS]
        assert await store.runs(limit=1) == [OURS]
        assert await store.runs(after=OURS, limit=1) == [LATER]
        assert await store.delete(*OURS, hashes[1001:]) == 4
        assert await store.delete(*OURS) == 1001
        assert await store.runs() == [LATER, THEIRS]


async def test_sec_3_prefixes_share_a_bucket(s3: S3BlobHarness, service: Service) -> None:
    """Each sees its own alone, also where one prefix begins with another; so do foreign keys."""
    prefixes = ("", "a", "ab", "a/b", "a/n-x")
    stores = [
        S3BlobStore(s3.bucket, prefix=prefix, endpoint_url=s3.endpoint_url, region="us-east-1")
        for prefix in prefixes
    ]
    run = f"n-{OURS.run_id}"
    for key in ("README", "a/README", f"a/{run}/{TEN}", f"e-MFRA/{run}/{TEN}", f"//{run}/{TEN}"):
        service.put_object(Bucket=s3.bucket, Key=key, Body=b"foreign")
    owners = [BlobOwner(f"of {prefix}", OURS.run_id) for prefix in prefixes]
    for store, owner in zip(stores, owners, strict=True):
        await put(store, owner, b"0123456789")
    for store, owner in zip(stores, owners, strict=True):
        assert await store.runs() == [owner]
        assert await store.runs(limit=1) == [owner]
        assert await store.runs(after=owner) == []
        await store.close()


async def test_r_21_each_loop_has_a_client_of_its_own(s3: S3BlobHarness) -> None:
    """One store in two threads at once; closing it closes what both have opened."""
    store = s3.store()
    hash = await put(store, OURS, b"0123456789")
    read: list[bytes] = []
    ready, closed = threading.Event(), threading.Event()

    async def other() -> None:
        read.append(await store.read(*OURS, hash))
        ready.set()
        await asyncio.to_thread(closed.wait)
        with pytest.raises(BlobStoreClosed):
            await store.read(*OURS, hash)

    work = asyncio.create_task(asyncio.to_thread(asyncio.run, other()))
    await asyncio.to_thread(ready.wait)
    assert read == [b"0123456789"]
    await store.close()
    closed.set()
    await work
    with pytest.raises(BlobStoreClosed):
        await store.read(*OURS, hash)


async def test_r_21_tasks_of_one_loop_share_its_client(
    s3: S3BlobHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many first calls at once open one."""
    made: list[None] = []
    make = _s3_client._make

    def counted(endpoint_url: str | None, region: str | None) -> object:
        made.append(None)
        return make(endpoint_url, region)

    monkeypatch.setattr(_s3_client, "_make", counted)
    async with s3.store() as store:
        await asyncio.gather(*(store.listed(*OURS) for _ in range(5)))
    assert len(made) == 1


async def test_r_23_a_bucket_is_never_created(aws: str) -> None:
    """A name that is wrong is said to be wrong, every time, whatever is asked."""
    async with at(aws, "psych-test-no-such-bucket") as store:
        for _ in range(2):
            for call in (
                put(store, OURS, b"0123456789"),
                store.read(*OURS, TEN),
                store.read(*OURS, TEN, start=3, stop=4),
                store.listed(*OURS),
                store.runs(),
                store.delete(*OURS),
            ):
                with pytest.raises(BlobStoreUnusable) as caught:
                    await call
                assert caught.value.problem == (
                    f"bucket 'psych-test-no-such-bucket' at {aws}: NoSuchBucket"
                )
                assert "create the bucket" in caught.value.remedy


async def test_r_23_nobody_at_the_address_is_a_matter_of_time(aws: str) -> None:
    """A refused connection: repeat."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        async with at(f"http://127.0.0.1:{port}") as store:
            with pytest.raises(BlobUnavailable) as caught:
                await store.listed(*OURS)
    assert caught.value.problem == (
        f"bucket 'blobs' at http://127.0.0.1:{port}: EndpointConnectionError"
    )


async def test_sec_2_without_credentials_it_says_where_they_come_from(
    aws: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is sent, and nothing guessed."""
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    async with at(aws) as store:
        with pytest.raises(BlobStoreUnusable) as caught:
            await store.listed(*OURS)
    assert caught.value.problem == f"bucket 'blobs' at {aws}: NoCredentialsError"
    assert "environment, profile, role" in caught.value.remedy


REFUSALS = [
    (403, "AccessDenied", BlobStoreUnusable, "s3:PutObject"),
    (403, "InvalidAccessKeyId", BlobStoreUnusable, "credentials"),
    (403, "SignatureDoesNotMatch", BlobStoreUnusable, "credentials"),
    (400, "ExpiredToken", BlobStoreUnusable, "credentials"),
    (403, "SomethingNew", BlobStoreUnusable, "s3:PutObject"),
    (400, "AuthorizationHeaderMalformed", BlobStoreUnusable, "region"),
    (403, "RequestTimeTooSkewed", BlobStoreUnusable, "clock"),
    (400, "SomethingElse", BlobStoreUnusable, "look the code up"),
    (400, "RequestTimeout", BlobUnavailable, "try again"),
    (503, "SlowDown", BlobUnavailable, "try again"),
    (500, "InternalError", BlobUnavailable, "try again"),
    (502, "BadGateway", BlobUnavailable, "try again"),
    (429, "TooManyRequests", BlobUnavailable, "try again"),
    (507, "XMinioStorageFull", BlobStoreFull, "make room"),
    (400, "XMinioAdminBucketQuotaExceeded", BlobStoreFull, "make room"),
]


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try each request once: what is tried again is the client library's matter."""
    monkeypatch.setattr(_s3_client, "_ATTEMPTS", 1)


@pytest.mark.usefixtures("aws", "at_once")
@pytest.mark.parametrize(("status", "code", "kind", "remedy"), REFUSALS, ids=str)
async def test_r_23_what_the_service_refuses_is_typed(
    status: int, code: str, kind: type[BlobError], remedy: str
) -> None:
    """By its code and status; no text of the service is passed on, not even in a traceback."""
    server = Answering(status, error_body(code))
    async with server.listening() as address, at(address) as store:
        for call in (put(store, OURS, b"x"), store.read(*OURS, TEN), store.listed(*OURS)):
            with pytest.raises(BlobError) as caught:
                await call
            assert type(caught.value) is kind
            assert code in str(caught.value)
            assert remedy in str(caught.value)
            shown = "".join(traceback.format_exception(caught.value))
            assert "hunter2" not in shown
    assert [line.split()[0] for line in server.requests] == ["PUT", "GET", "GET"]


@pytest.mark.usefixtures("aws")
async def test_r_23_a_service_that_is_busy_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three times in all, then it is said to be away."""
    server = Answering(503, error_body("SlowDown"))
    async with server.listening() as address, at(address) as store:
        with pytest.raises(BlobUnavailable):
            await store.listed(*OURS)
    assert len(server.requests) == 3


@pytest.mark.usefixtures("aws", "at_once")
@pytest.mark.parametrize("cut", [1, 9])
async def test_r_23_an_answer_that_is_cut_off_is_no_blob(cut: int) -> None:
    """Neither as a whole nor as a part: the connection broke, and the caller repeats."""
    server = Answering(200, b"0123456789", cut=cut)
    async with server.listening() as address, at(address) as store:
        for stop in (None, 10):
            with pytest.raises(BlobUnavailable):
                await store.read(*OURS, TEN, stop=stop)


@pytest.mark.usefixtures("aws", "at_once")
async def test_r_23_a_list_that_is_cut_off_is_no_list() -> None:
    """A sweep must not take half a page for the whole."""
    server = Answering(200, b"<ListBucketResult></ListBucketResult>", cut=5)
    async with server.listening() as address, at(address) as store:
        with pytest.raises(BlobUnavailable):
            await store.runs()


@pytest.mark.usefixtures("aws", "at_once")
@pytest.mark.parametrize(
    ("code", "kind"), [("AccessDenied", BlobStoreUnusable), ("InternalError", BlobUnavailable)]
)
async def test_st_6_a_blob_that_could_not_be_deleted_is_told(
    s3: S3BlobHarness, monkeypatch: pytest.MonkeyPatch, code: str, kind: type[BlobError]
) -> None:
    """The service answers 200 and refuses one of the keys: the deletion has failed."""
    async with s3.store() as store:
        hash = await put(store, OURS, b"0123456789")
        client = await store._client()

        async def refuses(**_: object) -> dict[str, object]:
            return {"Errors": [{"Key": hash, "Code": code, "Message": "hunter2"}]}

        monkeypatch.setattr(client, "delete_objects", refuses)
        with pytest.raises(BlobError) as caught:
            await store.delete(*OURS)
        assert type(caught.value) is kind
        assert "hunter2" not in str(caught.value)


@pytest.mark.usefixtures("aws", "at_once")
async def test_r_23_bytes_that_changed_on_their_way_are_not_stored(
    s3: S3BlobHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service is told the hash, and keeps nothing else under it."""
    sent: list[object] = []
    async with s3.store() as store:
        client = await store._client()
        send = client.put_object

        async def spoils(**arguments: object) -> object:
            sent.append(arguments["ChecksumSHA256"])
            return await send(**(arguments | {"Body": b"012345678X"}))

        monkeypatch.setattr(client, "put_object", spoils)
        with pytest.raises(BlobUnavailable):
            await put(store, OURS, b"0123456789")
        assert sent == ["hNiYd/DUBB77a/kaFvAkjy/Vc+avBcGflr7bn4gveII="]
        with pytest.raises(BlobNotFound):
            await store.read(*OURS, TEN)


async def test_mod_7_what_is_a_bug_stays_one() -> None:
    """An error that no service and no connection made is not taken for one."""
    bug = KeyError("Contents")
    assert translate(bug, "here") is bug


async def test_st_3_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the extra that brings it."""
    monkeypatch.setitem(sys.modules, "aioboto3", None)
    async with S3BlobStore("blobs") as store:
        with pytest.raises(MissingExtra) as caught:
            await store.runs()
    assert caught.value.extra == "s3"


def test_st_3_the_package_is_loaded_on_use() -> None:
    """Importing the adapter, and making a store, load nothing of it."""
    code = (
        "import sys; from psych_runtime.blob.s3 import S3BlobStore; S3BlobStore('blobs');"
        "print(sorted(sys.modules.keys() & {'aioboto3', 'aiobotocore', 'aiohttp', 'botocore'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    "url",
    [
        "http://me:hunter2@127.0.0.1:9000",
        "http://127.0.0.1:9000/?key=hunter2",
        "http://127.0.0.1:9000/#hunter2",
        "ftp://hunter2",
        "hunter2",
        "http://",
        "",
    ],
)
def test_sec_2_an_endpoint_holds_no_secret(url: str) -> None:
    """A password in an address is refused, and not repeated."""
    with pytest.raises(InvalidArgument) as caught:
        S3BlobStore("blobs", endpoint_url=url)
    assert "hunter2" not in str(caught.value)
    assert caught.value.what == "endpoint_url"


@pytest.mark.parametrize(
    "prefix", ["a b", "a//b", "a/../b", "a/.", "\u00e9", "a\n", "?", "../x", "a" * 64]
)
def test_r_23_a_prefix_that_cannot_be_a_key_is_refused(prefix: str) -> None:
    """At once, with what may be used."""
    with pytest.raises(InvalidArgument) as caught:
        S3BlobStore("blobs", prefix=prefix)
    assert caught.value.what == "prefix"


@pytest.mark.parametrize(
    ("start", "stop", "header"),
    [(0, 1, "0-0"), (2, 9, "2-8"), (2, None, "2-"), (0, 0, "0-0"), (5, 5, "5-5"), (5, 0, "5-5")],
)
def test_r_23_a_range_is_one_that_the_service_takes(
    start: int, stop: int | None, header: str
) -> None:
    """It ignores one that is turned around, and would send the whole blob."""
    assert _range(start, stop) == f"bytes={header}"


def test_r_23_the_longest_key_fits() -> None:
    """The service takes 1024 bytes."""
    longest = BlobOwner("\U0001f9e0" * 128, "\U0001f9e0" * 8)
    store = S3BlobStore("blobs", prefix="p" * 63)
    assert len(store._folder(longest) + TEN) <= 1024
