"""What may be a tool's `reconcile`, and what it may answer (RUN-1, TOOL-1)."""

from collections.abc import Callable
from functools import partial
from typing import Literal, cast

import pytest

from psych_runtime.errors import InvalidArgument, RegistrationError
from psych_runtime.tools._options import ToolOptions
from psych_runtime.tools.context import StartedCall
from psych_runtime.tools.decorator import tool
from psych_runtime.tools.executed import Executed, failed
from psych_runtime.tools.reconciled import Reconcile, Reconciled, settled_as
from psych_runtime.tools.registry import ToolRegistry


async def pay(number: int) -> str:
    """Pay an invoice.

    Args:
        number: Which one.
    """
    return f"paid {number}"


def find(call: StartedCall) -> Reconciled:
    """Find nothing."""
    return Reconciled.unknown(call.call_id)


async def find_slowly(call: StartedCall) -> Reconciled:
    """Find nothing."""
    return find(call)


def find_there(place: str, call: StartedCall) -> Reconciled:
    """Find nothing at a place."""
    return Reconciled.unknown(f"{place} {call.call_id}")


def find_nothing() -> Reconciled:
    """Take nothing."""
    return Reconciled.unknown()


class Bank:
    """A service."""

    def find(self, call: StartedCall) -> Reconciled:
        """Find nothing."""
        return find(call)

    async def __call__(self, call: StartedCall, *, at: str = "") -> Reconciled:
        return Reconciled.unknown(f"{at} {call.call_id}")


@pytest.mark.parametrize(
    ("reconcile", "is_async"),
    [
        (find, False),
        (find_slowly, True),
        (partial(find_there, "here"), False),
        (Bank().find, False),
        (Bank(), True),
    ],
    ids=["function", "async", "partial", "method", "object"],
)
def test_run_1_whatever_takes_a_started_call_is_taken(
    reconcile: Reconcile, *, is_async: bool
) -> None:
    """Sync ones run in the pool, async ones on the loop, as tools do."""
    registry = ToolRegistry()
    registry.register(pay, reconcile=reconcile)
    asks = registry.get("pay")
    assert asks is not None
    assert asks.reconciler is not None
    assert asks.reconciler.is_async is is_async


@pytest.mark.parametrize(
    "wrong", ["yes", 7, Bank, find_nothing, find_there], ids=["text", "number", "class", "0", "2"]
)
def test_tool_1_what_cannot_be_asked_is_refused(wrong: object) -> None:
    """When it is registered, not after a crash."""
    with pytest.raises(RegistrationError, match="a function of a StartedCall that returns"):
        ToolRegistry().register(pay, reconcile=cast("Reconcile", wrong))


def test_run_1_a_tool_that_is_safe_to_retry_has_none() -> None:
    """It runs again: nobody would ask."""
    with pytest.raises(RegistrationError, match="keep one of them"):
        ToolRegistry().register(pay, safe_to_retry=True, reconcile=find)
    with pytest.raises(RegistrationError, match="keep one of them"):
        tool(safe_to_retry=True, reconcile=find)(pay)


def test_tool_1_a_mark_says_it_as_registering_does() -> None:
    """`@tool(reconcile=...)` is kept until the function is registered."""
    marked = tool(name="pay_marked", reconcile=find)(partial(pay))
    registry = ToolRegistry()
    registry.register(marked)
    registry.register(pay)
    with_it, without = registry.get("pay_marked"), registry.get("pay")
    assert with_it is not None
    assert with_it.reconciler is not None
    assert without is not None
    assert without.reconciler is None
    assert ToolOptions(reconcile=find).checked("pay").reconcile is find


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: Reconciled.unknown(cast("str", OSError("no"))), "reason: must be text"),
        (lambda: Reconciled.not_happened(cast("str", 7)), "write str"),
        (lambda: Reconciled(cast("Literal['happened']", "perhaps")), "outcome: one of happened"),
    ],
)
def test_run_1_an_answer_that_is_none_is_refused_where_it_is_made(
    make: Callable[[], Reconciled], what: str
) -> None:
    """Its author sees where."""
    with pytest.raises(InvalidArgument, match=what):
        make()


def test_r_30_a_long_reason_is_cut() -> None:
    """A record has room for a message, not for a page; what the model must do stands behind it."""

    def brought(*_: object) -> Executed:
        return failed("never", "asked")

    for answer in (Reconciled.unknown("x" * 5000), Reconciled.not_happened("x" * 5000)):
        message = settled_as("pay", answer, brought, 1000).result.message
        assert message is not None
        assert len(message.encode()) < 1300
        assert message.endswith(("before you repeat it.", "You may call it again."))
