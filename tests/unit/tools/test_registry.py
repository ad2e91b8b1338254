"""The registry: names, options, marks, and what is known of a tool (TOOL-1)."""

import functools
import hashlib
from collections.abc import Collection

import pytest

from psych_runtime.errors import RegistrationError
from psych_runtime.ports.policy import ToolFacts
from psych_runtime.tools.decorator import tool
from psych_runtime.tools.registered import RegisteredTool
from psych_runtime.tools.registry import ToolRegistry
from psych_runtime.tools.reserved import RESERVED_TOOL_NAMES
from tests.unit.tools.tooling import CONTEXT, registered


def ping() -> str:
    """Answer."""
    return "pong"


def pong() -> str:
    """Answer back."""
    return "ping"


@tool(annotations={"read-only"}, safe_to_retry=True, name="seek", timeout_seconds=5)
def look() -> str:
    """Look."""
    return "seen"


class Bell:
    """A bell."""

    @tool(annotations={"read-only"}, name="ring")
    def __call__(self) -> str:
        """Ring."""
        return "ding"


class Desk:
    """A desk."""

    def __init__(self, drawer: str) -> None:
        self.drawer = drawer

    @tool(annotations=["read-only"])
    def open_drawer(self) -> str:
        """Open the drawer."""
        return self.drawer

    def __call__(self) -> str:
        """Knock on the desk."""
        return "knock"


def only(registry: ToolRegistry) -> RegisteredTool:
    (found,) = registry
    return found


def test_tool_1_a_registered_function_is_known_by_name_and_identity() -> None:
    """Unannotated means it may write; iteration is sorted by name."""
    registry = ToolRegistry()
    assert registry.register(pong) is pong
    registry.register(ping)
    found = registry.get("ping")
    assert found is not None
    assert found.facts == ToolFacts("ping", "code:ping", "write", frozenset())
    assert (found.safe_to_retry, found.interruptible, found.concurrent) == (False, True, True)
    assert (found.timeout_seconds, found.is_async) == (300.0, False)
    assert registry.names() == {"ping", "pong"}
    assert registry.identities() == {"code:ping", "code:pong"}
    assert [one.name for one in registry] == ["ping", "pong"]
    assert (len(registry), "ping" in registry, "pang" in registry) == (2, True, False)
    assert registry.get("pang") is None


def test_tool_1_document_is_canonical_json_and_hash_its_digest() -> None:
    """The same bytes for the same function, whoever registers it."""
    found = registered(ping)
    assert found.document == (
        '{"description":"Answer.","name":"ping","parameters":'
        '{"additionalProperties":false,"properties":{},"type":"object"}}'
    )
    assert found.hash == hashlib.sha256(found.document.encode()).hexdigest()
    assert found.definition.model_dump_json() == (
        '{"name":"ping","description":"Answer.","parameters":'
        '{"additionalProperties":false,"properties":{},"type":"object"}}'
    )


def test_tool_1_register_is_a_decorator_with_and_without_options() -> None:
    """Both give the function back."""
    registry = ToolRegistry()

    @registry.register
    def bare() -> str:
        """Do it."""
        return "bare"

    @registry.register(annotations={"destructive"}, name="drop", concurrent=False)
    def optioned() -> str:
        """Drop it."""
        return "optioned"

    assert (bare(), optioned()) == ("bare", "optioned")
    dropped = registry.get("drop")
    assert dropped is not None
    assert (dropped.risk, dropped.concurrent) == ("destructive", False)
    assert registry.names() == {"bare", "drop"}


@pytest.mark.parametrize(
    ("annotations", "risk"),
    [
        ((), "write"),
        ({"read-only"}, "read_only"),
        (["write"], "write"),
        (("destructive",), "destructive"),
        ({"write", "destructive"}, "destructive"),
    ],
)
def test_tool_1_annotations_say_the_risk(annotations: Collection[str], risk: str) -> None:
    """Any collection of known names."""
    registry = ToolRegistry()
    registry.register(ping, annotations=annotations)
    assert only(registry).risk == risk
    assert only(registry).annotations == frozenset(annotations)


