"""Start the server and two workers, live through a Run over HTTP, and print it as curl would.

    python docs/examples/web/story.py

transcript.md is what this printed once. Ids are shortened to their kind and a number; each event is
one line, with what matters of its data.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2

HERE = Path(__file__).parent
LOGIN = {"X-Tenant": "acme", "X-User": "ann"}
MATTERS = {
    "model.delta": ["text"],
    "approval.requested": ["call_id", "arguments"],
    "approval.decided": ["decision", "by"],
    "tool.completed": ["call_id", "outcome"],
    "run.settled": ["state", "output"],
}


class Shortened:
    """Ids as a person can read them: call_1 is the first call that is spoken of."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def __call__(self, text: str) -> str:
        """Return `text` with its ids shortened."""
        return re.sub(r"\b([a-z]+)_[0-9a-z]{26}\b", self._short, text)

    def _short(self, found: re.Match[str]) -> str:
        if found[0] not in self._known:
            count = self._counts[found[1]] = self._counts.get(found[1], 0) + 1
            self._known[found[0]] = f"{found[1]}_{count}"
        return self._known[found[0]]


class Person:
    """Ann, at her command line."""

    def __init__(self, client: httpx2.Client) -> None:
        self._client = client
        self._short = Shortened()
        self.last = 0  # the id of the last event that she has seen

    def ask(self, method: str, path: str, body: object = None, show: str = "") -> dict[str, object]:
        """Send a request, print it and its answer, of which `show` is one part."""
        data = "" if body is None else f" -d '{json.dumps(body)}'"
        self._say(f"$ curl -X {method} localhost:8000{path}{data}")
        answer = self._client.request(method, path, json=body)
        found: dict[str, object] = answer.json() if answer.content else {}
        self._say(f"{answer.status_code} {json.dumps(found[show] if show else found)}\n")
        return found

    def follow(self, run: str, until: str) -> dict[str, object]:
        """Print events behind the last one, up to one of the type `until`; return its data."""
        headers = {"Last-Event-ID": str(self.last)} if self.last else {}
        shown = "".join(f" -H '{name}: {value}'" for name, value in headers.items())
        self._say(f"$ curl -N localhost:8000/runs/{run}/events{shown}")
        with self._client.stream("GET", f"/runs/{run}/events", headers=headers) as answer:
            fields: dict[str, str] = {}
            for line in answer.iter_lines():
                name, _, value = line.partition(": ")
                fields[name] = value
                if name == "data":
                    self._tell(int(fields["id"]), fields["event"], json.loads(value))
                    if fields["event"] == until:
                        self._say("" if until == "run.settled" else "^C\n")
                        data: dict[str, object] = json.loads(value)
                        return data
        raise SystemExit(f"the stream ended without {until}")

    def _tell(self, seq: int, kind: str, data: dict[str, object]) -> None:
        if seq != self.last + 1:
            raise SystemExit(f"event {seq} came behind {self.last}")
        self.last = seq
        part = {name: data[name] for name in MATTERS.get(kind, []) if data[name] is not None}
        self._say(f"id: {seq:<3} event: {kind:<19} data: {json.dumps(part)}")

    def _say(self, text: str) -> None:
        print(self._short(text), flush=True)


def live(person: Person) -> None:
    """Start, look, agree, lose the connection, stop, and go on with the next Run."""
    run = str(person.ask("POST", "/runs", {"message": "4711 and 4712 arrived broken."})["run_id"])
    person.follow(run, "tool.completed")
    person.follow(run, "run.suspended")
    view = person.ask("GET", f"/runs/{run}", show="lifecycle")
    waiting = view["pending_approvals"]
    assert isinstance(waiting, list)
    decisions = {"decisions": {waiting[0]["call_id"]: "approve"}}
    person.ask("POST", f"/runs/{run}/decisions", decisions, show="run_id")
    person.follow(run, "run.suspended")
    person.ask("DELETE", f"/runs/{run}", show="run_id")
    person.follow(run, "run.settled")
    person.ask("GET", f"/runs/{run}/events?after={person.last}")
    said = {"message": "What did you do?", "queue": "next_run"}
    following = str(person.ask("POST", f"/runs/{run}/messages", said, show="run_id")["run_id"])
    person.last = 0
    person.follow(following, "run.settled")


@contextmanager
def running(*arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """Run a Python program while the block lasts."""
    command = [sys.executable, *arguments]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.terminate()
        process.communicate()


def main() -> None:
    """Run the story on a store of its own."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        os.environ["PSYCH_STORE"] = f"sqlite:///{folder}/runs.db"
        options = ["--app-dir", str(HERE), "--port", "0", "--no-access-log"]
        server = stack.enter_context(running("-m", "uvicorn", *options, "app:app"))
        assert server.stderr is not None
        line = next(line for line in server.stderr if "running on" in line)
        for _ in range(2):
            stack.enter_context(running(str(HERE / "worker.py")))
        address = re.findall(r"http://\S+", line)[0]
        with httpx2.Client(base_url=address, headers=LOGIN, timeout=30) as client:
            live(Person(client))


if __name__ == "__main__":
    main()
