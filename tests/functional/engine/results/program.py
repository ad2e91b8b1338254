"""A worker that is killed while it stores what a tool returned.

Its arguments are the URL of a store, a folder for blobs, where it stops, and the tool: `before` a
blob has its name, `behind` it, when no record names it yet, or `never`.
"""

import asyncio
import sys
from pathlib import Path

from psych_runtime import AllowAll, Runtime, ToolRegistry, Worker, open_store
from psych_runtime.blob.filesystem import FileBlobStore
from psych_runtime.testing import FakeModel
from psych_runtime.tools.attachment import Attachment
from psych_schema.common import BlobRef

LEASE_SECONDS = 1.0
LONG = "long\n" * 10_000
PICTURE = b"\x89PNG" * 1000


class StopsBefore(FileBlobStore):
    """Stops where all is written, and nothing has its name yet."""

    def _rename(self, leftover: str, hash: str, folder: int) -> None:
        print(leftover, flush=True)
        sys.stdin.readline()


class StopsBehind(FileBlobStore):
    """Stops where the blob is durable, and the worker does not know it yet."""

    async def put(self, tenant: str, run_id: str, data: bytes, *, media_type: str) -> BlobRef:
        """Store the bytes, say so, and wait for ever."""
        ref = await super().put(tenant, run_id, data, media_type=media_type)
        print(ref.hash, flush=True)
        await asyncio.Event().wait()
        return ref


def text() -> str:
    """Say much."""
    return LONG


def picture() -> Attachment:
    """Take a picture."""
    return Attachment(PICTURE, "image/png")


async def main(url: str, folder: Path, stops: str, name: str) -> None:
    """Be a worker whose model calls one tool."""
    registry = ToolRegistry()
    registry.register(text)
    registry.register(picture)
    registry.register(text, safe_to_retry=True, name="text_again")
    registry.register(picture, safe_to_retry=True, name="picture_again")
    kinds = {"before": StopsBefore, "behind": StopsBehind, "never": FileBlobStore}
    async with open_store(url) as store, kinds[stops](folder) as blob:
        runtime = Runtime(
            store=store,
            model=FakeModel().turn(tool_calls=[(name, {})]).turn(text="Done."),
            registry=registry,
            policy=AllowAll(),
            blob=blob,
            offload_bytes=1024,
        )
        await Worker(runtime, lease_seconds=LEASE_SECONDS, poll_seconds=0.02).run()


if __name__ == "__main__":
    store_url, root, where, tool = sys.argv[1:]
    asyncio.run(main(store_url, Path(root), where, tool))