@pytest.mark.parametrize(
    ("annotations", "words"),
    [
        ({"readonly"}, "unknown annotation \"readonly\"; did you mean 'read-only'?"),
        ({"read_only"}, "did you mean 'read-only'?"),
        ({"xyz"}, "known: destructive, read-only, write"),
        ({"read-only", "destructive"}, "a read-only tool cannot also be destructive"),
        ({"read-only", "write"}, "a read-only tool cannot also be write"),
        ("read-only", 'annotations={"read-only"}'),
    ],
)
def test_tool_1_wrong_annotations_are_refused(annotations: Collection[str], words: str) -> None:
    """A typo would otherwise make a harmless tool ask, or a harmful one not."""
    registry = ToolRegistry()
    with pytest.raises(RegistrationError) as caught:
        registry.register(ping, annotations=annotations)
    assert words in str(caught.value)
    assert caught.value.tool == "ping"
    assert len(registry) == 0


@pytest.mark.parametrize("timeout", [0, -1.0, float("inf"), float("nan"), True])
def test_tool_1_a_timeout_is_a_positive_number_of_seconds(timeout: float) -> None:
    """Nothing may wait for ever."""
    with pytest.raises(RegistrationError, match="timeout_seconds must be a positive number"):
        ToolRegistry().register(ping, timeout_seconds=timeout)


def test_tool_1_a_name_is_registered_once() -> None:
    """The first stays."""
    registry = ToolRegistry()
    registry.register(ping)
    with pytest.raises(RegistrationError, match="registered already") as caught:
        registry.register(pong, name="ping")
    assert caught.value.tool == "ping"
    found = registry.get("ping")
    assert found is not None
    assert found.definition.description == "Answer."


@pytest.mark.parametrize("name", sorted(RESERVED_TOOL_NAMES))
def test_tool_1_reserved_names_are_refused(name: str) -> None:
    """The runtime's own tools have them."""
    with pytest.raises(RegistrationError, match="reserved"):
        ToolRegistry().register(ping, name=name)


@pytest.mark.parametrize("name", ["_ping", "1ping", "pi ng", "pïng", "p" * 65, "ping\n"])
def test_tool_1_a_name_is_what_providers_take(name: str) -> None:
    """Letters, digits, underscore, hyphen; at most 64."""
    with pytest.raises(RegistrationError, match="pass name="):
        ToolRegistry().register(ping, name=name)


def test_tool_1_the_longest_name_is_taken() -> None:
    """64 characters, the neighbour of 65."""
    registry = ToolRegistry()
    registry.register(ping, name="P" + "-" * 63)
    assert len(only(registry).name) == 64


def test_tool_1_a_marked_function_brings_its_options() -> None:
    """The function itself stays as it is."""
    found = registered(look)
    assert (found.name, found.risk, found.safe_to_retry) == ("seek", "read_only", True)
    assert found.timeout_seconds == 5.0
    assert look() == "seen"


def test_tool_1_a_bare_mark_means_defaults() -> None:
    """`@tool` without parentheses."""

    @tool
    def plain() -> str:
        """Do it."""
        return "plain"

    assert (registered(plain).risk, plain()) == ("write", "plain")


def test_tool_1_marks_are_found_behind_methods_and_partials() -> None:
    """A bound method, a partial of one, and an object whose call is marked."""
    assert registered(Desk("pens").open_drawer).risk == "read_only"
    assert registered(functools.partial(Desk("pens").open_drawer)).risk == "read_only"
    bell = registered(Bell())
    assert (bell.name, bell.risk, bell.call({}, CONTEXT)) == ("ring", "read_only", "ding")


def test_tool_1_options_are_said_once() -> None:
    """Marked and given again: one of them would be silently ignored."""
    with pytest.raises(RegistrationError, match="keep one of them"):
        ToolRegistry().register(look, annotations={"write"})


def test_tool_1_a_mark_is_checked_where_it_stands() -> None:
    """Not only when it is registered, far away."""
    with pytest.raises(RegistrationError, match="did you mean 'destructive'"):
        tool(annotations={"destructiv"})(ping)


def test_tool_1_a_mark_that_would_be_lost_is_refused() -> None:
    """On a bound method, and above @staticmethod."""
    with pytest.raises(RegistrationError, match="pass the options to register"):
        tool(Desk("pens").__call__)
    with pytest.raises(RegistrationError, match="must stand below @staticmethod"):
        tool(staticmethod(ping))


def test_tool_1_a_callable_object_needs_a_name() -> None:
    """With one it is a tool; its call says what it does."""
    with pytest.raises(RegistrationError, match="pass name="):
        ToolRegistry().register(Desk("pens"))
    registry = ToolRegistry()
    registry.register(Desk("pens"), name="knock")
    assert only(registry).definition.description == "Knock on the desk."
