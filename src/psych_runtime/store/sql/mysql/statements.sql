-- What is asked of MySQL and MariaDB. Statements of one block go in one packet, each a transaction
-- of its own unless the block says otherwise; the last one with rows answers. The session has
-- ANSI_QUOTES, READ COMMITTED and +00:00.
--
-- `{prefix}` is the tables' prefix, `{run}`, `{record}`, ... are the columns of a row behind an alias;
-- what is defined with `let` stands in braces below. The store's clock is NOW(6), when a statement
-- began: a lease that had to wait for a lock is shorter by that, never longer.

-- let live
EXISTS (
    SELECT 1 FROM "{prefix}worker" AS worker WHERE worker.id = run.worker AND NOT worker.dead)

-- let fits
run.run_id NOT IN (:run_ids) AND run.version NOT IN (:versions)
      AND run.schema_version <= :newest

-- let unsettled
run.state IN ('ready', 'running', 'suspended')

-- let since
IF(TIMESTAMPDIFF(MICROSECOND, NOW(6), lease_until) < lease_seconds * 500000, NOW(6), since)

-- let until
NOW(6) + INTERVAL ROUND(:lease * 1000000) MICROSECOND

-- read_log: A tenant's records behind :after; no row: no such Run; a row of nulls: no such record.
SELECT {record}
FROM "{prefix}run" AS run LEFT JOIN "{prefix}record" AS record
  ON record.run_id = run.run_id AND record.seq > :after
WHERE run.run_id = :run_id AND run.tenant = :tenant
ORDER BY record.seq LIMIT :limit

-- read_header: A tenant's header.
SELECT {run} FROM "{prefix}run" AS run
WHERE run.run_id = :run_id AND run.tenant = :tenant

-- read_headers: Headers of any tenants.
SELECT {run} FROM "{prefix}run" AS run WHERE run.run_id IN (:run_ids)

-- read_tail: The header at the highest position of a thread.
SELECT {run}
FROM "{prefix}thread" AS thread JOIN "{prefix}run" AS run ON run.run_id = thread.run_id
WHERE thread.tenant = :tenant AND thread.thread = :thread
ORDER BY thread.position DESC LIMIT 1

-- read_key: What is known of a request.
SELECT {key} FROM "{prefix}key" AS "key"
WHERE "key".tenant = :tenant AND "key".run_id = :run_id AND "key"."key" = :key

-- read_version: A published Spec.
SELECT version.document FROM "{prefix}version" AS version
WHERE version.tenant = :tenant AND version.hash = :hash

-- read_document: A system prompt or tool definition.
SELECT document.text FROM "{prefix}document" AS document
WHERE document.tenant = :tenant AND document.hash = :hash

-- read_cap: A tenant's cap.
SELECT {cap} FROM "{prefix}cap" AS cap WHERE cap.tenant = :tenant

-- heads: How far Runs are, and their states.
SELECT run.tenant, run.run_id, run.head, run.state FROM "{prefix}run" AS run WHERE run.run_id IN (:run_ids)

-- list_runs: A tenant's Runs behind a place, newest first; a filter that is null is none.
SELECT {run} FROM "{prefix}run" AS run
WHERE run.tenant = :tenant AND run.created_at <= :before_at
  AND (run.created_at < :before_at OR run.run_id < :before_run)
  AND (:created_after IS NULL OR run.created_at > :created_after)
  AND (:state IS NULL OR run.state = :state)
  AND (:version IS NULL OR run.version = :version)
  AND (:thread IS NULL OR run.thread = :thread)
  AND (:parent IS NULL OR run.parent = :parent)
ORDER BY run.created_at DESC, run.run_id DESC
LIMIT :limit

-- let next_ready
SELECT run.tenant FROM "{prefix}run" AS run
      WHERE run.state = 'ready' AND (run.wake_at IS NULL OR run.wake_at <= NOW(6)) AND {fits}

-- let next_due
SELECT run.tenant FROM "{prefix}run" AS run
      WHERE run.state = 'suspended' AND run.wake_at <= NOW(6) AND {fits}

