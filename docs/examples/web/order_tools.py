"""What the agent can do. The worker executes it; the web server reads the signatures only."""

import psych_runtime
from psych_runtime import ToolContext

registry = psych_runtime.ToolRegistry()


@registry.register(annotations={"read-only"}, safe_to_retry=True)
def look_up_order(number: int) -> dict[str, str]:
    """Look an order up.

    Args:
        number: The number of the order.
    """
    return {"order": str(number), "state": "arrived broken", "paid": "19.90 EUR"}


@registry.register(annotations={"destructive"}, safe_to_retry=True)
def refund(number: int, context: ToolContext) -> str:
    """Pay the price of an order back.

    Args:
        number: The number of the order.
    """
    return f"order {number} is refunded, under the key {context.idempotency_key}"
