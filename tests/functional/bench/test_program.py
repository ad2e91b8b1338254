"""`python -m tests.bench` runs and says every line; what the figures are is nobody's business."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.program import PARTS
from tests.bench.sizes import QUICK
from tests.services.kinds import KINDS

ROOT = Path(__file__).parents[3]
RATES = ("cpu_1", "rate_16", "cpu_16", "rate_64", "cpu_64")
STORES = ("sqlite", "postgresql", "mysql", "mariadb", "dynamodb")


def of_store(id: str) -> list[str]:
    return [f"{id}_one", *(f"{id}_{rate}" for rate in RATES)]


LINES = {
    "import": ["import", "import_session"],
    "fold": ["fold", "decode_and_fold"],
    "turns": ["turn_late", "turn_very_late"],
    "memory": of_store("memory"),
    "sqlite": of_store("sqlite"),
    "postgresql": of_store("postgresql"),
    "postgresql_18": of_store("postgresql_18"),
    "mysql": of_store("mysql"),
    "mariadb": of_store("mariadb"),
    "dynamodb": of_store("dynamodb"),
    "steps": [
        "sqlite_step",
        "postgresql_step",
        "postgresql_18_step",
        "mysql_step",
        "mariadb_step",
        "dynamodb_step",
    ],
    "writes": [
        "commits",
        "postgresql_wal",
        *(f"{store}_asked_{at_once}" for store in STORES for at_once in (1, 64)),
    ],
    "pickup": ["pickup"],
    "reader": ["reader", "reader_p95"],
    "durability": ["durability_1", "durability_16"],
    "recovery": [f"{store}_recovery" for store in STORES],
    "claim": ["claim"],
    "idle": ["idle_cpu", "idle_connections"],
}
BOUNDS = {
    "import": 2.5,
    "fold": 2.0,
    "turn_late": 1.2,
    "turn_very_late": 1.2,
    "sqlite_rate_16": 2.0,
    "postgresql_one": 1.5,
    "postgresql_rate_64": 1.0,
    "postgresql_cpu_64": 2.5,
    **{f"{store}_one": 2.0 for store in ("mysql", "mariadb", "dynamodb")},
    **{f"{store}_rate_16": 2.0 for store in ("mysql", "mariadb", "dynamodb")},
    **{f"{store}_rate_64": 2.0 for store in ("mysql", "mariadb", "dynamodb")},
    **dict.fromkeys(LINES["steps"], 2.0),
    "durability_1": 1.05,
}
LIMITS = {
    "commits": 5.0,
    "postgresql_wal": 10.0,
    "pickup": 10.0,
    "reader": 10.0,
    "reader_p95": 30.0,
    **dict.fromkeys(LINES["recovery"], QUICK.lease_seconds + 1.0),
    "claim": 5.0,
    "idle_cpu": 5.0,
    "idle_connections": 10.0,
}
COUNTED = {*LINES["writes"], *LINES["idle"]}
"""What has no yardstick."""


def bench(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the program as a person does."""
    command = [sys.executable, "-m", "tests.bench", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


@pytest.mark.parametrize(
    "parts",
    [
        ("import", "fold", "turns", "memory", "sqlite"),
        ("postgresql", "postgresql_18", "mysql", "mariadb"),
        ("dynamodb", "steps", "writes"),
        ("pickup", "reader", "durability"),
        ("recovery", "claim", "idle"),
    ],
)
def test_bench_parts_have_all_their_lines(parts: tuple[str, ...], tmp_path: Path) -> None:
    """Beside a yardstick or counted, those with a bound judged, all in the table and the file.

    The versions of the servers that were taken are among the facts, and of no others.
    """
    kept = tmp_path / "bench.json"
    done = bench("--quick", "--json", kept, *parts)
    assert done.returncode == 0, done.stderr
    document = json.loads(kept.read_text())
    assert [line["id"] for line in document["lines"]] == [
        id for part in parts for id in LINES[part]
    ]
    for line in document["lines"]:
        id = line["id"]
        assert (line["yardstick"] is None) == (id in COUNTED)
        assert (line["bound"], line["limit"]) == (BOUNDS.get(id), LIMITS.get(id))
        judged = id in BOUNDS or id in LIMITS
        assert line["verdict"] in (("ok", "ABOVE") if judged else (None,))
        assert f"{id}: {line['title']}" in done.stdout
    assert document["quick"] is True
    machine = document["machine"]
    servers = {server for part in parts for server in PARTS[part].servers}
    assert set(machine) >= {"cores", "cpu", "python", "pydantic", "sqlite"} | servers
    assert set(machine) & KINDS.keys() == servers
    first, second, *_ = done.stdout.splitlines()
    assert first == "; ".join(f"{name} {value}" for name, value in machine.items())
    assert second.startswith("load average ")


def test_bench_every_part_is_tested() -> None:
    """A new one needs its lines here."""
    assert LINES.keys() == PARTS.keys()


def test_bench_an_unknown_part_is_refused_with_those_there_are() -> None:
    """Nothing is measured."""
    done = bench("--quick", "weather")
    assert done.returncode == 2
    assert "no weather; there are import, fold, turns, memory, sqlite, postgresql, " in done.stderr