-- tenants: The next tenants with a Run whose time has come, and what room their caps have.
-- A recursion finds tenant after tenant in the index.
WITH RECURSIVE
ready (tenant, turn) AS (
  SELECT ({next_ready} AND run.tenant > :after ORDER BY run.tenant LIMIT 1), 1
  UNION ALL
  SELECT ({next_ready} AND run.tenant > ready.tenant ORDER BY run.tenant LIMIT 1), ready.turn + 1
  FROM ready WHERE ready.tenant IS NOT NULL AND ready.turn < :window
),
due (tenant, turn) AS (
  SELECT ({next_due} AND run.tenant > :after ORDER BY run.tenant LIMIT 1), 1
  UNION ALL
  SELECT ({next_due} AND run.tenant > due.tenant ORDER BY run.tenant LIMIT 1), due.turn + 1
  FROM due WHERE due.tenant IS NOT NULL AND due.turn < :window
)
SELECT every.tenant, CAST(cap."limit" AS SIGNED) - cap.running
FROM (SELECT tenant FROM ready UNION SELECT tenant FROM due) AS every
LEFT JOIN "{prefix}cap" AS cap ON cap.tenant = every.tenant
WHERE every.tenant IS NOT NULL AND (:upto IS NULL OR every.tenant <= :upto)
ORDER BY every.tenant LIMIT :window

-- waiting: A tenant's claimable Runs in order, at most :share; one of many in a union.
(SELECT * FROM (
  (SELECT {run} FROM "{prefix}run" AS run
   WHERE run.state = 'ready' AND run.tenant = :tenant AND run.wake_at IS NULL AND {fits}
   ORDER BY run.priority DESC, run.wake_at, run.created_at LIMIT :share)
  UNION ALL
  (SELECT {run} FROM "{prefix}run" AS run
   WHERE run.state = 'ready' AND run.tenant = :tenant AND run.wake_at <= NOW(6) AND {fits}
   ORDER BY run.priority DESC, run.wake_at, run.created_at LIMIT :share)
  UNION ALL
  (SELECT {run} FROM "{prefix}run" AS run
   WHERE run.state = 'suspended' AND run.tenant = :tenant AND run.wake_at <= NOW(6) AND {fits}
   ORDER BY run.priority DESC, run.wake_at, run.created_at LIMIT :share)
) AS run ORDER BY run.priority DESC, COALESCE(run.wake_at, run.created_at), run.run_id LIMIT :room)

-- orphans: Running Runs of workers that are dead or gone; a recursion finds the workers named.
WITH RECURSIVE holder (id) AS (
  SELECT (SELECT run.worker FROM "{prefix}run" AS run
          WHERE run.worker > '' ORDER BY run.worker LIMIT 1)
  UNION ALL
  SELECT (SELECT run.worker FROM "{prefix}run" AS run
          WHERE run.worker > holder.id ORDER BY run.worker LIMIT 1)
  FROM holder WHERE holder.id IS NOT NULL
)
SELECT {run} FROM holder JOIN "{prefix}run" AS run ON run.worker = holder.id
WHERE run.state = 'running' AND NOT {live} AND {fits}

-- held: The running Runs of a worker.
SELECT {run} FROM "{prefix}run" AS run WHERE run.worker = :worker AND run.state = 'running'

-- overdue: Late and aborted Runs that no live worker holds.
SELECT {run} FROM (
  (SELECT * FROM "{prefix}run" AS run
   WHERE {unsettled} AND run.deadline_at <= NOW(6) AND (run.state <> 'running' OR NOT {live})
   ORDER BY run.deadline_at LIMIT :limit)
  UNION
  (SELECT * FROM "{prefix}run" AS run
   WHERE {unsettled} AND run.abort IS NOT NULL AND (run.state <> 'running' OR NOT {live})
   LIMIT :limit)
) AS run
LIMIT :limit

-- workers: The workers that are not dead.
SELECT {worker} FROM "{prefix}worker" AS worker WHERE NOT worker.dead ORDER BY worker.id

-- enlist: Write a worker's row, or renew it; a dead one stays dead.
-- Assignments come one after the other, and each sees those before it.
INSERT INTO "{prefix}worker" (id, lease_until, lease_seconds, beat, since, dead, build, tools)
VALUES (:worker, {until}, :lease, 0, NOW(6), FALSE, :build, :tools)
ON DUPLICATE KEY UPDATE
  since = IF(dead, since, {since}),
  lease_until = IF(dead, lease_until, {until}),
  lease_seconds = IF(dead, lease_seconds, :lease),
  beat = IF(dead, beat, beat + 1);
SELECT NOW(6)

-- renew: Prolong a lease and tell about Runs. No row: the worker is dead or unknown, for ever.
UPDATE "{prefix}worker"
SET since = {since}, lease_until = {until}, lease_seconds = :lease, beat = beat + 1
WHERE id = :worker AND NOT dead;
SELECT NOW(6), run.run_id, run.epoch, run.head, run.abort IS NOT NULL,
  COALESCE(run.deadline_at <= NOW(6), FALSE)
