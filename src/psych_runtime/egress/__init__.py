"""The one place that makes outbound HTTP connections (SEC-1): each is judged, then made.

Loads the HTTP client; imported on first use only.
"""

from psych_runtime.egress.client import Bounds, make_client
from psych_runtime.egress.endpoint import Answer, Endpoint
from psych_runtime.egress.gate import Gate, OneOrigin, Origin
from psych_runtime.egress.outbound import Outbound
from psych_runtime.egress.proxy import Proxy
from psych_runtime.egress.request import OutboundAnswer, OutboundRequest
from psych_runtime.egress.rules import EgressRules, Permit

__all__ = [
    "Answer",
    "Bounds",
    "EgressRules",
    "Endpoint",
    "Gate",
    "OneOrigin",
    "Origin",
    "Outbound",
    "OutboundAnswer",
    "OutboundRequest",
    "Permit",
    "Proxy",
    "make_client",
]
