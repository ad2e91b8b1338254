"""Compiles the statements for SQLite into statements.sql, which is what runs.

Loading SQLAlchemy costs a second that a process which only runs the text need not pay. After a
change of a statement or a table: `python -m psych_runtime.store.sqlite._compile`. A test compares.
"""

from pathlib import Path
from typing import Final

from sqlalchemy import ClauseElement
from sqlalchemy.dialects.sqlite import dialect

from psych_runtime.store.sql_caps import CapStatements
from psych_runtime.store.sql_claims import ClaimStatements
from psych_runtime.store.sql_ledger import LedgerStatements
from psych_runtime.store.sql_log import LogStatements
from psych_runtime.store.sql_removal import RemovalStatements
from psych_runtime.store.sql_values import ValueStatements
from psych_runtime.store.sql_workers import WorkerStatements
from psych_runtime.store.sqlite._texts import PREFIX, STATEMENTS

__all__ = ["rendered", "statements"]

_DIALECT: Final = dialect(paramstyle="named")
_BANNER: Final = "-- Compiled by `python -m psych_runtime.store.sqlite._compile`. Do not edit."

_INSERTED: Final = (
    "run", "record", "thread", "key", "version", "document", "worker", "cap", "kv",
)  # fmt: skip


def statements(prefix: str = PREFIX) -> dict[str, ClauseElement]:
    """Return every statement by its name."""
    log, claims = LogStatements(prefix), ClaimStatements(prefix)
    workers, ledger = WorkerStatements(prefix), LedgerStatements(prefix)
    caps, removal = CapStatements(prefix), RemovalStatements(prefix)
    values = ValueStatements(prefix)
    return {
        "judge_changes": log.judge_changes(),
        "advance_head": log.advance_head(),
        "change_header": log.change_header(),
        **{f"insert_{table}": log.insert_row(table) for table in _INSERTED},
        "read_header": log.read_header(),
        "read_head": log.read_head(),
        "read_heads": log.read_heads(),
        "read_log": log.read_log(),
        "read_tail": log.read_tail(),
        "read_places": log.read_places(),
        "read_key": log.read_key(),
        "list_runs": log.list_runs(),
        "read_version": log.read_version(),
        "read_document": log.read_document(),
        "next_ready_tenant": claims.next_ready_tenant(),
        "next_due_tenant": claims.next_due_tenant(),
        "next_ready_priority": claims.next_priority("ready"),
        "next_suspended_priority": claims.next_priority("suspended"),
        "find_ready": claims.find_ready(),
        "find_ready_due": claims.find_due("ready"),
        "find_suspended_due": claims.find_due("suspended"),
        "next_held_worker": claims.next_held_worker(),
        "find_held": claims.find_held(),
        "find_late": claims.find_late(),
        "find_aborted": claims.find_aborted(),
        "read_worker": workers.read_worker(),
        "live_workers": workers.live_workers(),
        "worker_rows": workers.worker_rows(),
        "renew_worker": workers.renew_worker(),
        "see_run": workers.see_run(),
        "lapsed_workers": workers.lapsed_workers(),
        "bury_worker": workers.bury_worker(),
        "sweep_workers": workers.sweep_workers(),
        "read_cap": caps.read_cap(),
        "find_cap": caps.find_cap(),
        "limit_cap": caps.limit_cap(),
        "count_cap": caps.count_cap(),
        "find_contents": removal.find_contents(),
        "blank_record": removal.blank_record(),
        "delete_run": removal.delete_run(),
        "delete_log": removal.delete_log(),
        "delete_keys": removal.delete_keys(),
        "delete_key": removal.delete_key(),
        "delete_place": removal.delete_place(),
        "read_value": values.read_value(),
        "list_values": values.list_values(),
        "change_value": values.change_value(),
        "delete_value": values.delete_value(),
        "read_ledger": ledger.read_ledger(),
        "insert_migration": ledger.insert_migration(),
    }


def rendered() -> str:
    """Return the text of the file."""
    blocks = [_BANNER]
    for name, statement in statements().items():
        lines = str(statement.compile(dialect=_DIALECT)).splitlines()
        blocks.append("\n".join([f"-- {name}", *[line.strip() for line in lines]]))
    return "\n\n".join(blocks) + "\n"


if __name__ == "__main__":
    (Path(__file__).parent / STATEMENTS).write_text(rendered(), "utf-8")
