"""The statements as SQLite text, compiled once per prefix; nothing compiles while Runs run."""

from functools import cache
from typing import Final

from sqlalchemy import ClauseElement
from sqlalchemy.dialects.sqlite import dialect

from psych_runtime.store.sql_claims import ClaimStatements
from psych_runtime.store.sql_ledger import LedgerStatements
from psych_runtime.store.sql_log import LogStatements
from psych_runtime.store.sql_workers import WorkerStatements
from psych_schema.tables import tables

__all__ = ["Texts", "texts"]

_DIALECT: Final = dialect(paramstyle="named")


def _text(statement: ClauseElement) -> str:
    return str(statement.compile(dialect=_DIALECT))


class Texts:
    """Every statement under one prefix, by name; `run_columns` is the order of a header's row."""

    def __init__(self, prefix: str) -> None:
        self.run_columns: Final = tuple(column.name for column in tables(prefix).run.c)
        log = LogStatements(prefix)
        self.judge_run: Final = _text(log.judge_run())
        self.judge_change: Final = _text(log.judge_change())
        self.advance_head: Final = _text(log.advance_head())
        self.edit_open: Final = _text(log.edit_open())
        self.change_header: Final = _text(log.change_header())
        self.insert_run: Final = _text(log.insert_row("run"))
        self.insert_record: Final = _text(log.insert_row("record"))
        self.insert_thread: Final = _text(log.insert_row("thread"))
        self.insert_key: Final = _text(log.insert_row("key"))
        self.insert_version: Final = _text(log.insert_row("version"))
        self.insert_document: Final = _text(log.insert_row("document"))
        self.insert_worker: Final = _text(log.insert_row("worker"))
        self.read_header: Final = _text(log.read_header())
        self.read_head: Final = _text(log.read_head())
        self.read_log: Final = _text(log.read_log())
        self.read_tail: Final = _text(log.read_tail())
        self.read_place: Final = _text(log.read_place())
        self.read_key: Final = _text(log.read_key())
        self.list_runs: Final = _text(log.list_runs())
        self.read_version: Final = _text(log.read_version())
        self.read_document: Final = _text(log.read_document())
        claims = ClaimStatements(prefix)
        self.next_ready_tenant: Final = _text(claims.next_ready_tenant())
        self.next_due_tenant: Final = _text(claims.next_due_tenant())
        self.next_ready_priority: Final = _text(claims.next_priority("ready"))
        self.next_suspended_priority: Final = _text(claims.next_priority("suspended"))
        self.find_ready: Final = _text(claims.find_ready())
        self.find_ready_due: Final = _text(claims.find_due("ready"))
        self.find_suspended_due: Final = _text(claims.find_due("suspended"))
        self.next_held_worker: Final = _text(claims.next_held_worker())
        self.find_held: Final = _text(claims.find_held())
        self.find_late: Final = _text(claims.find_late())
        self.find_aborted: Final = _text(claims.find_aborted())
        workers = WorkerStatements(prefix)
        self.read_worker: Final = _text(workers.read_worker())
        self.live_workers: Final = _text(workers.live_workers())
        self.worker_rows: Final = _text(workers.worker_rows())
        self.renew_worker: Final = _text(workers.renew_worker())
        self.see_run: Final = _text(workers.see_run())
        self.lapsed_workers: Final = _text(workers.lapsed_workers())
        self.bury_worker: Final = _text(workers.bury_worker())
        self.sweep_workers: Final = _text(workers.sweep_workers())
        ledger = LedgerStatements(prefix)
        self.ledger_name: Final = ledger.name
        self.read_ledger: Final = _text(ledger.read_ledger())
        self.insert_migration: Final = _text(ledger.insert_migration())


@cache
def texts(prefix: str) -> Texts:
    """Return the statements under `prefix`."""
    return Texts(prefix)
