"""A canary key appears in no error, repr or log line, whatever the server does with it (SEC-2)."""

import logging
import traceback
from base64 import b64encode
from urllib.parse import quote

import pytest

from psych_runtime.errors import EgressDenied, ModelError
from tests.canary import CANARY, forms
from tests.functional.model.asking import request, told_by
from tests.servers.formats import FORMATS, Format, each_format
from tests.servers.openai_server import Reply, Stop, answer, silence, sse

_KEY = CANARY.replace("é", "e")  # as a header can carry it
_QUOTED = quote(_KEY, safe="")
_FORMS = {name: form.decode() for name, form in forms(_KEY).items()}
_PART = ("base64", "longest word")  # forms that stand in a longer one
_PAIRS = (b64encode(lead + _KEY.encode() + b"tail").decode() for lead in (b"", b"u", b"u:"))
_ECHO = " ".join([*(_FORMS[name] for name in _FORMS if not name.startswith(_PART)), *_PAIRS])
_HEADERS = {"X-Echo": f"Bearer {_KEY}", "Set-Cookie": f"key={_QUOTED}"}


def _escaped() -> Reply:
    """Answer with a key in which nothing stands as it was sent."""
    words = "".join(f"\\u{ord(character):04x}" for character in _KEY)
    body = b'{"error": {"message": "bad key %s"}}' % words.encode()
    return answer(body, status=401, content_type="application/json")


def _replies(form: Format) -> dict[str, Reply]:
    """Return what a server may do with the key."""
    begun = form.write(*form.say("Hi"))
    return {
        "success": answer(form.whole("Hi"), headers=_HEADERS),
        "refused with the key": form.refuse(401, f"Incorrect API key: {_ECHO}", _HEADERS),
        "refused in plain text": answer(_ECHO.encode(), status=403, content_type="text/plain"),
        "refused with escapes": _escaped(),
        "overloaded": form.refuse(503, _ECHO, _HEADERS),
        "redirected": answer(status=302, headers={"Location": f"http://x/?key={_QUOTED}"}),
        "error in the stream": answer(begun, form.write(form.fault(_ECHO))),
        "error event": answer(b"event: error\ndata: " + _ECHO.encode() + b"\n\n"),
        "garbled": answer(sse(_ECHO)),
        "garbled bytes": answer(b"data: " + _ECHO.encode() + b"\xff\n\n"),
        "garbled JSON": answer(b"{" + _ECHO.encode()),
        "garbled JSON bytes": answer(b"{\xff" + _ECHO.encode()),
        "hung up": answer(begun, Stop.HANG_UP),
        "silent": silence(),
        "stalled": answer(begun, Stop.STALL, headers=_HEADERS),
        "no HTTP": answer(headers={f"Bad\x01{_KEY}": _KEY}),
        "a web page": answer(b"<html>", content_type=f"text/html; x={_KEY}"),
    }


_REPLIES = {form: _replies(form) for form in FORMATS}
_WITHOUT_ECHO = {"hung up", "silent", "stalled", "redirected", "no HTTP", "a web page"}


def _seen_of(failure: BaseException | None, *, variables: bool) -> list[str]:
    """Return every text that a failure and all that it was raised from can show.

    The variables of its frames count where the server does not send the key back in its body.
    """
    texts: list[str] = []
    while failure is not None:
        texts += [str(failure), repr(failure), repr(vars(failure)), repr(failure.args)]
        shown = traceback.TracebackException.from_exception(failure, capture_locals=variables)
        texts += list(shown.format())
        failure = failure.__cause__ or failure.__context__
    return texts


def _leaks(texts: list[str]) -> list[str]:
    return [f"{name}: {text}" for text in texts for name, form in _FORMS.items() if form in text]


@pytest.mark.parametrize(
    ("form", "case"), [(form, case) for form in FORMATS for case in _REPLIES[form]], ids=str
)
async def test_sec_2_the_key_is_sent_and_never_seen(
    form: Format, case: str, caplog: pytest.LogCaptureFixture
) -> None:
    """In any form, with every logger at DEBUG."""
    caplog.set_level(logging.DEBUG)
    for name in ("httpx2", "httpcore2", "httpcore2.http11", "httpcore2.connection", "asyncio"):
        caplog.set_level(logging.DEBUG, logger=name)
    asked = request(idle=1.0 if case in ("silent", "stalled") else 30.0)
    async with form.server(_REPLIES[form][case]) as server:
        client = form.client(server.base_url, api_key=_KEY, headers={"X-Key": f"x{_KEY}"})
        failure: ModelError | None = None
        try:
            await told_by(client, asked)
        except ModelError as caught:
            failure = caught
        shown = [repr(client), str(client), *_seen_of(failure, variables=case in _WITHOUT_ECHO)]
        await client.aclose()
    assert (failure is None) == (case == "success")
    header, scheme = form.key
    assert server.seen[0].headers[header] == f"{scheme}{_KEY}"
    shown += [caplog.text, *(repr(vars(record)) for record in caplog.records)]
    assert any(form.path in text for text in caplog.messages) or case in ("silent", "no HTTP")
    assert _leaks(shown) == []


@each_format
async def test_sec_2_a_server_that_is_not_there_shows_no_key(form: Format) -> None:
    """The connection's error carries the request otherwise."""
    async with form.server() as server:
        url = server.base_url
    client = form.client(url, api_key=_KEY)
    with pytest.raises(ModelError) as caught:
        await told_by(client)
    await client.aclose()
    assert _leaks(_seen_of(caught.value, variables=True)) == []


@each_format
def test_sec_2_a_key_in_the_url_is_refused_unseen(form: Format) -> None:
    """It would be in every log line of every proxy."""
    for url in (f"https://{_QUOTED}@api.test/v1", f"https://api.test/v1?key={_QUOTED}"):
        with pytest.raises(EgressDenied) as caught:
            form.client(url)
        assert _leaks([str(caught.value), repr(vars(caught.value))]) == []
