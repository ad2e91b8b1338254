"""Whoever decides about calls while a session's program waits for its answer."""

import asyncio
import inspect
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Final, Literal

from psych_runtime._decisions import Choice, Edit
from psych_runtime.errors import InvalidArgument
from psych_schema.view import PendingApproval

__all__ = ["Approve", "Approver", "approver"]

type Approver = Callable[[PendingApproval], Choice | None | Awaitable[Choice | None]]
"""Says what becomes of a call; None leaves it waiting."""

type Approve = Approver | Literal["terminal"]

_QUESTION: Final = "approve (a), deny (d), edit (e), or leave it waiting (enter)? "


def approver(approve: object) -> Callable[[PendingApproval], Awaitable[Choice | None]] | None:
    """Return what is asked about each call, None for nobody. Raises InvalidArgument."""
    if approve is None:
        return None
    if approve == "terminal":
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            problem = "this program has no terminal; pass a function, or call decide()"
            raise InvalidArgument(what="approve", problem=problem)
        return _in_terminal
    if not callable(approve):
        problem = 'pass "terminal", or a function of a pending approval'
        raise InvalidArgument(what="approve", problem=problem)
    function: Approver = approve

    async def ask(pending: PendingApproval) -> Choice | None:
        choice = function(pending)
        return await choice if inspect.isawaitable(choice) else choice

    return ask


async def _in_terminal(pending: PendingApproval) -> Choice | None:
    return await asyncio.to_thread(_ask, pending)


def _ask(pending: PendingApproval) -> Choice | None:
    """Show the call, and read until the answer is one; the end of the input leaves it waiting."""
    arguments = json.dumps(pending.arguments, indent=2)  # escaped: nothing in it moves the cursor
    _say(f"\n{pending.identity} ({pending.risk}) wants to run with\n{arguments}")
    try:
        while True:
            match input(_QUESTION).strip().lower():
                case "":
                    return None
                case "a" | "approve":
                    return "approve"
                case "d" | "deny":
                    return "deny"
                case "e" | "edit":
                    edited = _edited()
                    if edited is not None:
                        return edited
    except EOFError:
        return None


def _edited() -> Edit | None:
    try:
        arguments = json.loads(input("arguments as JSON: "))
    except ValueError as error:
        _say(f"not JSON: {error}")
        return None
    if isinstance(arguments, dict):
        return Edit(arguments)
    _say("arguments are an object")
    return None


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
