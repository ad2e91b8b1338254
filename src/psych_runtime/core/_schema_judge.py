"""Judges one value by one JSON Schema, in a bounded number of steps (PUB-1, SEC-3).

A library would do, but none bounds its work: patterns that explode, schemas that double
themselves, the same long value told in a thousand errors. Here each look is counted before it
is taken. A schema stands alone, so `$id` and `$schema` inside it change nothing.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from pydantic import JsonValue

from psych_runtime.core._patterns import Patterns
from psych_runtime.core._schema_parts import REFERENCES, Path, References
from psych_runtime.core._schema_rules import ASSERTIONS, is_number
from psych_runtime.core._work import Work

__all__ = ["Fault", "Judge"]

_STEPS_A_VISIT: Final = 8
_STEPS_A_BRANCH: Final = 8
_STEPS_A_TEXT: Final = 2
_MOST_FAULTS: Final = 1_000
_MOST_INNER: Final = 10
_CHARACTERS_A_STEP: Final = 50
_BITS_A_STEP: Final = 1_000
_COMPARING: Final = frozenset({"const", "enum", "pattern", "uniqueItems"})
_SAME_VALUE: Final = frozenset(
    {*REFERENCES, "allOf", "anyOf", "dependentSchemas", "if", "not", "oneOf"}
)
_TRACKED: Final = frozenset({"unevaluatedItems", "unevaluatedProperties"})
_MEMBERS: Final = frozenset(
    {
        "additionalProperties",
        "dependentRequired",
        "patternProperties",
        "properties",
        "propertyNames",
        "required",
        "unevaluatedProperties",
    }
)
_ITEMS: Final = frozenset({"contains", "items", "prefixItems", "unevaluatedItems"})


class Fault(NamedTuple):
    """One rule that one value breaks."""

    path: Path  # where the value stands
    rule: str  # the keyword; "false": nothing may stand there
    bound: JsonValue  # what the keyword says, or the one part of it that is broken
    value: JsonValue
    inner: tuple["Fault", ...] = ()  # of a choice: why none of it fits


class _Seen:
    """Which parts of a value some schema has judged; kept where `unevaluated...` asks for it."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.items: set[int] = set()

    def add(self, other: "_Seen") -> None:
        self.names |= other.names
        self.items |= other.items


class _Look(NamedTuple):
    """One value while it is judged."""

    value: JsonValue
    path: Path
    faults: list[Fault]
    seen: _Seen | None

    def fault(
        self, rule: str, bound: JsonValue, inner: Iterable[Fault] = (), path: Path = ()
    ) -> None:
        """Keep a fault; past a thousand, that there are some is enough."""
        if len(self.faults) < _MOST_FAULTS:
            kept = tuple(inner)[:_MOST_INNER]
            self.faults.append(Fault((*self.path, *path), rule, bound, self.value, kept))

    def alone(self) -> "_Look":
        """Return a look at the same value whose outcome is not yet the outcome of this one."""
        return _Look(self.value, self.path, [], None if self.seen is None else _Seen())


class _Plan(NamedTuple):
    """What a schema asks for, so that its other keywords cost nothing at the next value."""

    assertions: tuple[tuple[str, JsonValue], ...]
    compares: bool
    same_value: bool
    members: bool
    items: bool
    is_tracked: bool


