"""What concerns a log."""

from psych_runtime.errors._base import PsychError, brief

__all__ = ["ContentErased", "CorruptLog", "LogError", "NewerRecord"]


class LogError(PsychError):
    """Base of what concerns a log as it is written."""

    code = "log"


class CorruptLog(LogError):
    """A log that the protocol cannot produce (LOG-1); it is never repaired."""

    code = "corrupt_log"

    def __init__(self, *, reason: str, run_id: str, seq: int) -> None:
        self.reason = reason
        self.run_id = run_id
        self.seq = seq
        super().__init__(
            f"{reason}: run {brief(run_id)} at seq {seq}; the log is left as it is, and nothing "
            "follows in it: see `psych log`, and begin another thread"
        )


class NewerRecord(LogError):
    """A record that a newer build wrote (R-16, LOG-4); the log is fine, this build is old."""

    code = "newer_record"

    def __init__(self, *, run_id: str, seq: int, type: str, needs_version: int) -> None:
        self.run_id = run_id
        self.seq = seq
        self.type = type
        self.needs_version = needs_version
        super().__init__(
            f"run {brief(run_id)} at seq {seq}: {brief(type)!r} needs schema version "
            f"{needs_version}; upgrade psych-runtime"
        )


class ContentErased(LogError):
    """What people, models and tools said in this Run has been erased: no Run goes on with it."""

    code = "content_erased"

    def __init__(self, *, run_id: str) -> None:
        self.run_id = run_id
        super().__init__(
            f"the contents of run {brief(run_id)} have been erased, its facts and totals are left; "
            "no run goes on with it: begin another thread, with dispatch() and no continues"
        )
