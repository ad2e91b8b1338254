"""A record's body as servers keep it: without what its row says already, and with short digests.

A server writes each byte of a row twice, to its table and to its own log, and the envelope is
more than half of most bodies. Its time, ids and digests stand before the body's own fields,
which stay JSON; an id comes without what it shares with the one before it, the Run's first:

    A261130171828208752-2h2gz27ynhwqkq9je7gs|-reagz32yhp0t4znq5|1|<prev>|<digest>{"turn":1,...}

`A` is the form, and all there is of schema version 1: whoever reads that version reads it. Another
form is of a later version, whose letter says so to the codec of a build that does not know it
(R-16). Such a build cannot tell the hash of what it cannot unpack: the first release of a version
keeps its records whole. Whole is what begins with `{`, as does a body that the codec has not just
written.
"""

from binascii import Error, a2b_base64, b2a_base64
from typing import Final

from psych_runtime.core.codec import sha256
from psych_runtime.core.models import altered
from psych_runtime.ports.store import Sealed
from psych_schema.record import Record
from psych_schema.store import RecordRow

__all__ = ["packed", "unpacked"]

_FORM: Final = "A"
_AT: Final = slice(1, 19)
_CENTURY: Final = "20"
_DIGEST: Final = 43  # characters, instead of 64
_SALT: Final = 22
_WHOLE_SALT: Final = 32
_BARS: Final = 4  # between the parts of an envelope


def packed(sealed: Sealed) -> RecordRow:
    """Return the row of a record as it is kept."""
    row, told, own = vars(sealed.row), vars(sealed.record), sealed.own
    body, salt = row["body"], row["salt"]
    same = told["type"] == row["type"] and told["seq"] == row["seq"] and told["v"] == 1
    if own is not None and same and sha256(body) == sealed.hash:  # or somebody altered the row
        envelope = _envelope(sealed.record, body)
        if envelope is not None and (salt is None or _is_salt(salt)):
            short = salt and _short(salt, _SALT)
            return altered(sealed.row, {"body": envelope + own, "salt": short})
    return sealed.row


def _envelope(record: Record, body: str) -> str | None:
    """Return what stands before the own fields; None where an id is of another form."""
    told = vars(record)
    id, commit, prev, digest = told["id"], told["commit"], told["prev"], told["content_digest"]
    begin = body.index('"at":"') + 6
    at = body[begin : begin + 26]
    text = (
        f"{_FORM}{at[2:4]}{at[5:7]}{at[8:10]}{at[11:13]}{at[14:16]}{at[17:19]}{at[20:]}"
        f"{'-' + id[10:] if id[4:10] == told['run_id'][4:10] else id[4:]}"
        f"|{'-' + commit[12:] if commit[4:12] == id[4:12] else commit[4:]}|{told['epoch']}"
        f"|{_short(prev, _DIGEST) if prev else ''}|{_short(digest, _DIGEST) if digest else ''}"
    )
    usual = id.startswith("rec_") and commit.startswith("com_") and "-" not in id + commit
    usual = usual and at.startswith(_CENTURY)
    return text if usual and text.count("|") == _BARS and "{" not in text else None


def unpacked(
    text: str, salt: str | None, run_id: str, seq: int, kind: str
) -> tuple[str, str | None]:
    """Return the body and the salt that were written; what nobody packed stays as it is."""
    if text[:1] != _FORM:
        return text, salt
    envelope, _, own = text.partition("{")
    try:
        begin, commit, epoch, prev, digest = envelope.split("|")
        before = f',"prev":"{_long(prev)}"' if prev else ""
        named = f',"content_digest":"{_long(digest)}"' if digest else ""
        long = salt and _long(salt)
    except (ValueError, Error):
        return text, salt  # somebody altered it: whoever reads it says so
    at, id = begin[_AT], begin[_AT.stop :]
    id = run_id[4:10] + id[1:] if id[:1] == "-" else id
    commit = id[:8] + commit[1:] if commit[:1] == "-" else commit
    body = (
        f'{{"v":1,"run_id":"{run_id}","seq":{seq},"at":"{_CENTURY}{at[:2]}-{at[2:4]}-{at[4:6]}T'
        f'{at[6:8]}:{at[8:10]}:{at[10:12]}.{at[12:]}Z","type":"{kind}"'
        f',"id":"rec_{id}","commit":"com_{commit}","epoch":{epoch}{before}{named}'
        f"{'' if own == '}' else ','}{own}"
    )
    return body, long


def _is_salt(text: str) -> bool:
    try:
        return bytes.fromhex(text).hex() == text and len(text) == _WHOLE_SALT
    except ValueError:
        return False


def _short(digest: str, length: int) -> str:
    """Return hexadecimal digits as Base64, without what fills it up."""
    return b2a_base64(bytes.fromhex(digest), newline=False)[:length].decode()


def _long(short: str) -> str:
    return a2b_base64(short + "==").hex()
