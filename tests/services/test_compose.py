"""Servers in containers: what they are told is what processes are told; no daemon is needed."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypedDict

import pytest
import yaml

from tests.services import (
    compose,
    control,
    mysql,
    postgres,
    restart_server,
    start_server,
    state,
    stop_server,
)
from tests.services.kinds import KINDS
from tests.services.process import Program
from tests.services.stub_docker import VERSION, StubDocker, greeter

FILE = Path(__file__).with_name("compose.yaml")


class Service(TypedDict):
    """What is read here of a server."""

    command: list[str]
    environment: dict[str, str | int]
    ports: list[str]
    volumes: list[str]


@pytest.fixture(scope="module")
def services() -> Mapping[str, Service]:
    """What compose.yaml says of each server."""
    found: Mapping[str, Service] = yaml.safe_load(FILE.read_text(encoding="utf-8"))["services"]
    return found


def test_services_containers_are_reached_on_loopback_alone(services: Mapping[str, Service]) -> None:
    """Each at one port, the remembered one; none has a network in common with the machine."""
    inside = {"mysql": 3306, "mariadb": 3306}
    assert {name: service["ports"] for name, service in services.items()} == {
        name: [f"127.0.0.1:${{PORT_{name.upper()}}}:{inside.get(name, 5432)}"]
        for name in compose.NAMES
    }
    assert not any("network_mode" in service for service in services.values())


@pytest.mark.parametrize("name", ["postgres", "postgres_new"])
def test_services_postgresql_in_a_container_is_told_the_same(
    services: Mapping[str, Service], name: str
) -> None:
    """Settings, collation, and who needs a password: for that there is one file."""
    service = services[name]
    settings = [f"-c{key}={value}" for key, value in postgres.SETTINGS.items()]
    mounted = "/etc/postgresql/pg_hba.conf"
    assert service["command"] == ["postgres", *settings, f"-chba_file={mounted}"]
    assert str(service["environment"]["POSTGRES_INITDB_ARGS"]).split() == list(postgres.LOCALE)
    assert service["volumes"] == [f"./{postgres.ACCESS.name}:{mounted}:ro"]
    assert postgres.ACCESS.parent == FILE.parent


def test_services_one_role_needs_a_password_wherever_it_comes_from() -> None:
    """The first line that fits decides; a container sees other addresses than loopback."""
    lines = postgres.ACCESS.read_text(encoding="utf-8").splitlines()
    access = [line.split() for line in lines if line and not line.startswith("#")]
    assert access == [
        ["host", "all", "psych_locked_out", "all", "scram-sha-256"],
        ["local", "all", "all", "trust"],
        ["host", "all", "all", "all", "trust"],
    ]


def test_services_the_pooler_in_a_container_is_told_the_same(
    services: Mapping[str, Service],
) -> None:
    """In capitals, as its image wants it; beside that it is told where the server is."""
    told = {name: str(value) for name, value in services["pgbouncer"]["environment"].items()}
    place = {"DB_HOST": "postgres", "DB_USER": "postgres", "DB_PASSWORD": "unused"}
    assert told == place | {name.upper(): value for name, value in postgres.POOLER.items()}


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("mysql", [*mysql.SETTINGS, mysql.NO_X_PLUGIN]),
        ("mariadb", [*mysql.SETTINGS, *mysql.LIKE_DEBIAN]),
    ],
)
def test_services_mysql_in_a_container_is_told_the_same(
    services: Mapping[str, Service], name: str, options: list[str]
) -> None:
    """Also its character set; of sql_mode neither is told anything, since sessions set it."""
    assert services[name]["command"] == options


def compose_words(*words: str) -> tuple[str, ...]:
    """Return a command of compose without the name of the project, which its folder gives."""
    return ("compose", "-f", str(FILE), "-p", *words)


def asked_of(docker: StubDocker) -> list[tuple[str, ...]]:
    """Return what was asked since the last time, without names of projects."""
    return [
        (*asked.words[:4], *asked.words[5:]) if "-p" in asked.words else asked.words
        for asked in docker.asked()
    ]


LOOKS_FOR_DOCKER = [("compose", "version"), ("info",)]
LOOKS_FOR_ONE = compose_words("ps", "--quiet", "--status", "running", "mysql")


def test_services_where_a_daemon_answers_a_container_is_started_once(
    apart: Path, docker: StubDocker
) -> None:
    """The image is fetched if it is not here; the container has the remembered port."""
    docker.fail()
    first = start_server("mysql")
    record = state.read("mysql")
    assert record is not None
    assert record == state.Record(record.port, docker=True)
    assert (first.version, first.url) == (VERSION, f"mysql://root@127.0.0.1:{record.port}/")
    asked = docker.asked()
    assert [one.words for one in asked[:2]] == LOOKS_FOR_DOCKER
    assert [one.words[5:] for one in asked[2:]] == [
        ("pull", "--quiet", "--policy", "missing", "mysql"),
        ("up", "--detach", "mysql"),
    ]
    others = {f"PORT_{name.upper()}": "0" for name in compose.NAMES}
    assert asked[3].ports == others | {"PORT_MYSQL": str(record.port)}
    assert start_server("mysql") == first
    assert set(asked_of(docker)) == {LOOKS_FOR_ONE}
    assert control.status()["mysql"] == first


def test_services_a_container_is_stopped_once_and_comes_back_at_its_port(
    apart: Path, docker: StubDocker
) -> None:
    """In order, or as by a crash."""
    docker.fail()
    first = start_server("mysql")
    docker.asked()
    stop_server("mysql")
    assert asked_of(docker) == [LOOKS_FOR_ONE, compose_words("stop", "mysql")]
    assert control.status()["mysql"] is None
    stop_server("mysql")
    assert set(asked_of(docker)) == {LOOKS_FOR_ONE}
    assert start_server("mysql") == first
    docker.asked()
    assert restart_server("mysql", "immediate") == first
    assert compose_words("kill", "mysql") in asked_of(docker)


def has_a_program(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let a server that runs as a process be one that only greets."""
    kind = replace(KINDS[name], prepare=lambda name, folder, port, urls: Program(greeter(port)))
    monkeypatch.setitem(KINDS, name, kind)


