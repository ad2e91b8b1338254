"""The guard itself: what it refuses, what it lets pass, and that a refusal fails the test."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.netguard.psych_netguard import (
    NetworkRefused,
    is_loopback,
    listener_owner,
    take_reports,
)

# Addresses for documentation (RFC 5737, RFC 3849): should the guard fail, nobody is there.
FOREIGN = "192.0.2.1"
FOREIGN_6 = "2001:db8::1"
ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("host", [FOREIGN, "0.0.0.0", "10.0.0.1", "169.254.169.254"])
def test_ref_1_connecting_beyond_loopback_is_refused(host: str, netguard_reports: Path) -> None:
    """Also private and unspecified addresses; the error names this test."""
    with socket.socket() as sock, pytest.raises(NetworkRefused) as caught:
        sock.connect((host, 9))
    assert repr(host) in str(caught.value)
    assert "test_ref_1_connecting_beyond_loopback_is_refused" in str(caught.value)
    assert take_reports(str(netguard_reports)) == [str(caught.value)]


def test_ref_1_ipv6_beyond_loopback_is_refused(netguard_reports: Path) -> None:
    """The other family too."""
    with socket.socket(socket.AF_INET6) as sock, pytest.raises(NetworkRefused):
        sock.connect((FOREIGN_6, 9))
    assert len(take_reports(str(netguard_reports))) == 1


def test_ref_1_datagrams_beyond_loopback_are_refused(netguard_reports: Path) -> None:
    """A packet needs no connection."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock,
        pytest.raises(NetworkRefused),
    ):
        sock.sendto(b"x", (FOREIGN, 9))
    assert len(take_reports(str(netguard_reports))) == 1


@pytest.mark.parametrize("host", ["0.0.0.0", ""])
def test_ref_1_listening_beyond_loopback_is_refused(host: str, netguard_reports: Path) -> None:
    """A server of a test binds 127.0.0.1, not every interface."""
    with socket.socket() as sock, pytest.raises(NetworkRefused):
        sock.bind((host, 0))
    assert len(take_reports(str(netguard_reports))) == 1


def test_ref_1_looking_up_a_foreign_name_is_refused(netguard_reports: Path) -> None:
    """A look-up already leaves the machine."""
    with pytest.raises(NetworkRefused, match=r"example\.invalid"):
        socket.getaddrinfo("example.invalid", 443)
    with pytest.raises(NetworkRefused, match=r"example\.invalid"):
        socket.gethostbyname("example.invalid")
    assert len(take_reports(str(netguard_reports))) == 2


def test_ref_1_loopback_passes() -> None:
    """A real server and client on loopback, found by name."""
    with socket.socket() as server, socket.socket() as client:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        assert socket.getaddrinfo("localhost", port)
        client.connect(("127.0.0.1", port))
        accepted, _ = server.accept()
        with accepted:
            client.sendall(b"x")
            assert accepted.recv(1) == b"x"


def test_ref_1_unix_sockets_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They do not leave the machine."""
    monkeypatch.chdir(tmp_path)  # a path to a socket may have 107 bytes at most
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind("s")
        server.listen()
        client.connect("s")


def test_ref_1_a_started_python_is_guarded_too(netguard_reports: Path) -> None:
    """It refuses, names the test that started it, and reports to that test."""
    program = (
        "import socket\n"
        "try:\n"
        f"    socket.create_connection(({FOREIGN!r}, 9), timeout=1)\n"
        "except Exception as error:\n"
        "    print(type(error).__name__, error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("NetworkRefused ")
    reports = take_reports(str(netguard_reports))
    assert len(reports) == 1
    assert "test_ref_1_a_started_python_is_guarded_too" in reports[0]


def test_ref_1_the_guard_loads_little() -> None:
    """A started Python pays for the guard with no module that a test of our weight would count."""
    program = "import sys; print(sorted({'socket', 'ipaddress', 'asyncio'} & sys.modules.keys()))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_ref_1_a_caught_refusal_still_fails_the_test(tmp_path: Path) -> None:
    """Code that catches broadly does not hide it, and its neighbour is not blamed."""
    conftest = (ROOT / "tests/conftest.py").read_text(encoding="utf-8")
    (tmp_path / "conftest.py").write_text(conftest, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text(f"[pytest]\npythonpath = {ROOT}\n", encoding="utf-8")
    (tmp_path / "test_planted.py").write_text(
        f"""
import contextlib
import socket

def test_hides_it():
    with socket.socket() as sock, contextlib.suppress(Exception):
        sock.connect(({FOREIGN!r}, 9))

def test_neighbour():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        assert sock.getsockname()[0] == "127.0.0.1"
""",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", "-p", "no:cacheprovider", "-q"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "2 passed, 1 error" in done.stdout
    assert f"socket.connect to '{FOREIGN}' refused" in done.stdout
    assert "in test_planted.py::test_hides_it" in done.stdout


def test_ref_1_a_listener_of_the_library_is_refused(netguard_reports: Path) -> None:
    """Even on loopback."""
    planted: dict[str, object] = {"__name__": "psych_runtime.runtime.planted"}
    exec("def listen(sock):\n    sock.bind(('127.0.0.1', 0))\n", planted)
    listen = planted["listen"]  # the guard goes by the name of its module
    assert callable(listen)
    with (
        socket.socket() as sock,
        pytest.raises(NetworkRefused, match=r"by psych_runtime\.runtime\.planted refused"),
    ):
        listen(sock)
    assert len(take_reports(str(netguard_reports))) == 1


@pytest.mark.parametrize(
    ("modules", "owner"),
    [
        (["socket", "asyncio.base_events", "psych_runtime.api"], "psych_runtime.api"),
        (["psych_runtime", "tests.unit.test_x"], "psych_runtime"),
        (["socket", "psych_runtime.testing.server", "psych_runtime.api"], None),
        (["socket", "tests.functional.test_x", "psych_runtime.runtime.calls"], None),
        (["socket", "psych_runtime_elsewhere"], None),
        ([], None),
    ],
)
def test_ref_1_the_nearest_of_ours_owns_a_listener(modules: list[str], owner: str | None) -> None:
    """A tool of a test runs inside the library, and its server is the test's own."""
    assert listener_owner(modules) == owner


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.9.9.9", "::1", "localhost", "LOCALHOST.", b"127.0.0.1", "::1%lo"]
)
def test_ref_1_what_is_loopback(host: object) -> None:
    """Names and addresses of this machine alone."""
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["", "0.0.0.0", "::", FOREIGN, FOREIGN_6, "localhost.example", "::ffff:8.8.8.8", None]
)
def test_ref_1_what_is_not_loopback(host: object) -> None:
    """What only looks like it."""
    assert not is_loopback(host)
