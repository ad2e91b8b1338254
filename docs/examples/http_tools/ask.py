"""Let an agent work with the shop through requests that its YAML describes.

python docs/examples/http_tools/ask.py

The model is scripted; with OPENAI_API_KEY or PSYCH_BASE_URL set it is a real one. SHOP_PORT is
the port on which the shop listens, 8791 unless set.
"""

import asyncio
import os
import threading
from pathlib import Path

from shop import KEY, PORT, Shop

from psych_runtime import (
    EgressRules,
    MappingSecrets,
    ModelClient,
    OpenAIClient,
    Permit,
    load_spec,
    session,
)
from psych_runtime.testing import FakeModel

HERE = Path(__file__).parent


def make_model() -> ModelClient:
    """Return a real model when the environment names one, else a scripted one."""
    key, url = os.environ.get("OPENAI_API_KEY"), os.environ.get("PSYCH_BASE_URL")
    if key or url:
        return OpenAIClient(base_url=url or "https://api.openai.com/v1", api_key=key)
    script = FakeModel().turn(tool_calls=[("list_orders", {"state": ["open"]})])
    script.turn(tool_calls=[("get_order", {"number": 4711}), ("get_order", {"number": 1})])
    note = {"number": 4711, "text": "The customer wants it in green."}
    script.turn(tool_calls=[("add_note", note)])
    return script.turn(text="Order 4711 is a lamp. I noted that it is to be green.")


async def main(port: int) -> None:
    """Ask once; a person at this program agrees to the note."""
    text = (HERE / "agent.yaml").read_text().replace(f":{PORT}/", f":{port}/")
    async with session(
        make_model(),
        secrets=MappingSecrets({"shop-key": KEY}),
        egress=EgressRules(Permit(hosts=["127.0.0.1"])),  # loopback is not public
        approve=lambda pending: "approve",
    ) as s:
        view = await s.ask(load_spec(text), "What is order 4711? It has to be green.")
        print(view.text)


if __name__ == "__main__":
    port = int(os.environ.get("SHOP_PORT", str(PORT)))
    shop = Shop(port)
    threading.Thread(target=shop.serve_forever, daemon=True).start()
    asyncio.run(main(shop.server_port))
    print("\n".join(shop.log))
    print(shop.orders[4711]["notes"])
    shop.shutdown()
    shop.server_close()