@pytest.mark.parametrize(
    ("fails", "looks"),
    [
        ("compose version", LOOKS_FOR_DOCKER[:1]),
        ("info", LOOKS_FOR_DOCKER),
        (
            "compose pull",
            [
                *LOOKS_FOR_DOCKER,
                compose_words("pull", "--quiet", "--policy", "missing", "mysql"),
            ],
        ),
    ],
)
def test_services_without_compose_daemon_or_image_it_is_a_process(
    apart: Path,
    docker: StubDocker,
    monkeypatch: pytest.MonkeyPatch,
    fails: str,
    looks: list[tuple[str, ...]],
) -> None:
    """No container is begun, and the next command need not ask again."""
    has_a_program(monkeypatch, "mysql")
    docker.fail(fails)
    first = start_server("mysql")
    record = state.read("mysql")
    assert record is not None
    assert record.pid is not None
    assert not record.docker
    assert asked_of(docker) == looks
    assert start_server("mysql") == first
    assert state.read("mysql") == record
    assert asked_of(docker) == []


def test_services_a_daemon_that_is_gone_is_done_without(
    apart: Path, docker: StubDocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was a container is a process then, at the same port."""
    has_a_program(monkeypatch, "mysql")
    docker.fail()
    first = start_server("mysql")
    stop_server("mysql")
    docker.fail("info", "compose ps")
    assert control.status()["mysql"] is None
    assert start_server("mysql") == first
    record = state.read("mysql")
    assert record is not None
    assert record.pid is not None
