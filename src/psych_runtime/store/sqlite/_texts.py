"""The statements as SQLite runs them, read once per prefix from statements.sql."""

from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

__all__ = ["PREFIX", "STATEMENTS", "Texts", "texts"]

STATEMENTS: Final = "statements.sql"
PREFIX: Final = "{prefix}"
"""Stands in the file for the prefix of the tables."""


class Texts(NamedTuple):
    """Every statement under one prefix; what each means is said where it is built."""

    judge_changes: str
    advance_head: str
    change_header: str
    insert_run: str
    insert_record: str
    insert_thread: str
    insert_key: str
    insert_version: str
    insert_document: str
    insert_worker: str
    insert_cap: str
    insert_kv: str
    read_header: str
    read_head: str
    read_heads: str
    read_log: str
    read_tail: str
    read_places: str
    read_key: str
    list_runs: str
    read_version: str
    read_document: str
    next_ready_tenant: str
    next_due_tenant: str
    next_ready_priority: str
    next_suspended_priority: str
    find_ready: str
    find_ready_due: str
    find_suspended_due: str
    next_held_worker: str
    find_held: str
    find_late: str
    find_aborted: str
    read_worker: str
    live_workers: str
    worker_rows: str
    renew_worker: str
    see_run: str
    lapsed_workers: str
    bury_worker: str
    sweep_workers: str
    read_cap: str
    find_cap: str
    limit_cap: str
    count_cap: str
    find_contents: str
    blank_record: str
    delete_run: str
    delete_log: str
    delete_keys: str
    delete_key: str
    delete_place: str
    read_value: str
    list_values: str
    change_value: str
    delete_value: str
    read_ledger: str
    insert_migration: str


@cache
def texts(prefix: str) -> Texts:
    """Return the statements under `prefix`."""
    whole = files(__package__ or "").joinpath(STATEMENTS).read_text("utf-8")
    found: dict[str, str] = {}
    for block in whole.replace(PREFIX, prefix).strip().split("\n\n")[1:]:
        name, _, text = block.partition("\n")
        found[name.removeprefix("-- ")] = text
    return Texts(**found)