class Judge:
    """Judges values by one schema; all of them share its steps.

    Raises TooMuchWork, BadPattern, and RecursionError when the value or a circle is too deep.
    """

    def __init__(self, schema: JsonValue, work: Work, patterns: Patterns | None = None) -> None:
        self._schema = schema
        self._work = work
        self._references = References(schema)
        self._patterns = Patterns(work) if patterns is None else patterns
        self._plans: dict[int, _Plan] = {}  # by the schema's id: it lives as long as the whole
        self._texts: dict[int, frozenset[str]] = {}

    def faults(self, value: JsonValue) -> list[Fault]:
        """Return what is wrong with `value`; at most a thousand faults."""
        look = _Look(value, (), [], None)
        self._judge(self._schema, look)
        return look.faults

    def _judge(self, schema: JsonValue, look: _Look) -> None:
        self._work.spend(_STEPS_A_VISIT)
        if schema is False:
            look.fault("false", False)
        if not isinstance(schema, dict):
            return
        plan = self._plans.get(id(schema)) or self._plan(schema)
        outer = look.seen
        if plan.is_tracked:
            look = look._replace(seen=_Seen())
        if plan.assertions:
            self._assert(plan.assertions, look)
        if plan.compares:
            self._value(schema, look)
        if plan.same_value:
            self._same_value(schema, look)
        if plan.members and isinstance(look.value, dict):
            self._members(schema, look.value, look)
        elif plan.items and isinstance(look.value, list):
            self._items(schema, look.value, look)
        if plan.is_tracked and outer is not None and look.seen is not None:
            self._add(outer, look.seen)

    def _plan(self, schema: dict[str, JsonValue]) -> _Plan:
        """Look once at which keywords a schema has; most have few."""
        self._work.spend(_STEPS_A_VISIT + len(schema))
        keywords = schema.keys()
        plan = self._plans[id(schema)] = _Plan(
            tuple((keyword, schema[keyword]) for keyword in keywords & ASSERTIONS.keys()),
            compares=not _COMPARING.isdisjoint(keywords),
            same_value=not _SAME_VALUE.isdisjoint(keywords),
            members=not _MEMBERS.isdisjoint(keywords),
            items=not _ITEMS.isdisjoint(keywords),
            is_tracked=not _TRACKED.isdisjoint(keywords),
        )
        return plan

    def _assert(self, assertions: tuple[tuple[str, JsonValue], ...], look: _Look) -> None:
        self._work.spend(len(assertions))
        if isinstance(look.value, int):
            self._work.spend(len(assertions) * (look.value.bit_length() // _BITS_A_STEP))
        for keyword, bound in assertions:
            if not ASSERTIONS[keyword](look.value, bound):
                look.fault(keyword, bound)

    def _value(self, schema: dict[str, JsonValue], look: _Look) -> None:
        """Judge by the keywords that compare whole values, and by `pattern`."""
        value, choice = look.value, schema.get("enum")
        if isinstance(choice, list) and self._text(value) not in self._known(choice):
            look.fault("enum", choice)
        if "const" in schema:
            const = schema["const"]
            if self._text(value) != self._text(const):
                look.fault("const", const)
        if schema.get("uniqueItems") is True and isinstance(value, list):
            texts = [self._text(one) for one in value]
            if len(set(texts)) < len(texts):
                look.fault("uniqueItems", True)
        pattern = schema.get("pattern")
        if isinstance(pattern, str) and isinstance(value, str) and not self._is_in(pattern, value):
            look.fault("pattern", pattern)

    def _same_value(self, schema: dict[str, JsonValue], look: _Look) -> None:
        """Judge the same value by the schemas inside this one."""
        for keyword in REFERENCES:
            target = schema.get(keyword)
            if isinstance(target, str):
                place = self._references.place_of(target)
                if place is None:
                    look.fault(keyword, target)
                self._judge(place, look)
        for part in _listed(schema.get("allOf")):
            self._judge(part, look)
        for keyword in ("anyOf", "oneOf"):
            if isinstance(schema.get(keyword), list):
                self._choice(keyword, schema[keyword], look)
        if "not" in schema and self._fits(schema["not"], look.alone()):
            look.fault("not", schema["not"])
        if "if" in schema:
            branch = "then" if self._fits(schema["if"], look) else "else"
            if branch in schema:
                self._judge(schema[branch], look)
        if isinstance(look.value, dict):
            for name, part in _named(schema.get("dependentSchemas")).items():
                self._work.spend(1)
                if name in look.value:
                    self._judge(part, look)

    def _choice(self, keyword: str, choice: JsonValue, look: _Look) -> None:
        fitting = 0
        inner: list[Fault] = []
        for part in _listed(choice):
            if fitting and look.seen is None and keyword == "anyOf":
                return
            alone = look.alone()
            fitting += self._fits(part, look, alone)
            inner += alone.faults[:_MOST_INNER]
        if not fitting:
            look.fault(keyword, choice, inner)
        elif fitting > 1 and keyword == "oneOf":
            look.fault(keyword, choice)

    def _fits(self, schema: JsonValue, look: _Look, alone: _Look | None = None) -> bool:
        """Say whether the value fits; what was seen counts only if it does."""
        self._work.spend(_STEPS_A_BRANCH)
        alone = look.alone() if alone is None else alone
        self._judge(schema, alone)
        if alone.faults:
            return False
        if look.seen is not None and alone.seen is not None:
            self._add(look.seen, alone.seen)
        return True

    def _members(
        self, schema: dict[str, JsonValue], value: dict[str, JsonValue], look: _Look
    ) -> None:
        for name in _listed(schema.get("required")):
            self._work.spend(1)
            if isinstance(name, str) and name not in value:
                look.fault("required", name)
        for name, needed in _named(schema.get("dependentRequired")).items():
            self._work.spend(1)
            for other in _listed(needed) if name in value else ():
                self._work.spend(1)
                if isinstance(other, str) and other not in value:
                    look.fault("dependentRequired", [name, other])
        if "propertyNames" in schema:
            for name in value:
                alone = _Look(name, look.path, [], None)
                self._judge(schema["propertyNames"], alone)
                if alone.faults:
                    look.fault("propertyNames", name, alone.faults)
        judged = self._declared(schema, value, look)
        if "additionalProperties" in schema:
            self._rest(schema["additionalProperties"], judged, look)
        if "unevaluatedProperties" in schema and look.seen is not None:
            self._rest(schema["unevaluatedProperties"], look.seen.names, look)

    def _declared(
        self, schema: dict[str, JsonValue], value: dict[str, JsonValue], look: _Look
    ) -> set[str]:
        """Judge the members that the schema names or whose name has a pattern; return them."""
        properties = _named(schema.get("properties"))
        patterns = _named(schema.get("patternProperties"))
        shorter = min(properties, value, key=len)
        self._work.spend(len(shorter))
        judged = {name for name in shorter if name in properties and name in value}
        for name in sorted(judged):
            self._judge(properties[name], self._part(look, name, value[name]))
        for pattern, part in patterns.items():
            for name, one in value.items():
                if self._is_in(pattern, name):
                    judged.add(name)
                    self._judge(part, self._part(look, name, one))
        if look.seen is not None:
            look.seen.names |= judged
        return judged

    def _rest(self, schema: JsonValue, judged: set[str], look: _Look) -> None:
        """Judge the members that are not in `judged`."""
        for name, one in _named(look.value).items():
            self._work.spend(1)
            if name not in judged:
                self._judge(schema, self._part(look, name, one))
        if look.seen is not None:
            look.seen.names |= _named(look.value).keys()

    def _items(self, schema: dict[str, JsonValue], value: list[JsonValue], look: _Look) -> None:
        first = _listed(schema.get("prefixItems"))
        for index, (part, one) in enumerate(zip(first, value, strict=False)):
            self._judge(part, self._part(look, index, one))
        judged = set(range(min(len(first), len(value))))
        self._work.spend(len(judged))
        if "items" in schema:
            for index in range(len(first), len(value)):
                self._judge(schema["items"], self._part(look, index, value[index]))
                judged.add(index)
        if "contains" in schema:
            judged |= self._contained(schema, value, look)
        if look.seen is None:
            return
        look.seen.items |= judged
        if "unevaluatedItems" in schema:
            for index, one in enumerate(value):
                self._work.spend(1)
                if index not in look.seen.items:
                    self._judge(schema["unevaluatedItems"], self._part(look, index, one))
            look.seen.items |= set(range(len(value)))

    def _contained(
        self, schema: dict[str, JsonValue], value: list[JsonValue], look: _Look
    ) -> set[int]:
        """Return which items are what the list must contain; too few or too many is a fault."""
        found: set[int] = set()
        for index, one in enumerate(value):
            alone = _Look(one, (), [], None)
            self._judge(schema["contains"], alone)
            if not alone.faults:
                found.add(index)
        least, most = schema.get("minContains", 1), schema.get("maxContains")
        if isinstance(least, int | float) and len(found) < least:
            look.fault("contains", least)
        if isinstance(most, int | float) and len(found) > most:
            look.fault("maxContains", most)
        return found

    def _part(self, look: _Look, name: str | int, value: JsonValue) -> _Look:
        return _Look(value, (*look.path, name), look.faults, None)

    def _add(self, seen: _Seen, more: _Seen) -> None:
        self._work.spend(len(more.names) + len(more.items))
        seen.add(more)

    def _is_in(self, pattern: str, text: str) -> bool:
        return self._patterns.matcher(pattern).is_in(text, self._work)

    def _known(self, choice: list[JsonValue]) -> frozenset[str]:
        """Return the texts of an `enum`, made once."""
        if id(choice) not in self._texts:
            self._texts[id(choice)] = frozenset(self._text(one) for one in choice)
        return self._texts[id(choice)]

    def _text(self, value: JsonValue) -> str:
        """Return a text that two values share exactly when JSON Schema calls them equal."""
        self._work.spend(_STEPS_A_TEXT)
        if isinstance(value, str):
            self._work.spend(len(value) // _CHARACTERS_A_STEP)
            return repr(value)
        if isinstance(value, list):
            return f"[{','.join([self._text(one) for one in value])}]"
        if isinstance(value, dict):
            members = [f"{name!r}:{self._text(one)}" for name, one in value.items()]
            self._work.spend(sum(map(len, value)) // _CHARACTERS_A_STEP)
            return f"{{{','.join(sorted(members))}}}"
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and is_number(value):
            self._work.spend(value.bit_length() // _BITS_A_STEP)
            return hex(value)
        return repr(value)


def _listed(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _named(value: JsonValue) -> dict[str, JsonValue]:
    return value if isinstance(value, dict) else {}
