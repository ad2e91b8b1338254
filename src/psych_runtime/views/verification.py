"""Whether a stored log is what was written, and its header what the log says (LOG-6, R-11).

First the chain (seq, prev, digests), which holds for logs of any build; then what the fold says
of the records, and the texts that they name; then the header. A verdict, never a repair.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final, NamedTuple

from pydantic_core import from_json

from psych_runtime.core.codec import Entry, Position, content_fits, decode_anew, outline, sha256
from psych_runtime.core.conversation import Conversation
from psych_runtime.core.fold import RunState, advance
from psych_runtime.core.rebuild import Difference, Traces, compare, contradictions
from psych_runtime.errors import ContentErased, CorruptLog, CorruptRow, NewerRecord
from psych_runtime.views._contents import Contents
from psych_runtime.views._named_texts import NamedText, named_texts, text_problem
from psych_schema.record import RunAdmitted
from psych_schema.store import RecordRow, RunRow
from psych_schema.view import VerificationProblem, VerificationView

__all__ = ["MAX_PROBLEMS", "Verification"]

MAX_PROBLEMS: Final = 100
"""After so many in a log nobody looks further."""

_WORDS: Final[Mapping[str, str]] = {
    "seq_not_next": "records before it are missing",
    "prev_does_not_fit": "the record before it is not the one that it was written behind",
    "content_does_not_fit": "its content is not the one that was written with it",
    "row_differs": "its row and its body do not name the same record",
    "unreadable": "its body is no record of any build",
}
_ILLEGAL: Final = "the protocol cannot produce this record here"
_MARKED: Final = "the header calls the log corrupt, and nothing is wrong with it"


class _Link(NamedTuple):
    """What ties a row to its neighbours; of a body that nobody can read, what can be told."""

    hash: str
    prev: str | None
    at: datetime | None
    content_digest: str | None


class Verification:
    """One pass over the rows of a Run's log, in order; `view` says what came of it.

    What is wrong with a row does not hide what is wrong with the next one. The fold, and with it
    the judgement of most header columns, ends at the first record that it refuses.
    """

    def __init__(self, *, expected_head: str | None = None) -> None:
        self._expected = expected_head
        self._expected_seq: int | None = None
        self._proven = False
        self._tenant: str | None = None  # as the admission says
        self._head = Position()
        self._records = 0
        self._state = RunState()
        self._traces = Traces()
        self._conversation: Conversation | None = Conversation()
        self._folds = True
        self._sound = True  # everything so far is what was written
        self._newer = False
        self._ends = False  # what comes next is in a form of a newer build, which hides its hash
        self._whole = True  # every row could be read
        self._contents = Contents()
        self._named: dict[NamedText, int] = {}
        self._unasked: list[NamedText] = []
        self._problems: list[VerificationProblem] = []

    @property
    def seq(self) -> int:
        """The last row's seq, 0 before the first."""
        return self._head.seq

    @property
    def given_up(self) -> bool:
        """Tell whether so much is wrong, or hidden, that nobody looks further."""
        return self._ends or len(self._problems) >= MAX_PROBLEMS

    def take(self, row: RecordRow) -> None:
        """Check the next row."""
        self._records += 1
        if self._ends:
            return
        entry, reason = self._decoded(row)
        try:
            link = _link(row, entry)
        except NewerRecord:
            self._sound, self._ends = False, True
            return
        if row.seq != self._head.seq + 1:
            reason = "seq_not_next"
        elif reason == "" and link.prev != self._head.hash:
            reason = "prev_does_not_fit"
        if reason:
            self._sound = False
            self._folds = self._folds and reason == "content_does_not_fit"
            self._add(reason, _WORDS[reason], seq=row.seq)
        salted = self._contents.take(row, link.content_digest)
        if salted is not None and not reason:
            self._problems.append(salted)
        if entry is not None:
            for named in named_texts(entry.record):
                if named not in self._named:
                    self._named[named] = row.seq
                    self._unasked.append(named)
        if entry is not None and self._folds:
            self._fold(entry)
        self._head = Position(row.seq, link.hash, link.at)
        if link.hash == self._expected:
            self._expected_seq, self._proven = row.seq, self._sound

    def skip(self, error: CorruptRow) -> None:
        """Take note that the next row cannot be read, and is passed over."""
        seq = self._head.seq + 1
        self._add(error.code, str(error), seq=seq)
        self._folds = self._sound = self._whole = False
        self._head = Position(seq)

    def unasked(self) -> Iterator[NamedText]:
        """Yield each text that the rows so far name, once; `judge` is to be told each."""
        while self._unasked and not self.given_up:
            yield self._unasked.pop(0)

    def judge(self, named: NamedText, text: str | None) -> None:
        """Check what the store has under the hash of a text."""
        problem = text_problem(named, self._named[named], text)
        if problem is not None:
            self._problems.append(problem)

    def _decoded(self, row: RecordRow) -> tuple[Entry | None, str]:
        """Return the record, and why it is not what was written; "" when nothing tells so.

        One whose content is wrong is returned without it: the fold reads none.
        """
        try:
            entry = decode_anew(row)
        except NewerRecord as error:
            self._folds = False
            if not self._newer:
                self._newer = True
                self._add(error.code, str(error), seq=row.seq)
            return None, "" if content_fits(row) else "content_does_not_fit"
        except CorruptLog as error:
            if content_fits(row):
                return None, error.reason
        else:
            if isinstance(entry.record, RunAdmitted):
                self._tenant = entry.record.scope.tenant
            return entry, "" if self._tenant in (None, row.tenant) else "row_differs"
        self._conversation = None
        bare, reason = self._decoded(row.model_copy(update={"content": None, "salt": None}))
        return bare, reason or "content_does_not_fit"

    def _fold(self, entry: Entry) -> None:
        record = entry.record
        try:
            self._traces.take(record, advance(self._state, entry))
            if self._conversation is not None:
                self._conversation.add(record)
        except ContentErased:
            self._conversation = None
        except CorruptLog as error:
            self._folds = False
            self._add(error.reason, _ILLEGAL, seq=record.seq)

    def _add(self, code: str, message: str, *, seq: int) -> None:
        self._problems.append(VerificationProblem(code=code, message=message, seq=seq))

    def view(self, run_id: str, header: RunRow | CorruptRow) -> VerificationView:
        """Return the verdict; `header` was read when the last row was the last one."""
        unsaid = self._contents.unsaid()
        if unsaid is not None and self._whole and not (self._newer or self.given_up):
            self._problems.append(unsaid)
        self._problems.sort(key=lambda one: one.seq or 0)
        problems = (*self._problems, *self._of_header(header))
        return VerificationView(
            run_id=run_id,
            records=self._records,
            erased=self._contents.erased,
            head_hash=self._head.hash,
            consistent=not problems,
            expected_head=self._expected,
            expected_seq=self._expected_seq,
            proven=None if self._expected is None else self._proven,
            problems=problems,
        )

    def _of_header(self, header: RunRow | CorruptRow) -> tuple[VerificationProblem, ...]:
        """Return what is wrong with the header; what nobody can say any more is left out."""
        if isinstance(header, CorruptRow):
            return (VerificationProblem(code=header.code, message=str(header)),)
        if self.given_up:
            return ()
        if not self._folds:
            return tuple(map(_differs, contradictions(header, self._certain())))
        found = [_differs(one) for one in compare(header, self._state, self._traces)]
        if header.state == "corrupt" and not self._problems:
            wanted = "settled" if self._state.phase == "erased" else self._state.phase
            marked = Difference("state", "corrupt", wanted)
            found.append(_differs(marked, code="marked_corrupt", message=_MARKED))
        return tuple(found)

    def _certain(self) -> dict[str, object]:
        """Return the columns that are known of a log which does not fold to its end."""
        head = {"head": self._head.seq, "head_hash": self._head.hash, "head_at": self._head.at}
        known = {column: value for column, value in head.items() if value is not None}
        return self._traces.fixed() | known


def _differs(
    one: Difference, *, code: str = "header_differs", message: str | None = None
) -> VerificationProblem:
    return VerificationProblem(
        code=code,
        message=message or f"{one.column} is {one.found}, the log makes it {one.wanted}",
        column=one.column,
        found=one.found,
        wanted=one.wanted,
    )


def _link(row: RecordRow, entry: Entry | None) -> _Link:
    """Return a row's link; without its record, what bodies say in every version of the schema.

    Raises NewerRecord where the form of a newer build hides that.
    """
    if entry is not None:
        record = entry.record
        return _Link(entry.hash, record.prev, record.at, record.content_digest)
    digest = sha256(row.body)
    try:
        at = outline(row).position.at
        body = from_json(row.body)
    except CorruptLog:
        return _Link(digest, None, None, None)
    named = body if isinstance(body, dict) else {}
    prev, content = (
        value if isinstance(value, str) else None
        for value in (named.get("prev"), named.get("content_digest"))
    )
    return _Link(digest, prev, at, content)