FROM "{prefix}worker" AS worker LEFT JOIN "{prefix}run" AS run ON run.run_id IN (:run_ids)
WHERE worker.id = :worker AND NOT worker.dead

-- bury: Declare dead whose lease is over, if the observer may judge (R-6). One transaction.
START TRANSACTION;
SET @psych_now = NOW(6);
SET @psych_judges = (
  SELECT COUNT(*) FROM "{prefix}worker" WHERE id = :observer AND NOT dead
    AND TIMESTAMPDIFF(MICROSECOND, @psych_now, lease_until) >= lease_seconds * 500000
    AND TIMESTAMPDIFF(MICROSECOND, since, @psych_now) >= lease_seconds * 1000000);
SELECT id FROM "{prefix}worker"
WHERE @psych_judges AND NOT dead AND lease_until < @psych_now ORDER BY id FOR UPDATE;
UPDATE "{prefix}worker" SET dead = TRUE
WHERE @psych_judges AND NOT dead AND lease_until < @psych_now;
COMMIT

-- sweep: Forget dead workers that no header names.
DELETE FROM "{prefix}worker" WHERE dead AND NOT EXISTS (
  SELECT 1 FROM "{prefix}run" AS run WHERE run.worker = "{prefix}worker".id)

-- put_version: Keep a published Spec.
INSERT INTO "{prefix}version" (tenant, hash, document, created_at)
VALUES (:tenant, :hash, :document, NOW(6)) ON DUPLICATE KEY UPDATE hash = hash

-- put_document: Keep a document.
INSERT INTO "{prefix}document" (tenant, hash, kind, text)
VALUES (:tenant, :hash, :kind, :text) ON DUPLICATE KEY UPDATE hash = hash

-- moment: The clock, and whether a tenant has a cap.
SELECT NOW(6), EXISTS (SELECT 1 FROM "{prefix}cap" AS cap WHERE cap."limit" < :uncapped)

-- set_cap: Bound a tenant, or bound it otherwise.
INSERT INTO "{prefix}cap" (tenant, running, "limit") VALUES (:tenant, 0, :limit)
ON DUPLICATE KEY UPDATE "limit" = :limit

-- lift_cap: Lift a bound; what is counted stays counted.
UPDATE "{prefix}cap" SET "limit" = :limit WHERE tenant = :tenant

-- read_value: A small value.
SELECT {kv} FROM "{prefix}kv" AS kv
WHERE kv.tenant = :tenant AND kv.kind = :kind AND kv."key" = :key

-- list_values: Small values in the order of their keys.
SELECT {kv} FROM "{prefix}kv" AS kv
WHERE kv.tenant = :tenant AND kv.kind = :kind
  AND kv."key" > :after AND kv."key" >= :prefix AND kv."key" < :beyond
ORDER BY kv."key" LIMIT :limit

-- new_value: Write a small value that is not there; whether it was not. One transaction.
-- What is there is locked, so that its revision tells whose it is: a new one is drawn.
START TRANSACTION;
INSERT INTO "{prefix}kv" (tenant, kind, "key", revision, value)
VALUES (:tenant, :kind, :key, :revision, :value) ON DUPLICATE KEY UPDATE revision = revision;
SELECT kv.revision = :revision FROM "{prefix}kv" AS kv
WHERE kv.tenant = :tenant AND kv.kind = :kind AND kv."key" = :key;
COMMIT

-- change_value: Write a small value that has the revision :expect; whether it had.
UPDATE "{prefix}kv" SET revision = :revision, value = :value
WHERE tenant = :tenant AND kind = :kind AND "key" = :key AND revision = :expect;
SELECT ROW_COUNT() > 0

-- delete_value: Delete a small value that has the revision :expect, or any; whether it had.
DELETE FROM "{prefix}kv"
WHERE tenant = :tenant AND kind = :kind AND "key" = :key
  AND (:expect IS NULL OR revision = :expect);
SELECT ROW_COUNT() > 0

-- blank: Take content and salt off some records; whether that was all. No row: no such Run.
UPDATE "{prefix}record" SET content = NULL, salt = NULL
WHERE run_id = :run_id AND tenant = :tenant AND (content IS NOT NULL OR salt IS NOT NULL)
ORDER BY seq LIMIT :limit;
SELECT NOT EXISTS (
  SELECT 1 FROM "{prefix}record" AS record
  WHERE record.run_id = :run_id AND (record.content IS NOT NULL OR record.salt IS NOT NULL))
FROM "{prefix}run" AS run WHERE run.run_id = :run_id AND run.tenant = :tenant
