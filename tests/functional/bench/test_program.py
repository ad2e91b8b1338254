"""`python -m tests.bench` runs and says every line; what the figures are is nobody's business."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
RATES = ["rate_1", "cpu_1", "rate_16", "cpu_16", "rate_64", "cpu_64"]
LINES = {
    "import": ["import", "import_session"],
    "fold": ["fold", "decode_and_fold"],
    "turns": ["turn_late", "turn_very_late"],
    "memory": ["memory_one", *(f"memory_{rate}" for rate in RATES)],
    "sqlite": ["sqlite_one", *(f"sqlite_{rate}" for rate in RATES)],
}
BOUNDS = {
    "import": 2.5,
    "fold": 2.0,
    "turn_late": 1.2,
    "turn_very_late": 1.2,
}


def bench(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the program as a person does."""
    command = [sys.executable, "-m", "tests.bench", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


@pytest.mark.parametrize("part", LINES)
def test_bench_a_part_has_all_its_lines(part: str, tmp_path: Path) -> None:
    """Each beside a yardstick, those with a bound judged, all in the table and in the file."""
    kept = tmp_path / "bench.json"
    done = bench("--quick", "--json", kept, part)
    assert done.returncode == 0, done.stderr
    document = json.loads(kept.read_text())
    assert [line["id"] for line in document["lines"]] == LINES[part]
    for line in document["lines"]:
        assert line["value"] > 0
        assert line["yardstick"] > 0
        assert line["bound"] == BOUNDS.get(line["id"])
        assert line["verdict"] in ((None,) if line["bound"] is None else ("ok", "ABOVE"))
        assert f"{line['id']}: {line['title']}" in done.stdout
    assert document["quick"] is True
    assert set(document["machine"]) > {"cores", "cpu", "python", "pydantic", "sqlite"}
    assert "load average" in done.stdout


def test_bench_an_unknown_part_is_refused_with_those_there_are() -> None:
    """Nothing is measured."""
    done = bench("--quick", "weather")
    assert done.returncode == 2
    assert "no weather; there are import, fold, turns, memory, sqlite" in done.stderr
