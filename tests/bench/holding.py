"""What a worker has that sits in a call until it is killed."""

import asyncio
import os
from multiprocessing.connection import Connection
from typing import Annotated, Final

import aioboto3  # noqa: F401  loaded here: urllib3, which it loads, binds a socket to learn of IPv6

from psych_runtime import ToolRegistry
from tests.bench.elsewhere import Equipment
from tests.bench.workload import Model

__all__ = ["equip"]

_FOR_EVER_SECONDS: Final = 3600.0


def equip(pipe: Connection) -> Equipment:
    """Return the model, and a tool that says that it has begun and never ends."""
    tools = ToolRegistry()

    async def look_up(order: Annotated[int, "the order's number"]) -> str:
        """Say where an order is."""
        pipe.send(os.getpid())
        await asyncio.sleep(_FOR_EVER_SECONDS)
        return f"order {order}: on its way"

    tools.register(look_up, annotations={"read-only"})
    return Equipment(Model(), tools)
