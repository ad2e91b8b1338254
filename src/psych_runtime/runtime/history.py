"""What was said before in a thread: a Run goes on where its predecessor settled (R-18)."""

from psych_runtime.core.codec import decode
from psych_runtime.core.conversation import Conversation
from psych_runtime.errors import ContentErased, CorruptLog
from psych_runtime.ports.store import Store
from psych_schema.model import Message
from psych_schema.record import RunAdmitted, RunErased

__all__ = ["messages_before"]


async def messages_before(store: Store, tenant: str, admitted: RunAdmitted) -> tuple[Message, ...]:
    """Return the conversation that a Run starts from; empty at the start of a thread.

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
    before: tuple[Message, ...] = ()
    for log in reversed(logs):
        conversation = Conversation(before)
        for record in log:
            conversation.add(record)
        before = conversation.settled()
    return before
