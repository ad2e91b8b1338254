"""Which servers there are, and how each is named, reached, prepared and stopped."""

import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.services import greetings, mysql, packages, postgres
from tests.services.process import Program

__all__ = ["KINDS", "Kind", "Prepare"]

type Prepare = Callable[[str, Path, int, Mapping[str, str]], Program]
"""From its name, its folder, its port and the URLs of the servers it needs."""


@dataclass(frozen=True)
class Kind:
    """One server; `url` has a place for the port.

    Attributes:
        variable: names one that runs elsewhere; then nothing is started.
        version: asks the server at a URL; OSError while it is not ready.
        fast: ends it in order.
        immediate: ends it as a crash would: what is not durable is lost.
        needs: the servers that must run first.
    """

    variable: str
    url: str
    version: Callable[[str], str]
    prepare: Prepare
    fast: signal.Signals = signal.SIGTERM
    immediate: signal.Signals = signal.SIGKILL
    needs: tuple[str, ...] = ()


def _alone(prepare: Callable[[str, Path, int], Program]) -> Prepare:
    return lambda name, folder, port, _: prepare(name, folder, port)


def _ministack(name: str, folder: Path, port: int) -> Program:
    """Prepare DynamoDB and S3; it keeps all in memory, so a stop forgets it."""
    environment = {
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "SERVICES": "dynamodb,s3",
        "TMPDIR": str(folder),
        "HOME": str(folder),
    }
    return Program((str(packages.python(name)), "-m", "ministack"), environment)


KINDS: Final[Mapping[str, Kind]] = {
    "postgres": Kind(
        "PSYCH_TEST_POSTGRES_URL",
        "postgresql://postgres@127.0.0.1:{port}/postgres",
        greetings.postgres_version,
        _alone(postgres.postgres),
        fast=signal.SIGINT,
        immediate=signal.SIGQUIT,
    ),
    "postgres_new": Kind(
        "PSYCH_TEST_POSTGRES_NEW_URL",
        "postgresql://postgres@127.0.0.1:{port}/postgres",
        greetings.postgres_version,
        _alone(postgres.newer_postgres),
        fast=signal.SIGINT,
        immediate=signal.SIGQUIT,
    ),
    "pgbouncer": Kind(
        "PSYCH_TEST_PGBOUNCER_URL",
        "postgresql://postgres@127.0.0.1:{port}/postgres",
        greetings.pgbouncer_version,
        lambda name, folder, port, urls: postgres.pgbouncer(name, folder, port, urls["postgres"]),
        fast=signal.SIGKILL,  # it has nothing to lose, and in order it waits for its clients
        needs=("postgres",),
    ),
    "mysql": Kind(
        "PSYCH_TEST_MYSQL_URL",
        "mysql://root@127.0.0.1:{port}/",
        greetings.mysql_version,
        _alone(mysql.mysql),
    ),
    "mariadb": Kind(
        "PSYCH_TEST_MARIADB_URL",
        "mariadb://root@127.0.0.1:{port}/",
        greetings.mysql_version,
        _alone(mysql.mariadb),
    ),
    "aws": Kind(
        "PSYCH_TEST_AWS_ENDPOINT",
        "http://127.0.0.1:{port}",
        greetings.aws_version,
        _alone(_ministack),
    ),
}
