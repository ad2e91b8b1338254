"""Which contents of a log are gone, and whether the log says so (R-11)."""

from typing import Final

from psych_schema.store import RecordRow
from psych_schema.view import VerificationProblem

__all__ = ["Contents"]

_WORDS: Final = {
    "salt_without_content": "its salt is there, and no content that it belongs to",
    "content_without_salt": "its content is there, and no salt: each is written with one",
}


class Contents:
    """One pass over a log's rows: what is there of their contents."""

    def __init__(self) -> None:
        self.erased = 0
        self._said = False  # by run.erased
        self._unsaid = 0
        self._first = 0

    def take(self, row: RecordRow, digest: str | None) -> VerificationProblem | None:
        """Take the next row, whose body names `digest`; return what is wrong with its salt.

        The salt of seq 1 is the Run's, content or not.
        """
        self._said = self._said or row.type == "run.erased"
        if row.content is not None:
            return None if row.salt is not None else _problem("content_without_salt", row.seq)
        if digest is not None:
            self.erased += 1
            if row.type != "model.delta":  # those may go without an erasure
                self._unsaid += 1
                self._first = self._first or row.seq
        elif row.seq == 1:
            return None
        return None if row.salt is None else _problem("salt_without_content", row.seq)

    def unsaid(self) -> VerificationProblem | None:
        """Return what is wrong when the whole log was taken and no record says the erasure."""
        if self._said or not self._unsaid:
            return None
        gone = "1 content is" if self._unsaid == 1 else f"{self._unsaid} contents are"
        return VerificationProblem(
            code="erased_without_record",
            message=f"{gone} gone from here on, and no run.erased says that they were erased",
            seq=self._first,
        )


def _problem(code: str, seq: int) -> VerificationProblem:
    return VerificationProblem(code=code, message=_WORDS[code], seq=seq)
