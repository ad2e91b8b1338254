"""The packet that deletes Runs as they were read, with all their rows, all or none (ST-6)."""

from collections.abc import Sequence

from psych_runtime.store.sql._database import Param
from psych_runtime.store.sql.mysql._literal import filled, literal
from psych_schema.store import RunRow

__all__ = ["deletion"]

_PACKET = """START TRANSACTION;
SELECT run_id FROM "{prefix}run" WHERE run_id IN (:run_ids) ORDER BY run_id FOR UPDATE;
SET @psych_fits = (
  SELECT COUNT(*) FROM "{prefix}run" WHERE tenant = :tenant AND ({as_read})) = :count;
DELETE thread FROM "{prefix}thread" AS thread JOIN "{prefix}run" AS run
  ON run.tenant = thread.tenant AND run.thread = thread.thread AND run.position = thread.position
WHERE run.run_id IN (:run_ids) AND @psych_fits;
DELETE FROM "{prefix}record" WHERE run_id IN (:run_ids) AND @psych_fits;
DELETE FROM "{prefix}key" WHERE tenant = :tenant AND @psych_fits
  AND (run_id IN (:run_ids) AND run_id <> '' OR run_id = '' AND "key" IN (:keys));
DELETE FROM "{prefix}run" WHERE run_id IN (:run_ids) AND @psych_fits;
SELECT @psych_fits;
COMMIT"""


def deletion(prefix: str, tenant: str, headers: Sequence[RunRow], keys: Sequence[str]) -> str:
    """Return the packet; its last row says whether the Runs were deleted."""
    as_read = " OR ".join(
        f"run_id = {literal(one.run_id)} AND head = {one.head} AND state = {literal(one.state)} "
        f"AND referenced = {literal(one.referenced)}"
        for one in headers
    )
    text = _PACKET.replace("{prefix}", prefix)
    values: dict[str, Param] = {
        "run_ids": [one.run_id for one in headers],
        "tenant": tenant,
        "count": len(headers),
        "keys": keys,
    }
    # the texts of headers are set in last: one of them may look like a name to fill in
    return filled(text, values).replace("{as_read}", as_read or "FALSE")
