"""Large results are tested on SQLite with blobs in files, where a module says nothing else."""

from collections.abc import AsyncIterator, Callable
from copy import copy
from functools import partial
from pathlib import Path
from uuid import uuid4

import boto3
import pytest

from psych_runtime.blob.filesystem import FileBlobStore
from psych_runtime.blob.memory import MemoryBlobStore
from psych_runtime.blob.s3 import S3BlobStore
from psych_runtime.ports.blob import BlobStore
from tests.services import start_server


@pytest.fixture(params=["sqlite"])
def kind(request: pytest.FixtureRequest) -> str:
    """One store; a module may name others."""
    name: str = request.param
    return name


@pytest.fixture
def blob_kind() -> str:
    """One blob store; a module may name others."""
    return "files"


@pytest.fixture
def place(blob_kind: str, tmp_path: Path) -> Callable[[], BlobStore]:
    """An empty place for blobs; each call gives another handle of it, as another worker has."""
    if blob_kind == "memory":
        kept = MemoryBlobStore()
        return lambda: copy(kept)
    if blob_kind == "files":
        return partial(FileBlobStore, tmp_path / "blobs")
    endpoint = start_server("aws").url
    bucket = f"psych-test-{uuid4().hex}"
    boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1").create_bucket(Bucket=bucket)
    return partial(S3BlobStore, bucket, endpoint_url=endpoint, region="us-east-1")


@pytest.fixture
async def blob(place: Callable[[], BlobStore]) -> AsyncIterator[BlobStore]:
    """One handle of the place."""
    async with place() as opened:
        yield opened
