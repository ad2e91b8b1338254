"""The one place that makes outbound HTTP connections (SEC-1): each is judged, then made.

Loads the HTTP client; imported on first use only.
"""

from psych_runtime.egress.client import Bounds, make_client
from psych_runtime.egress.endpoint import Answer, Endpoint
from psych_runtime.egress.gate import Gate, OneOrigin, Origin

__all__ = ["Answer", "Bounds", "Endpoint", "Gate", "OneOrigin", "Origin", "make_client"]
