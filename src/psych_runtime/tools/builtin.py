"""The runtime's own tools: what a model reads of them, and what a call of one asks for.

Each is made of a function, as any tool is (TOOL-1); what the function returns says what the
runtime is to do. Whatever a Spec says of events and skills stands in the description.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import JsonValue

from psych_runtime.tools._options import ToolOptions
from psych_runtime.tools.registered import RegisteredTool, registered
from psych_runtime.tools.text import quote
from psych_schema.common import WaitKind
from psych_schema.spec import AgentSpec, BuiltinName, Event, Expiry, Question, Skill, Task

__all__ = ["NO_SUCH_THING", "Loaded", "Memory", "Tasks", "Waiting", "builtin_tool"]

NO_SUCH_THING: Final = "no_such_thing"
"""The code of a call that asked for what is not there."""

_MOST_QUESTIONS: Final = 16
_MOST_TASKS: Final = 200
_LONGEST_DAYS: Final = 366
_DAY_SECONDS: Final = 86_400


class Waiting(NamedTuple):
    """The call waits for something."""

    kind: WaitKind
    ask: JsonValue
    payload_schema: JsonValue = None
    due_seconds: float | None = None
    expires_seconds: float | None = None
    on_expiry: Expiry = "continue"


class Tasks(NamedTuple):
    """The list of tasks is this from now on."""

    tasks: JsonValue


class Loaded(NamedTuple):
    """A text that the model asked for; with a `code` there is none, and `text` says why."""

    text: str
    code: str | None = None


class Memory(NamedTuple):
    """Something is to be remembered, forgotten or looked up, for the principal of the Run."""

    op: Literal["remember", "forget", "recall"]
    key: str = ""
    value: str = ""
    query: str | None = None


def _ask_question(spec: AgentSpec) -> object:
    rules = spec.questions

    def ask_question(
        questions: Annotated[list[Question], "One or several; all are answered at once."],
    ) -> Waiting | Loaded:
        """Ask the people you work for, and wait for their answer.

        Ask only what you cannot find out yourself and cannot go on without.
        """
        if not 1 <= len(questions) <= _MOST_QUESTIONS:
            return Loaded(f"Ask 1 to {_MOST_QUESTIONS} questions at once.", NO_SUCH_THING)
        for place, one in enumerate(questions, 1):
            if (problem := _problem(one)) is not None:
                return Loaded(f"Question {place}: {problem} Nobody was asked.", NO_SUCH_THING)
        answers = [_answer_schema(one) for one in questions]
        ask: JsonValue = {"questions": [_as_json(one) for one in questions]}
        return Waiting(
            "question",
            ask,
            {
                "type": "object",
                "properties": {
                    "answers": {
                        "type": "array",
                        "prefixItems": answers,
                        "items": False,
                        "minItems": len(answers),
                    }
                },
                "required": ["answers"],
                "additionalProperties": False,
            },
            expires_seconds=rules.expires_seconds,
            on_expiry=rules.on_expiry,
        )

    return ask_question


def _problem(question: Question) -> str | None:
    """Return what people could not answer, or not tell apart, for the model; None is nothing."""
    if not question.question.strip():
        return "it is empty; say what you want to know."
    options = [one.strip() for one in question.options]
    if len(options) == 1:
        return "one option is no choice; give two or more, or leave options out for any text."
    if not all(options):
        return "an option is empty; say what each means."
    twice = next((one for one in options if options.count(one) > 1), None)
    if twice is not None:
        return f"the option {quote(twice)} stands there twice; each must be another one."
    return None


def _as_json(question: Question) -> JsonValue:
    return {
        "question": question.question,
        "options": [*question.options],
        "several": question.several,
    }


def _answer_schema(question: Question) -> JsonValue:
    one: dict[str, JsonValue] = {"type": "string"}
    if question.options:
        one["enum"] = [*dict.fromkeys(question.options)]
    if question.several:
        return {"type": "array", "items": one, "uniqueItems": True}
    return one


def _wait_for_event(spec: AgentSpec) -> object:
    events = {one.name: one for one in spec.events}

    def wait_for_event(event: Annotated[str, "Its name."]) -> Waiting | Loaded:
        """Wait until something happens outside, and get what came with it."""
        found = events.get(event)
        if found is None:
            return Loaded(
                f"There is no event {event[:64]!r}. {_listed(spec.events)}", code=NO_SUCH_THING
            )
        return Waiting(
            "event",
            {"event": event},
            found.payload_schema,
            expires_seconds=found.expires_seconds,
            on_expiry=found.on_expiry,
        )

    return wait_for_event


def _wait_for_time(_: AgentSpec) -> object:
    def wait_for_time(seconds: Annotated[float, "How long, in seconds."]) -> Waiting | Loaded:
        """Wait for some time, at most a year; nothing else happens meanwhile."""
        if not 0 < seconds <= _LONGEST_DAYS * _DAY_SECONDS:
            most = f"{_LONGEST_DAYS} days ({_LONGEST_DAYS * _DAY_SECONDS} seconds)"
            return Loaded(f"Wait more than 0 and at most {most}.", NO_SUCH_THING)
        return Waiting("timer", {"seconds": seconds}, due_seconds=seconds)

    return wait_for_time


def _update_tasks(_: AgentSpec) -> object:
    def update_tasks(
        tasks: Annotated[list[Task], "The whole list as it is now, in order."],
    ) -> Tasks | Loaded:
        """Keep a list of what is to be done, for work of several steps; people see it."""
        if len(tasks) > _MOST_TASKS:
            return Loaded(f"Keep at most {_MOST_TASKS} tasks.", NO_SUCH_THING)
        return Tasks([{"title": one.title, "state": one.state} for one in tasks])

    return update_tasks


def _load_skill(spec: AgentSpec) -> object:
    skills = {one.name: one for one in spec.skills}

    def load_skill(name: Annotated[str, "Its name."]) -> Loaded:
        """Read instructions for a kind of work, before you do it."""
        found = skills.get(name)
        if found is None:
            return Loaded(
                f"There is no skill {name[:64]!r}. {_listed(spec.skills)}", code=NO_SUCH_THING
            )
        return Loaded(found.text)

    return load_skill


def _remember(_: AgentSpec) -> object:
    def remember(
        key: Annotated[str, "A short name for it, at most 128 characters."],
        value: Annotated[str, "What to remember, in a few sentences."],
    ) -> Memory:
        """Remember something for later conversations with whom you work for.

        Under a key that is known already, it takes the place of what was there.
        """
        return Memory("remember", key, value)

    return remember


def _forget(_: AgentSpec) -> object:
    def forget(key: Annotated[str, "Its name."]) -> Memory:
        """Forget something that you remember."""
        return Memory("forget", key)

    return forget


def _recall(_: AgentSpec) -> object:
    def recall(
        query: Annotated[str | None, "Words that must occur; leave it out for everything."] = None,
    ) -> Memory:
        """Look up what you remember of earlier conversations, the newest first."""
        return Memory("recall", query=query)

    return recall


def _listed(things: Sequence[Event | Skill]) -> str:
    """Return names and descriptions, for the model."""
    lines = [f"- {one.name}: {one.description}" for one in things]
    return "\n".join(["There are:", *lines]) if lines else "There is none."


_MAKERS: Final[Mapping[BuiltinName, Callable[[AgentSpec], object]]] = {
    "ask_question": _ask_question,
    "forget": _forget,
    "load_skill": _load_skill,
    "recall": _recall,
    "remember": _remember,
    "update_tasks": _update_tasks,
    "wait_for_event": _wait_for_event,
    "wait_for_time": _wait_for_time,
}

_OPTIONS: Final = ToolOptions(
    annotations=frozenset({"read-only"}), safe_to_retry=True, timeout_seconds=60.0
)


def builtin_tool(spec: AgentSpec, name: BuiltinName) -> RegisteredTool:
    """Return one of the runtime's own tools as an agent has it."""
    found: Sequence[Event | Skill] = ()
    if name == "wait_for_event":
        found = spec.events
    elif name == "load_skill":
        found = spec.skills
    more = f"\n\n{_listed(found)}" if found else ""
    return registered(_MAKERS[name](spec), name, _OPTIONS, kind="builtin", more=more)
