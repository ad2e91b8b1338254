"""Views: what a header and its log say, for people; pure functions without any IO."""

from psych_runtime.views.answer import answer_view
from psych_runtime.views.report import report_view
from psych_runtime.views.status import status_view
from psych_runtime.views.thread import messages_passed_on, thread_run, thread_view
from psych_runtime.views.verification import Verification

__all__ = [
    "Verification",
    "answer_view",
    "messages_passed_on",
    "report_view",
    "status_view",
    "thread_run",
    "thread_view",
]
