"""A small REST service: orders, and notes to them.

python docs/examples/http_tools/shop.py [PORT]

It wants a key, fails the first time it is asked for a list, and knows a repeated POST by its
Idempotency-Key.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

KEY = "a-key-of-the-shop"
PORT = 8791


class Shop(ThreadingHTTPServer):
    """What is in the shop."""

    def __init__(self, port: int = PORT) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.orders = {
            4711: {"number": 4711, "state": "open", "what": "a lamp", "notes": []},
            4712: {"number": 4712, "state": "sent", "what": "two chairs", "notes": []},
        }
        self.seen: dict[str, dict] = {}
        self.log: list[str] = []


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: Shop

    def do_GET(self) -> None:
        """List orders, or get one."""
        path, query = urlsplit(self.path).path, parse_qs(urlsplit(self.path).query)
        if not self.is_known():
            self.answer(401, {"error": "a key, please"})
        elif path == "/orders":
            if len(self.server.log) == 1:
                self.answer(503, {"error": "not yet awake"})
                return
            states = query.get("state", ["open", "sent", "returned"])
            found = [one for one in self.server.orders.values() if one["state"] in states]
            self.answer(200, found[: int(query["limit"][0])])
        else:
            self.answer_about(path.removeprefix("/orders/"))

    def do_POST(self) -> None:
        """Add a note, once for each key."""
        note = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        number = urlsplit(self.path).path.removeprefix("/orders/").removesuffix("/notes")
        key = self.headers["Idempotency-Key"]
        if not self.is_known():
            self.answer(401, {"error": "a key, please"})
        elif key not in self.server.seen:
            self.server.orders[int(number)]["notes"].append(note)
            self.server.seen[key] = {"note": len(self.server.seen) + 1}
            self.answer(201, self.server.seen[key])
        else:
            self.answer(200, self.server.seen[key])

    def is_known(self) -> bool:
        """Note the request, and tell whether it carries the key."""
        self.server.log.append(f"{self.command} {self.path}")
        return self.headers["Authorization"] == f"Bearer {KEY}"

    def answer_about(self, number: str) -> None:
        """Answer with one order."""
        order = self.server.orders.get(int(number)) if number.isdecimal() else None
        if order is None:
            self.answer(404, {"error": f"there is no order {number}"})
        else:
            self.answer(200, order)

    def answer(self, status: int, value: object) -> None:
        """Answer in JSON."""
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


if __name__ == "__main__":
    Shop(int(sys.argv[1]) if len(sys.argv) > 1 else PORT).serve_forever()
