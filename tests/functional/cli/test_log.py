"""`psych log` prints records as they are stored, also those that nobody can read (CLI-1)."""

import json
import sqlite3
from pathlib import Path

import pytest

from psych_runtime import InvalidPayload, parse_record
from psych_runtime.testing import CountingSystem, LogBuilder
from psych_schema.common import BlobRef
from psych_schema.model import BlobPart
from psych_schema.record import ToolCompleted, ToolResult
from tests.functional.cli.inside import psych
from tests.functional.cli.stored import killed, published, stored, unreadable, waiting

BODY = '{"broken":"\\u001b[2J"}\x1b[2J\n'


def broken(folder: Path) -> tuple[str, LogBuilder]:
    """Store a Run whose last row is no record; return the store's URL and the log before it."""
    log = waiting()
    url = stored(folder, log)
    unreadable(url, log, BODY)
    return url, log


def test_cli_1_log_as_json_reads_back_as_the_records(tmp_path: Path) -> None:
    """One line each, nothing lost: the same records."""
    log = killed()
    ran = psych("log", log.run_id, "--json", PSYCH_STORE=stored(tmp_path, log))

    assert ran.code == 0
    assert [parse_record(line) for line in ran.out.splitlines()] == [
        entry.record for entry in log.entries
    ]


def test_cli_1_log_says_which_file_it_was(tmp_path: Path) -> None:
    """Its name, type and size; one without a name by the other two."""
    log = LogBuilder(tenant="local", system=CountingSystem())
    log.admit()
    log.claim()
    [call] = log.turn(["look"])
    log.start(call)
    image = BlobRef(hash="a" * 64, bytes=70, media_type="image/png")
    text = BlobRef(hash="b" * 64, bytes=9, media_type="text/plain")
    parts = (BlobPart(blob=image, name="page.png"), BlobPart(blob=text))
    log.finish(call, result=ToolResult(parts=parts), attachments=(image, text))
    ran = psych("log", log.run_id, "--store", stored(tmp_path, log))

    [line] = [line for line in ran.out.splitlines() if "tool.completed" in line]
    assert "[page.png, image/png, 70 bytes] [text/plain, 9 bytes]" in line


def test_cli_1_log_after_a_seq_begins_behind_it(tmp_path: Path) -> None:
    """As after=N of a stream; behind the end there is nothing."""
    log = killed()
    url = stored(tmp_path, log)
    last = psych("log", log.run_id, "--store", url, "--json", "--after", str(len(log.rows) - 1))
    none = psych("log", log.run_id, "--store", url, "--json", "--after", str(len(log.rows)))

    assert [parse_record(line).type for line in last.out.splitlines()] == ["run.settled"]
    assert (none.code, none.out) == (0, "")


def test_cli_1_log_for_people_has_a_line_for_each_record(tmp_path: Path) -> None:
    """seq, seconds since admission, epoch, type, and what was said."""
    log = killed()
    ran = psych("log", log.run_id, "--store", stored(tmp_path, log))

    head, *lines = ran.out.splitlines()
    assert head.split() == ["SEQ", "SECONDS", "EPOCH", "TYPE", "WHAT"]
    assert [line.split()[3] for line in lines] == [entry.record.type for entry in log.entries]
    assert lines[0].split(maxsplit=4) == [
        "1",
        "0.000",
        "0",
        "run.admitted",
        'tenant local: {"message":"What does it cost?"}',
    ]
    assert "Let me look. look({}) charge({})" in ran.out
    assert "unknown, 0.000 s" in ran.out
    assert lines[-1].endswith("completed")


def test_cli_1_log_shows_foreign_text_without_letting_it_move_the_cursor(tmp_path: Path) -> None:
    """What a tool returned may hold anything; a line stays a line."""
    log = LogBuilder(tenant="local", system=CountingSystem())
    log.admit("hi")
    log.claim()
    [call] = log.turn(["look"])
    log.start(call)
    log.finish(call, "a\x1b[2Jb\nc \x07" + "x" * 500)
    ran = psych("log", log.run_id, "--store", stored(tmp_path, log))

    assert "\x1b" not in ran.out
    assert "\x07" not in ran.out
    assert "a\\x1b[2Jb c \\x07xxx" in ran.out
    assert len(ran.out.splitlines()) == len(log.rows) + 1
    assert all(len(line) < 130 for line in ran.out.splitlines())


