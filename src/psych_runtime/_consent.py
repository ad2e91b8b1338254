"""Whoever decides about calls while a session's program waits for its answer."""

import asyncio
import inspect
import json
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final, Literal

from psych_runtime._decisions import Choice, Edit
from psych_runtime.errors import InputError, InvalidArgument
from psych_runtime.runtime.requests import JsonLike, check_json
from psych_runtime.tools.arguments import Malformed, check_arguments
from psych_runtime.tools.registered import RegisteredTool
from psych_schema.view import PendingApproval

__all__ = ["Approve", "Approver", "Asks", "Tools", "approver"]

type Approver = Callable[[PendingApproval], Choice | None | Awaitable[Choice | None]]
"""Says what becomes of a call; None leaves it waiting."""

type Approve = Approver | Literal["terminal"]

_QUESTION: Final = "approve (a), deny (d), edit (e), or leave it waiting (enter)? "

_terminal: Final = threading.Lock()  # one question at a time: a line answers the one it stands at


type Asks = Callable[[PendingApproval, Tools], Awaitable[Choice | None]]
"""Asks somebody about a call of one of these tools."""

type Tools = Mapping[str, RegisteredTool]


def approver(approve: object) -> Asks | None:
    """Return what is asked about each call, None for nobody. Raises InvalidArgument.

    What is asked raises InvalidArgument for an edit that does not fit its tool: a Run would only
    ask anew. Whoever sits at a terminal is told, and asked again.
    """
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

    async def ask(pending: PendingApproval, tools: Tools) -> Choice | None:
        made = function(pending)
        choice = await made if inspect.isawaitable(made) else made
        if not (choice is None or choice in ("approve", "deny") or isinstance(choice, Edit)):
            problem = (
                f"about {pending.call_id} it returned {choice!r:.60}; return "
                '"approve", "deny", Edit({...}) or None'
            )
            raise InvalidArgument(what="approve", problem=problem)
        misfit = _misfit(choice.arguments, pending, tools) if isinstance(choice, Edit) else None
        if misfit is not None:
            problem = f"the Edit of {pending.call_id} does not fit: {misfit}"
            raise InvalidArgument(what="approve", problem=f"{problem} Nothing was decided.")
        return choice

    return ask


def _misfit(
    arguments: Mapping[str, JsonLike], pending: PendingApproval, tools: Tools
) -> str | None:
    """Return why edited arguments do not fit the tool, None when they do or nobody can say."""
    tool = tools.get(pending.identity.partition(":")[2])
    if tool is None or tool.identity != pending.identity:
        return None
    checked = check_arguments(tool, check_json(arguments, what=f"Edit of {pending.call_id}"))
    return checked.message if isinstance(checked, Malformed) else None


async def _in_terminal(pending: PendingApproval, tools: Tools) -> Choice | None:
    """Ask in a thread that holds up neither the loop nor, given up, the end of the program."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Choice | None] = loop.create_future()

    def settle(choice: Choice | None, error: BaseException | None) -> None:
        if answer.done():  # whoever asked has gone
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(choice)

    def ask() -> None:
        choice, failure = None, None
        try:
            with _terminal:
                choice = None if answer.done() else _ask(pending, tools)
        except BaseException as error:  # it is for whoever asked
            failure = error
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(settle, choice, failure)

    threading.Thread(target=ask, name="psych-approve", daemon=True).start()
    return await answer


def _ask(pending: PendingApproval, tools: Tools) -> Choice | None:
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
                    edited = _edited(pending, tools)
                    if edited is not None:
                        return edited
    except EOFError:
        return None


def _edited(pending: PendingApproval, tools: Tools) -> Edit | None:
    """Read other arguments; None: they are not to be used, and why has been said."""
    try:
        arguments = json.loads(input("arguments as JSON: "))
    except (ValueError, RecursionError) as error:
        _say(f"not JSON: {error}")
        return None
    if not isinstance(arguments, dict):
        _say("arguments are an object")
        return None
    try:
        misfit = _misfit(arguments, pending, tools)
    except InputError as error:
        misfit = str(error)
    if misfit is None:
        return Edit(arguments)
    _say(ascii(misfit)[1:-1])  # nothing in it moves the cursor
    return None


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
