"""What an error says: in bounded words, whatever a caller gave (R-30)."""

import inspect
import pickle
from collections.abc import Mapping
from typing import Final, get_type_hints

import pytest

from psych_runtime import errors
from psych_runtime.errors import (
    ContentErased,
    CorruptLog,
    InvalidArgument,
    PayloadTooLarge,
    PsychError,
    RunNotFound,
    RunSettled,
    WaitNotFound,
    WaitTimeout,
)

HUGE: Final = "x" * 1_000_000
OURS: Final = (
    "decision",
    "extra",
    "feature",
    "how",
    "message",
    "reason",
    "remedy",
    "state",
    "table",
    "until",
    "why",
)
"""Words that this library chooses itself, or that whoever raises bounds where they are made."""

KINDS: Final = [
    kind
    for name in errors.__all__
    if isinstance(kind := getattr(errors, name), type)
    and issubclass(kind, PsychError)
    and "__init__" in vars(kind)
    and kind.__name__ != "InvalidSpec"  # its text is its issues, which are bounded themselves
]


def facts_of(kind: type[PsychError]) -> Mapping[str, object]:
    """Return arguments for an error's constructor: a huge text wherever a caller's may stand."""
    found: dict[str, object] = {}
    given = get_type_hints(kind.__init__)
    for name, parameter in inspect.signature(kind).parameters.items():
        hint = str(given[name])
        if name in OURS or (name == "problem" and not _is_input(kind)):
            found[name] = "entries" if name == "reason" else "word"
        elif "Sequence" in hint:
            found[name] = [f"wait_{n:026}" for n in range(500)]
        elif "str" in hint:
            found[name] = HUGE
        elif parameter.default is parameter.empty:
            found[name] = 7
    return found


def _is_input(kind: type[PsychError]) -> bool:
    return issubclass(kind, errors.InputError)


def made(kind: type[PsychError]) -> PsychError:
    """Return an error made of huge facts."""
    parameters = inspect.signature(kind).parameters.values()
    facts = facts_of(kind)
    first = [facts[one.name] for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]
    rest = {one.name: facts[one.name] for one in parameters if one.name in facts}
    if first:  # a model's error takes its text first
        rest = {name: fact for name, fact in rest.items() if fact not in first}
    error = kind(*first, **rest)
    assert isinstance(error, PsychError)
    return error


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_r_30_what_a_caller_gave_is_repeated_in_few_words(kind: type[PsychError]) -> None:
    """An id of a megabyte makes no log line of a megabyte; the attribute has all of it."""
    error = made(kind)

    assert len(str(error)) < 2_500
    assert len(repr(error)) < 3_000
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    for name, fact in facts_of(kind).items():
        if fact == HUGE:
            assert getattr(error, name) == HUGE


def test_r_30_both_ends_of_what_was_given_are_told() -> None:
    """Whoever pasted too much sees where it began and ended."""
    text = str(RunNotFound(run_id=f"run_first{HUGE}last"))

    assert text.startswith("no run 'run_first")
    assert "last' in this tenant; check the id" in text


def test_r_30_an_id_stands_there_whole() -> None:
    """Only what is no id is cut."""
    run_id = f"run_{'0' * 26}"
    assert f"no run '{run_id}'" in str(RunNotFound(run_id=run_id))


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0, "0 s"),
        (2.5, "2.5 s"),
        (90.0, "90 s"),
        (150.0, "2.5 minutes"),
        (7_200.0, "2 hours"),
        (31_622_400.0, "366 days"),
    ],
)
def test_wait_timeout_says_its_time_as_people_do(seconds: float, words: str) -> None:
    """Nobody reads 3.16224e+07 s."""
    error = WaitTimeout(run_id="run_1", until="settled", timeout_seconds=seconds)
    assert f"has not settled after {words}; it goes on" in str(error)


def test_log_5_bytes_of_json_are_called_so() -> None:
    """A text of 262,144 characters is more than 256 KiB as JSON: it has quotes."""
    as_json = PayloadTooLarge(what="message", size_bytes=9, bound_bytes=8, as_json=True)
    plain = PayloadTooLarge(what="a blob", size_bytes=9, bound_bytes=8)

    assert "message has 9 bytes as JSON, the bound is 8" in str(as_json)
    assert "a blob has 9 bytes, the bound is 8" in str(plain)


@pytest.mark.parametrize(
    "error",
    [
        ContentErased(run_id="run_1"),
        CorruptLog(reason="unreadable", run_id="run_1", seq=2),
        RunSettled(run_id="run_1", erased=True),
    ],
)
def test_r_11_what_nothing_follows_says_how_to_go_on(error: PsychError) -> None:
    """Neither continues nor next_run leads on from there."""
    assert "begin another thread" in str(error)
    assert 'queue="next_run"' not in str(error)


def test_sus_1_only_some_of_many_waits_are_named() -> None:
    """The attribute has all of them."""
    ids = [f"wait_{n}" for n in range(20)]
    error = WaitNotFound(run_id="run_1", wait=None, open=ids)

    assert "wait_7 and 12 more" in str(error)
    assert error.open == tuple(ids)


def test_a_problem_that_names_a_place_keeps_its_remedy() -> None:
    """The middle of a long one is left out, not its end."""
    text = str(InvalidArgument(what=HUGE, problem=f"/{HUGE}: pass a text"))

    assert text.endswith(": pass a text")
