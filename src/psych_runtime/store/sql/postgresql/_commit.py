"""The statement that commits many units at once: judged under lock, written all or none (R-1).

Its parts are left out when no unit needs them: admissions, keys, and caps when no state changes.
The rows of `run` are locked in run_id order before anything is read that decides; what the
snapshot of the statement is too old to see ends in a unique violation, and it is sent again.
"""

from functools import lru_cache
from typing import Final

from psych_runtime.store.sql._statement import load
from psych_schema.store import RunRow

__all__ = ["commit_text"]

_PACKAGE: Final = "psych_runtime.store.sql.postgresql"
_DEADLINE: Final = "coalesce(now() + deadline_after * interval '1 second', deadline_at)"


@lru_cache(maxsize=32)
def commit_text(prefix: str, *, admits: bool, names: bool, moves: bool) -> str:
    """Return the statement; its rows are the refusals that `answers` reads.

    Args:
        prefix: of the tables.
        admits: whether a unit has an admission.
        names: whether a unit has a key.
        moves: whether a change names a state.
    """
    pieces = load(_PACKAGE, "commit.sql", prefix)
    judged = [
        pieces["refused_runs"],
        *([pieces["refused_keys"]] if names else ()),
        *([pieces["refused_places"]] if admits else ()),
    ]
    steps = [
        pieces["given"],
        *([pieces["named"]] if names else ()),
        *([pieces["admitted"]] if admits else ()),
        pieces["held"],
        _step("judged", "\n  UNION ALL\n".join(judged)),
        *([pieces["caps"]] if moves else ()),
        _step("refused", pieces["refused_all"] if moves else "  SELECT * FROM judged"),
        _step("accepted", pieces["accepted"]),
        pieces["changed"].replace("{counts}", pieces["capped"] if moves else ""),
        pieces["written"],
        *([pieces["counted"]] if moves else ()),
        *([pieces["new_keys"]] if names else ()),
        *([_new_runs(pieces["new_runs"])] if admits else ()),
    ]
    return "WITH " + ",\n".join(steps) + "\n" + pieces["answer"]


def _step(name: str, text: str) -> str:
    return f"{name} AS MATERIALIZED (\n{text}\n)"


def _new_runs(text: str) -> str:
    columns = list(RunRow.model_fields)
    given = [_DEADLINE if column == "deadline_at" else column for column in columns]
    return text.replace("{columns}", ", ".join(columns)).replace("{given}", ", ".join(given))
