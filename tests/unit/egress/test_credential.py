"""Secret headers are sent, and seen nowhere else (SEC-2)."""

import pickle
from base64 import b64encode
from urllib.parse import quote

import httpx2
import pytest

from psych_runtime.egress._credential import Credential
from psych_runtime.errors import InvalidPayload

_KEY = "sk-canary/+=7f3a"


def _sent(credential: Credential) -> httpx2.Headers:
    request = httpx2.Request("POST", "https://api.test/")
    return next(credential.auth_flow(request)).headers


def test_sec_2_key_and_headers_are_put_on_the_request() -> None:
    """Blanks around them, as a file has them, do not count."""
    headers = _sent(Credential(bearer=f" {_KEY}\n", headers={"X-Team": "blue"}))
    assert headers["Authorization"] == f"Bearer {_KEY}"
    assert headers["X-Team"] == "blue"


def test_sec_2_without_a_key_no_authorization_is_sent() -> None:
    """A local server needs none."""
    assert "Authorization" not in _sent(Credential(headers={}))


@pytest.mark.parametrize(
    "form",
    [
        _KEY,
        quote(_KEY, safe=""),
        _KEY.encode().hex(),
        _KEY.encode().hex().upper(),
        b64encode(_KEY.encode()).decode(),
        b64encode(_KEY.encode()).decode().rstrip("="),
    ],
)
def test_sec_2_every_form_is_taken_out_of_a_text(form: str) -> None:
    """Plain, quoted, hexadecimal, base64."""
    credential = Credential(bearer=_KEY, headers={})
    assert form not in credential.redact(f"bad key {form}, sorry")
    assert credential.redact(f"bad key {form}").startswith("bad key [removed]")


def test_sec_2_a_header_s_last_word_is_a_secret_by_itself() -> None:
    """A server that answers with the token leaves out the scheme."""
    credential = Credential(headers={"Authorization": f"Token {_KEY}"})
    assert _KEY not in credential.redact(f"token {_KEY} expired")


def test_sec_2_short_values_are_no_secrets() -> None:
    """They would be found in any text."""
    assert Credential(headers={"X-Version": "1"}).redact("11 of 11") == "11 of 11"


def test_sec_2_repr_tells_names_only() -> None:
    """Not the values."""
    credential = Credential(bearer=_KEY, headers={"X-Team": "blueblue"})
    assert repr(credential) == "Credential(Authorization, X-Team)"


def test_sec_2_it_is_not_pickled() -> None:
    """A secret does not travel by accident."""
    with pytest.raises(TypeError, match="stays in its process"):
        pickle.dumps(Credential(bearer=_KEY, headers={}))


@pytest.mark.parametrize("key", ["sk-canary\r\nX: y", "sk-cänary", "", "  ", "sk\x00canary"])
def test_sec_2_a_key_that_no_header_carries_is_refused_unseen(key: str) -> None:
    """The HTTP client would repeat it in its complaint."""
    with pytest.raises(InvalidPayload, match="api_key: a header value") as caught:
        Credential(bearer=key, headers={})
    assert "canary" not in str(caught.value)
    with pytest.raises(InvalidPayload, match="header X-Key: a header value"):
        Credential(headers={"X-Key": key})
