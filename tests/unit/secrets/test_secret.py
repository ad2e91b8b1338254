"""A secret's value is reached in one way, and an error about it says anything else (SEC-2)."""

import copy
import json
import logging
import pickle
import pprint
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import pytest
from pydantic import BaseModel, ConfigDict
from pydantic_core import PydanticSerializationError

from psych_runtime.core.secret import Secret, as_header, resolve_secret
from psych_runtime.errors import (
    InvalidArgument,
    PsychError,
    SecretNotFound,
    SecretUnavailable,
    SecretUnusable,
)
from psych_runtime.ports.secrets import SECRET_NAME
from psych_schema.common import Scope
from tests.canary import CANARY, Logs, in_logs, in_texts

ACME: Final = Scope(tenant="acme")
SECRET: Final = Secret("stripe", CANARY)


@dataclass
class Held:
    """Holds one, as code that uses it may."""

    secret: Secret


class Model(BaseModel):
    """Holds one in a model."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    secret: Secret


def test_sec_2_reveal_gives_the_value() -> None:
    """To whoever asks in these words."""
    assert SECRET.reveal() == CANARY
    assert SECRET.name == "stripe"


def test_sec_2_nothing_else_shows_a_secret() -> None:
    """Not repr, str, format, a copy, what lists attributes, or a log line."""
    shown: dict[str, object] = {
        "itself": SECRET,
        "in a list": [SECRET],
        "formatted": f"{SECRET} {SECRET!s:>40} {SECRET!a}",
        "by percent": "%s %r" % (SECRET, SECRET),  # noqa: UP031
        "pprint": pprint.pformat({"a": SECRET}),
        "copy": copy.copy(SECRET),
        "deepcopy": copy.deepcopy([SECRET]),
        "asdict": asdict(Held(SECRET)),
        "dataclass": Held(SECRET),
        "model": Model(secret=SECRET),
        "model_dump": Model(secret=SECRET).model_dump(),
        "json": json.dumps({"a": SECRET}, default=str),
        "attributes": [getattr(SECRET, name) for name in dir(SECRET)],
        "slots": [getattr(SECRET, name) for name in Secret.__slots__],
    }
    assert in_texts(shown, CANARY) == []
    assert "Secret('stripe')" in str(shown["itself"])
    with Logs() as logs:
        logging.getLogger("x").warning("using %s", SECRET, extra={"with": SECRET})
    assert [record.getMessage() for record in logs.records] == ["using Secret('stripe')"]
    assert in_logs(logs.records, CANARY) == []


def test_sec_2_what_would_write_it_refuses() -> None:
    """Pickle of every protocol, JSON, a model as JSON."""
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="stays in its process"):
            pickle.dumps(SECRET, protocol)
    with pytest.raises(TypeError, match="not JSON serializable"):
        json.dumps({"a": SECRET})
    with pytest.raises(PydanticSerializationError) as caught:
        Model(secret=SECRET).model_dump_json()
    assert in_texts({"error": caught.value}, CANARY) == []
    assert not hasattr(SECRET, "__dict__")


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("", "it is empty"),
        (" \n\t   ", "it is empty"),
        ("canry", "it is too short to be kept out of texts; use 6 characters or more"),
        ("canary" * 4000, "it has 24000 bytes, at most 16384 are read"),
        ("é" * 8193, "it has 16386 bytes"),
        ("canary\ud800", "it is no Unicode"),
    ],
)
def test_sec_2_a_value_that_cannot_be_used_is_refused_unseen(value: str, problem: str) -> None:
    """The error names the secret and the bound."""
    with pytest.raises(SecretUnusable, match=problem) as caught:
        Secret("stripe", value)
    assert caught.value.name == "stripe"
    assert "can" not in str(caught.value).replace("cannot be used", "")
    assert "'stripe' cannot be used" in str(caught.value)


@pytest.mark.parametrize("value", ["abcdef", "é" * 8192, "a\nb\0cdef", "x" * 16384])
def test_sec_2_the_bounds_themselves_are_values(value: str) -> None:
    """Six characters, 16,384 bytes, several lines."""
    assert Secret("stripe", value).reveal() == value


@pytest.mark.parametrize(
    "value", ["canary\r\nX: y", "canary\n", "canary\0", " canary", "canary ", "canäry", "can\tary"]
)
def test_sec_2_what_no_header_carries_is_refused_unseen(value: str) -> None:
    """The HTTP client would repeat it in its complaint."""
    with pytest.raises(SecretUnusable, match="a header is printable ASCII on one line") as caught:
        as_header(Secret("stripe", value))
    assert "canary" not in repr(caught.value)


def test_sec_2_a_header_is_the_value() -> None:
    """Blanks inside are part of it."""
    assert as_header(Secret("stripe", "Token sk-1234")) == "Token sk-1234"


class Giving:
    """A resolver that gives, or raises, what a test wants."""

    def __init__(self, what: object) -> None:
        self.what = what

    async def resolve(self, scope: Scope, name: str) -> str:
        if isinstance(self.what, BaseException):
            raise self.what
        return self.what  # type: ignore[return-value]


async def test_sec_2_a_secret_is_resolved_by_name() -> None:
    """As a Secret, which knows its name."""
    secret = await resolve_secret(Giving(CANARY), ACME, "stripe/live.key-1")
    assert (secret.name, secret.reveal()) == ("stripe/live.key-1", CANARY)


def _raised_inside() -> Exception:
    try:
        raise OSError(CANARY)
    except OSError:
        try:
            raise KeyError(CANARY) from OSError(CANARY)
        except KeyError as error:
            error.add_note(CANARY)
            return error


@pytest.mark.parametrize(
    ("raised", "kind", "text"),
    [
        (_raised_inside(), SecretUnavailable, "(the resolver raised KeyError)"),
        (TimeoutError(CANARY), SecretUnavailable, "(the resolver raised TimeoutError)"),
        (SecretNotFound(name=CANARY, remedy="add it"), SecretNotFound, "tenant; add it"),
        (SecretUnavailable(name=CANARY, problem="down"), SecretUnavailable, "(down)"),
        (SecretUnusable(name=CANARY, problem="bad"), SecretUnusable, "cannot be used: bad"),
        (b"canary" + CANARY.encode(), SecretUnusable, "it is a bytes, no text"),
        (None, SecretUnusable, "it is a NoneType, no text"),
        ("short", SecretUnusable, "too short"),
    ],
)
async def test_sec_2_what_a_resolver_raises_is_told_without_its_words(
    raised: object, kind: type[PsychError], text: str
) -> None:
    """Nor is it chained: whoever logs our error logs no more than our error."""
    if isinstance(raised, PsychError):
        raised.__context__ = OSError(CANARY)
    with pytest.raises(kind) as caught:
        await resolve_secret(Giving(raised), ACME, "stripe")
    with Logs() as logs:
        logging.getLogger("x").error("failed", exc_info=caught.value)
    assert text in str(caught.value)
    assert "'stripe'" in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert in_texts({"error": caught.value, "facts": vars(caught.value)}, CANARY) == []
    assert in_logs(logs.records, CANARY) == []


async def test_sec_2_cancelling_is_no_failure_of_a_resolver() -> None:
    """It goes through."""
    with pytest.raises(KeyboardInterrupt):
        await resolve_secret(Giving(KeyboardInterrupt()), ACME, "stripe")


@pytest.mark.parametrize(
    "name", ["", "1a", "a b", "a\n", "-a", "../a", "/a", "a" * 129, "ä", "a$", CANARY, 7, None]
)
async def test_sec_2_what_is_no_name_is_refused_unseen(name: object) -> None:
    """Somebody may have written the value where the name belongs."""
    with pytest.raises(InvalidArgument, match="name it, never write its value") as caught:
        await resolve_secret(Giving(CANARY), ACME, name)  # type: ignore[arg-type]
    assert in_texts({"error": caught.value}, CANARY) == []
    assert str(name) not in str(caught.value) or len(str(name)) < 3


def test_sec_2_a_name_is_what_a_spec_may_say() -> None:
    """The port and the schema have one grammar."""
    schema = json.loads((Path(__file__).parents[3] / "schema/spec/tool.json").read_text())
    assert schema["$defs"]["SecretName"]["pattern"] == f"^{SECRET_NAME.pattern}$"
