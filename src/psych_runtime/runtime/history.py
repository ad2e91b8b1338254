"""What was said before in a thread: a Run goes on where its predecessor settled (R-18)."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from psych_runtime.core.codec import decode
from psych_runtime.core.conversation import Conversation
from psych_runtime.core.preview import Whole
from psych_runtime.errors import ContentErased, CorruptLog
from psych_runtime.ports.store import Store
from psych_schema.model import Message
from psych_schema.record import RunAdmitted, RunErased

__all__ = ["Before", "read_before"]


class Before(NamedTuple):
    """What a Run starts from: nothing at the start of a thread."""

    messages: Sequence[Message] = ()
    wholes: Mapping[str, Whole] = MappingProxyType({})  # as a Conversation has them


async def read_before(store: Store, tenant: str, admitted: RunAdmitted) -> Before:
    """Return what was said in a Run's thread before it.

    Raises RunNotFound, ContentErased, CorruptLog for a predecessor that cannot be read.
    """
    logs = []
    previous = admitted.thread.previous
    while previous is not None:
        log = [decode(row).record for row in await store.read(tenant, previous)]
        first = log[0] if log else None
        if not isinstance(first, RunAdmitted):
            raise CorruptLog(reason="run_is_none", run_id=previous, seq=1)
        if isinstance(log[-1], RunErased):  # its contents may not all be gone yet
            raise ContentErased(run_id=previous)
        logs.append(log)
        previous = first.thread.previous
    before = Before()
    for log in reversed(logs):
        conversation = Conversation(*before)
        for record in log:
            conversation.add(record)
        before = Before(conversation.settled(), conversation.wholes)
    return before
