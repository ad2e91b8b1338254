"""The places that every blob test runs on."""

import functools
from pathlib import Path
from typing import Protocol, cast
from uuid import uuid4

import boto3
import pytest

from psych_runtime.blob.contract import Harness
from tests.functional.blob.harness import FileBlobHarness, MemoryBlobHarness, S3BlobHarness
from tests.services import start_server


class Service(Protocol):
    """What a test asks of the service beyond blobs; each call waits for its answer."""

    def create_bucket(self, **arguments: object) -> object: ...

    def put_object(self, **arguments: object) -> object: ...


@functools.cache
def _service(endpoint: str) -> Service:
    made: Service = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    return made


@pytest.fixture
def aws() -> str:
    """Give the endpoint of the service; the usual chain finds its credentials."""
    return start_server("aws").url


@pytest.fixture
def service(aws: str) -> Service:
    """A client of the service."""
    return _service(aws)


@pytest.fixture
def bucket(service: Service) -> str:
    """A new bucket."""
    name = f"psych-test-{uuid4().hex}"
    service.create_bucket(Bucket=name)
    return name


@pytest.fixture
def s3(aws: str, bucket: str) -> S3BlobHarness:
    """A place in a new bucket, below the longest prefix."""
    return S3BlobHarness(aws, bucket, prefix="psych/" + "long-Prefix_1." * 4 + "b")


@pytest.fixture
def files(tmp_path: Path) -> FileBlobHarness:
    """A folder that does not exist yet."""
    return FileBlobHarness(tmp_path / "made" / "blobs")


@pytest.fixture(params=["memory", "files", "s3"])
def harness(request: pytest.FixtureRequest) -> Harness:
    """One empty place of each kind."""
    if request.param == "memory":
        return MemoryBlobHarness()
    return cast("Harness", request.getfixturevalue(request.param))
