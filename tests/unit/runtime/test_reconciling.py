"""Which open calls can be looked up (R-9)."""

from psych_runtime.core.fold import RunState
from psych_runtime.runtime.attempt import Attempt
from psych_runtime.runtime.reconciling import can_reconcile
from psych_runtime.tools.context import StartedCall
from psych_runtime.tools.reconciled import Reconcile, Reconciled
from psych_runtime.tools.registered import RegisteredTool
from psych_runtime.tools.registry import ToolRegistry
from tests.unit.core.logs import claimed


def find(_: StartedCall) -> Reconciled:
    """Find nothing."""
    return Reconciled.unknown()


def paying(reconcile: Reconcile | None) -> RegisteredTool:
    """Return a tool."""
    registry = ToolRegistry()

    @registry.register(reconcile=reconcile)
    def pay() -> None:
        """Pay."""

    [tool] = registry
    return tool


def holding(state: RunState) -> Attempt:
    """Return an attempt of which nothing but the state is known."""
    attempt = Attempt.__new__(Attempt)
    attempt.state = state
    return attempt


def test_r_9_nobody_looks_a_call_of_its_own_attempt_up() -> None:
    """Whoever began it knows more than the service; a later attempt asks."""
    log = claimed()
    [call] = log.turn(["pay"])
    log.start(call)
    assert not can_reconcile(holding(log.state), call, paying(find))
    log.claim()
    assert can_reconcile(holding(log.state), call, paying(find))


def test_r_9_a_tool_that_is_not_here_or_has_no_lookup_is_not_asked() -> None:
    """Also in a later attempt."""
    log = claimed()
    [call] = log.turn(["pay"])
    log.start(call)
    log.claim()
    assert not can_reconcile(holding(log.state), call, paying(None))
    assert not can_reconcile(holding(log.state), call, None)
