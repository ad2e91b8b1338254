"""`psych report`, and the views behind every --json: what is printed is what is published."""

from itertools import pairwise
from pathlib import Path

import pytest

from psych_runtime.testing import CountingSystem, LogBuilder
from psych_runtime.views import answer_view, report_view, status_view
from psych_schema.view import ReportView
from tests.functional.cli.inside import psych
from tests.functional.cli.stored import asking, busy, killed, published, stored, waiting


def sections(text: str) -> list[str]:
    """Return the titles: what follows an empty line."""
    lines = text.splitlines()
    return [line for before, line in pairwise(lines) if not before]


LOGS = {"killed": killed, "waiting": waiting, "asking": asking, "busy": busy}


@pytest.mark.parametrize("name", LOGS)
def test_cli_1_every_view_validates_against_its_published_schema(name: str) -> None:
    """Status, answer and report, of Runs in every stage of life."""
    log = LOGS[name]()
    views = {
        "status": status_view(log.header, log.entries),
        "answer": answer_view(log.header, log.entries),
        "report": report_view(log.header, log.entries),
    }

    for schema, view in views.items():
        document = view.model_dump(mode="json")
        assert [error.message for error in published(schema).iter_errors(document)] == []


def test_cli_1_the_published_schemas_refuse_what_is_no_view() -> None:
    """The validators can fail."""
    for schema in ("status", "answer", "report"):
        assert not published(schema).is_valid({"run_id": 7})


def test_cli_1_report_as_json_is_the_published_document(tmp_path: Path) -> None:
    """Exactly the view of the log."""
    log = killed()
    ran = psych("report", log.run_id, "--json", "--store", stored(tmp_path, log))

    assert ran.code == 0
    assert [error.message for error in published("report").iter_errors(ran.json())] == []
    assert ReportView.model_validate_json(ran.out) == report_view(log.header, log.entries)


def test_cli_1_report_for_people_says_what_happened(tmp_path: Path) -> None:
    """Outcome, attempts, calls, totals, what nobody knows."""
    log = killed()
    ran = psych("report", log.run_id, "--store", stored(tmp_path, log))
    lines = ran.out.splitlines()

    assert ran.code == 0
    assert lines[0] == f"{log.run_id}  done: completed"
    assert sections(ran.out) == [
        "ATTEMPTS",
        "MODEL CALLS",
        "TOOL CALLS",
        "TOTALS",
        "WHAT HAPPENED WHEN (0 to 0.014 s)",
        "TO KNOW",
    ]
    text = " ".join(ran.out.split())
    assert "fresh taken" in text
    assert "reclaimed settled" in text
    assert "look ok 1 0.250 s" in text
    assert "charge unknown (recovered) 1 -" in text
    assert "tokens: input 20, cache read 0, cache write 0, output 6 (reasoning -)" in text
    assert "cost: unknown (no price)" in text
    assert "- Nobody knows whether 1 tool call took effect: charge." in text


def test_cli_1_report_draws_what_happened_when(tmp_path: Path) -> None:
    """A bar each, in the order of their beginnings; `?` from where nobody knows."""
    system = CountingSystem()
    log = LogBuilder(tenant="local", system=system)
    log.admit("hi")
    system.pass_time(10)
    log.claim()
    [call] = log.turn(["look"])
    log.start(call)
    system.pass_time(10)
    log.claim()
    log.finish(call, outcome="unknown", duration_seconds=0.0)
    log.turn()
    log.settle()
    ran = psych("report", log.run_id, "--store", stored(tmp_path, log))

    bars = [line.split("|") for line in ran.out.splitlines() if line.count("|") == 2]
    names = [name.strip() for name, _, _ in bars]
    drawn = {name: bar for name, (_, bar, _) in zip(names, bars, strict=True)}
    assert names == ["attempt 1", "test-model", "look", "attempt 2", "test-model"]
    assert all(len(bar) == 48 for bar in drawn.values())
    assert drawn["attempt 1"] == " " * 23 + "-" * 25
    assert drawn["look"] == " " * 24 + "*" + "?" * 23


def test_cli_1_report_of_a_run_that_has_not_begun(tmp_path: Path) -> None:
    """No attempt, no call, no bar, and nothing to know."""
    log = waiting()
    ran = psych("report", log.run_id, "--store", stored(tmp_path, log))

    assert ran.code == 0
    assert ran.out.splitlines()[0] == f"{log.run_id}  queued"
    assert sections(ran.out) == ["TOTALS"]
    assert "cost: unknown (no model calls)" in ran.out


def test_cli_1_report_of_an_unknown_run_is_an_error(tmp_path: Path) -> None:
    """Also of another tenant's."""
    log = killed()
    url = stored(tmp_path, log)

    for arguments in (["run_x"], [log.run_id, "--tenant", "acme"]):
        ran = psych("report", *arguments, "--store", url)
        assert (ran.code, ran.out) == (1, "")
        assert ran.err.startswith(f"error: no run '{arguments[0]}' in this tenant;")


def test_cli_1_report_has_no_colour_and_no_wrapping_when_nobody_looks(tmp_path: Path) -> None:
    """A pipe gets the same lines as a wide terminal."""
    log = killed()
    url = stored(tmp_path, log)
    narrow = psych("report", log.run_id, "--store", url, COLUMNS="20")
    wide = psych("report", log.run_id, "--store", url, COLUMNS="300")

    assert "\x1b" not in narrow.out
    assert narrow.out == wide.out
