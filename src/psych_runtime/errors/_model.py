"""What a model client and the egress raise."""

from psych_runtime.errors._base import PsychError, brief

__all__ = [
    "ContextOverflow",
    "EgressDenied",
    "EgressFailed",
    "ModelError",
    "ModelPermanent",
    "ModelTransient",
    "UnsendableRequest",
]


class ModelError(PsychError):
    """Base of what a ModelClient may raise; anything else is a bug of the client."""

    code = "model"

    def __init__(self, message: str, *, status: int | None = None) -> None:
        self.status = status
        super().__init__(message)


class ModelTransient(ModelError):
    """Worth another try, after `retry_after_seconds` when the provider named it."""

    code = "model_transient"

    def __init__(
        self, message: str, *, status: int | None = None, retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(message, status=status)
        self.retry_after_seconds = retry_after_seconds


class ModelPermanent(ModelError):
    """The same request would fail again."""

    code = "model_permanent"


class ContextOverflow(ModelPermanent):
    """The conversation is too long for the model."""

    code = "context_overflow"


class UnsendableRequest(ModelPermanent):
    """The request has something that the client cannot write; nothing was sent (MOD-9)."""

    code = "unsendable_request"


class EgressDenied(PsychError):
    """An outbound connection that nobody allowed (SEC-1).

    `sent`: a redirect led there, so the request itself has been sent.
    """

    code = "egress_denied"

    def __init__(self, *, host: str, reason: str, sent: bool = False) -> None:
        self.host = host
        self.reason = reason
        self.sent = sent
        super().__init__(f"no connection to {brief(host)!r}: {reason}")


class EgressFailed(PsychError):
    """Nobody answered, or the connection broke.

    `sent` is False if certainly nothing was sent, `transient` is False if the same request
    would fail again.
    """

    code = "egress_failed"

    def __init__(self, *, host: str, problem: str, sent: bool, transient: bool = True) -> None:
        self.host = host
        self.problem = problem
        self.sent = sent
        self.transient = transient
        super().__init__(f"{brief(host)!r}: {problem}")
