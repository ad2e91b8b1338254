"""What a Run waits for, with what it asks."""

from psych_runtime.views._survey import Survey
from psych_schema.view import PendingApproval, PendingWait

__all__ = ["pending_approvals", "pending_waits"]


def pending_approvals(survey: Survey) -> tuple[PendingApproval, ...]:
    """Return the calls that nobody has decided yet, oldest first (APP-2)."""
    found = (survey.requests[one] for one in survey.state.ids("approval", "open"))
    return tuple(
        PendingApproval(
            approval_id=one.approval_id,
            call_id=one.call_id,
            identity=one.identity,
            risk=one.risk,
            arguments=one.arguments,
            reason=one.reason,
            expires_at=one.expires_at,
            requested_at=one.at,
        )
        for one in found
    )


def pending_waits(survey: Survey) -> tuple[PendingWait, ...]:
    """Return the open waits, oldest first (SUS-5)."""
    found = (survey.waits[one] for one in survey.state.ids("wait", "open"))
    return tuple(
        PendingWait(
            wait_id=one.wait_id,
            kind=one.kind,
            ask=one.ask,
            payload_schema=one.payload_schema,
            due=one.due,
            expires_at=one.expires_at,
            opened_at=one.at,
        )
        for one in found
    )
