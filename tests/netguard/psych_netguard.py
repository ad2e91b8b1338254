"""Refuses, in this process, every reach beyond loopback and every listener of the library (REF-1).

An audit hook sees what Python code does with sockets whoever does it, and cannot be taken out
again. A refusal raises in the offending call, and is also reported, since code that catches
broadly would hide it: the test that did it fails at its end. Imports nothing early, because it
also runs at the start of each Python that a test starts (sitecustomize.py).
"""

import os
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import cast

__all__ = [
    "REPORTS",
    "NetworkRefused",
    "install",
    "is_loopback",
    "listener_owner",
    "take_reports",
    "test_name",
]

REPORTS = "PSYCH_NETGUARD_REPORTS"
"""Names the variable with the folder where refusals are reported."""

_INET_FAMILIES = (2, 10, 23, 30)  # AF_INET, then AF_INET6 on Linux, Windows and macOS


class NetworkRefused(RuntimeError):
    """A test, or the library in it, reached beyond loopback or opened a listener.

    No OSError: what retries after a broken network must not retry this.
    """


def test_name() -> str:
    """Return the test that runs now; a started process has it from its parent's environment."""
    return os.environ.get("PYTEST_CURRENT_TEST", "code outside any test")


def is_loopback(host: object) -> bool:
    """Tell whether `host`, a name or an address, is this machine's loopback."""
    from ipaddress import IPv6Address, ip_address

    if isinstance(host, bytes | bytearray):
        host = host.decode("ascii", "replace")
    if not isinstance(host, str):
        return False
    if host.lower().rstrip(".") in {"localhost", "ip6-localhost", "ip6-loopback"}:
        return True
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback


def listener_owner(modules: Sequence[str]) -> str | None:
    """Return the library module that opens a listener, given the stack's modules, innermost first.

    The nearest of ours decides: a tool of a test, or the public test servers, may listen.
    """
    for module in modules:
        if module.startswith(("psych_runtime.testing", "tests.")):
            return None
        if module.split(".")[0] == "psych_runtime":
            return module
    return None


def take_reports(folder: str) -> list[str]:
    """Return what was refused since the last call, and forget it."""
    texts = []
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        with open(path, encoding="utf-8") as file:
            texts.append(file.read())
        os.unlink(path)
    return texts


def install() -> None:
    """Put the guard into this process, for good; a second call does nothing."""
    if not _installed:
        _installed.append(True)
        sys.addaudithook(_hook)


_installed: list[bool] = []
_reported: list[None] = []


def _refuse(what: str) -> None:
    text = f"{what}, in {test_name()}"
    folder = os.environ.get(REPORTS)
    if folder and os.path.isdir(folder):
        _reported.append(None)
        name = f"{os.getpid()}-{len(_reported)}"
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    raise NetworkRefused(text)


def _stack(frame: FrameType | None) -> list[str]:
    modules = []
    while frame is not None:
        modules.append(str(frame.f_globals.get("__name__", "")))
        frame = frame.f_back
    return modules


def _address(arguments: tuple[object, ...], event: str) -> None:
    """Judge socket.connect, .bind, .sendto and .sendmsg: (socket, address)."""
    sock, address = arguments[0], arguments[1]
    if getattr(sock, "family", None) not in _INET_FAMILIES or not isinstance(address, tuple):
        return
    host = cast("object", address[0])
    if not is_loopback(host):
        _refuse(
            f"{event} to {host!r} refused: tests reach 127.0.0.1 and ::1 only, so start a server "
            "there, or inject the resolver"
        )


def _bind(arguments: tuple[object, ...], event: str) -> None:
    owner = listener_owner(_stack(sys._getframe(2)))  # without _bind and _hook
    if owner is not None:
        _refuse(f"{event} by {owner} refused: the library opens no listening socket (REF-1)")
    _address(arguments, event)


def _name(arguments: tuple[object, ...], event: str) -> None:
    """Judge look-ups: the first argument is the name, None and "" being this machine."""
    host = arguments[0]
    if host and not is_loopback(host):
        _refuse(f"{event} of {host!r} refused: tests look up loopback only; inject the resolver")


_JUDGES: dict[str, Callable[[tuple[object, ...], str], None]] = {
    "socket.connect": _address,
    "socket.sendto": _address,
    "socket.sendmsg": _address,
    "socket.bind": _bind,
    "socket.getaddrinfo": _name,
    "socket.gethostbyname": _name,
    "socket.gethostbyaddr": _name,
}


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    judge = _JUDGES.get(event)
    if judge is not None:
        judge(arguments, event)