def test_log_3_log_shows_a_row_that_nobody_can_read_and_exits_with_1(tmp_path: Path) -> None:
    """The command is how one looks at a corrupt log."""
    url, log = broken(tmp_path)
    ran = psych("log", log.run_id, "--store", url)

    assert ran.code == 1
    assert "cannot be read: " in ran.out
    assert "\x1b" not in ran.out
    assert ran.err.startswith(f"error: unreadable: run {log.run_id} at seq 2;")


def test_log_3_log_as_json_says_of_a_row_that_nobody_can_read_that_it_is_none(
    tmp_path: Path,
) -> None:
    """In its place, on one line, what is stored untouched; it cannot be taken for a record."""
    url, log = broken(tmp_path)
    ran = psych("log", log.run_id, "--store", url, "--json")

    first, second = ran.out.splitlines()
    assert ran.code == 1
    assert parse_record(first) == log.entries[0].record
    assert json.loads(second) == {
        "type": "unreadable",
        "run_id": log.run_id,
        "seq": 2,
        "stored_type": "turn.started",
        "code": "corrupt_log",
        "message": f"unreadable: run {log.run_id} at seq 2; the log is left as it is, "
        "and nothing follows in it: see `psych log`, and begin another thread",
        "body": BODY,
        "content": None,
    }
    assert published("record").is_valid(json.loads(first))
    assert not published("record").is_valid(json.loads(second))
    with pytest.raises(InvalidPayload):
        parse_record(second)


def test_log_4_log_as_json_keeps_what_a_newer_build_wrote(tmp_path: Path) -> None:
    """This build cannot read it; whoever can gets the text."""
    log = waiting()
    url = stored(tmp_path, log)
    body = '{"v":9,"epoch":0,"at":"2026-01-01T00:00:00.000000Z"}'
    unreadable(url, log, body, type="moon.landed")
    ran = psych("log", log.run_id, "--store", url, "--json")

    last = json.loads(ran.out.splitlines()[-1])
    assert ran.code == 1
    assert (last["code"], last["stored_type"], last["body"]) == (
        "newer_record",
        "moon.landed",
        body,
    )


def test_cli_1_log_as_json_has_one_line_for_a_record_stored_on_several(tmp_path: Path) -> None:
    """Somebody repaired a log by hand, and his editor was tidy."""
    log = waiting()
    url = stored(tmp_path, log)
    with sqlite3.connect(tmp_path / "runs.db") as database:
        database.execute("UPDATE record SET body = replace(body, ',\"seq\"', ',\r\n \"seq\"')")
    database.close()
    ran = psych("log", log.run_id, "--store", url, "--json")

    [line] = ran.out.splitlines()
    assert parse_record(line) == log.entries[0].record


def test_cli_1_log_of_an_unknown_run_is_an_error(tmp_path: Path) -> None:
    """Also of a Run of another tenant; standard output stays empty."""
    log = killed()
    url = stored(tmp_path, log)

    for arguments in (["run_x"], [log.run_id, "--tenant", "acme"]):
        for more in ([], ["--json"]):
            ran = psych("log", *arguments, *more, "--store", url)
            assert (ran.code, ran.out) == (1, "")
            assert ran.err == (
                f"error: no run '{arguments[0]}' in this tenant; check the id and the scope\n"
                "code: run_not_found\n"
            )


def test_cli_1_log_survives_a_reader_that_has_seen_enough(tmp_path: Path) -> None:
    """Tens of kilobytes of one record are one line of JSON."""
    log = LogBuilder(tenant="local", system=CountingSystem())
    log.admit("hi")
    log.claim()
    [call] = log.turn(["look"])
    log.start(call)
    completed: ToolCompleted = log.finish(call, "long \u2028 line\n" * 4000)
    ran = psych("log", log.run_id, "--json", "--store", stored(tmp_path, log))

    assert [parse_record(line) for line in ran.out.split("\n")[:-1]][-1] == completed
