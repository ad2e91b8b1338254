"""Secret headers are sent, and seen nowhere else (SEC-2)."""

import base64
import pickle

import httpx2
import pytest

from psych_runtime.egress import Endpoint
from psych_runtime.egress._credential import Credential
from psych_runtime.errors import InvalidPayload
from tests.canary import CANARY, forms

_KEY = CANARY.replace("é", "e")  # as a header can carry it


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


@pytest.mark.parametrize("name", [name for name in forms(_KEY) if "longest word" not in name])
def test_sec_2_every_form_is_taken_out_of_a_text(name: str) -> None:
    """Quoted, escaped, hexadecimal, base64 as part of a longer text: whatever it is called."""
    form = forms(_KEY)[name].decode()
    if name.startswith("base64"):
        code = base64.urlsafe_b64encode if "URLs" in name else base64.b64encode
        form = code(b"u:p"[: int(name[-1])] + _KEY.encode() + b"tail").decode()
    clean = Credential(bearer=_KEY, headers={}).redact(f"bad key {form}, sorry")
    assert clean.startswith("bad key ")
    assert clean.count("[secret api_key]") == 1
    assert forms(_KEY)[name].decode() not in clean


def test_sec_2_a_header_is_named_where_its_value_stood() -> None:
    """A server that answers with the token alone leaves out the scheme."""
    credential = Credential(headers={"X-Token": "Token c4n4ry-77"})
    assert credential.redact("Token c4n4ry-77 expired") == "[secret X-Token] expired"
    assert credential.redact("token c4n4ry-77 expired") == "token [secret X-Token] expired"


def test_sec_2_short_values_are_no_secrets() -> None:
    """They would be found in any text."""
    assert Credential(headers={"X-Version": "1"}).redact("11 of 11") == "11 of 11"
    assert Credential(bearer="EMPTY", headers={}).redact("an EMPTY answer") == "an EMPTY answer"


def test_sec_2_a_header_may_be_called_as_the_key_is() -> None:
    """Both are taken out."""
    credential = Credential(bearer=_KEY, headers={"api_key": "c4n4ry-77"})
    assert credential.redact(f"{_KEY} c4n4ry-77") == "[secret api_key] [secret api_key]"


def test_sec_2_plain_headers_stay_in_a_text_and_secret_ones_do_not() -> None:
    """A version is no secret, unless it is given as one."""
    plain = {"api-version": "2023-06-01"}
    endpoint = Endpoint("http://api.test", headers={"X-Team": "c4n4ry-77"}, plain_headers=plain)
    words = "c4n4ry-77 wants 2023-06-01"
    assert endpoint.redact(words) == "[secret X-Team] wants 2023-06-01"
    given = Endpoint("http://api.test", headers=plain, plain_headers=plain)
    assert given.redact(words) == "c4n4ry-77 wants [secret api-version]"


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
    with pytest.raises(InvalidPayload, match="header X-Key: a header value"):
        Endpoint("http://api.test", plain_headers={"X-Key": key})


def test_sec_2_a_key_too_long_to_be_looked_for_is_refused_unseen() -> None:
    """What cannot be kept out of texts is not sent."""
    Credential(bearer="k" * 16_384, headers={})
    with pytest.raises(InvalidPayload, match="at most 16384") as caught:
        Credential(bearer="canary" * 3_000, headers={})
    assert "canary" not in str(caught.value)
