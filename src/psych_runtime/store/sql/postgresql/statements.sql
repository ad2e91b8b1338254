-- What is asked of PostgreSQL. Each statement is a transaction of its own; parameters stand as :name.
--
-- `{prefix}` is the tables' prefix, `{run}`, `{record}`, ... are the columns of a row behind an alias;
-- what is defined with `let` stands in braces below. The store's clock is now(), when the statement
-- began: a lease that had to wait for a lock is shorter by that, never longer.

-- let live
EXISTS (
    SELECT FROM "{prefix}worker" AS worker WHERE worker.id = run.worker AND NOT worker.dead)

-- let fits
-- Where all Runs are of one Version, the planner takes "not in an unknown list" for "none", and
-- reads the whole table; of an expression it knows nothing.
run.run_id <> ALL(CAST(:run_ids AS varchar[]))
      AND run.version || '' <> ALL(CAST(:versions AS varchar[]))
      AND run.schema_version <= :newest

-- let unsettled
run.state IN ('ready', 'running', 'suspended')

-- let waits
run.state IN ('ready', 'suspended')

-- let since
CASE WHEN worker.lease_until - now() < worker.lease_seconds / 2 * interval '1 second' THEN now() ELSE worker.since END

-- read_log: A tenant's records behind :after; no row: no such Run; a row of nulls: no such record.
SELECT {record}
FROM "{prefix}run" AS run LEFT JOIN LATERAL (
  SELECT * FROM "{prefix}record" AS record
  WHERE record.run_id = run.run_id AND record.seq > :after
  ORDER BY record.seq LIMIT :limit
) AS record ON true
WHERE run.run_id = :run_id AND run.tenant = :tenant
ORDER BY record.seq

-- read_logs: The same for each of many; the first column says for which, from 1 on.
SELECT part.place, {record}
FROM unnest(
  CAST(:tenants AS varchar[]), CAST(:run_ids AS varchar[]), CAST(:afters AS bigint[]),
  CAST(:limits AS bigint[])
) WITH ORDINALITY AS part (tenant, run_id, after, count, place)
JOIN "{prefix}run" AS run ON run.run_id = part.run_id AND run.tenant = part.tenant
LEFT JOIN LATERAL (
  SELECT * FROM "{prefix}record" AS record
  WHERE record.run_id = run.run_id AND record.seq > part.after
  ORDER BY record.seq LIMIT part.count
) AS record ON true
ORDER BY part.place, record.seq

-- read_header: A tenant's header.
SELECT {run} FROM "{prefix}run" AS run
WHERE run.run_id = :run_id AND run.tenant = :tenant

-- read_headers: Headers of any tenants.
SELECT {run} FROM "{prefix}run" AS run WHERE run.run_id = ANY(CAST(:run_ids AS varchar[]))

-- read_tail: The header at the highest position of a thread.
SELECT {run}
FROM "{prefix}thread" AS thread JOIN "{prefix}run" AS run ON run.run_id = thread.run_id
WHERE thread.tenant = :tenant AND thread.thread = :thread
ORDER BY thread.position DESC LIMIT 1

-- read_key: What is known of a request.
SELECT {key} FROM "{prefix}key" AS key
WHERE key.tenant = :tenant AND key.run_id = :run_id AND key.key = :key

-- read_version: A published Spec.
SELECT version.document FROM "{prefix}version" AS version
WHERE version.tenant = :tenant AND version.hash = :hash

-- read_document: A system prompt or tool definition.
SELECT document.text FROM "{prefix}document" AS document
WHERE document.tenant = :tenant AND document.hash = :hash

-- read_cap: A tenant's cap.
SELECT {cap} FROM "{prefix}cap" AS cap
WHERE cap.tenant = :tenant

-- heads: How far Runs are, and their states.
SELECT run.tenant, run.run_id, run.head, run.state FROM "{prefix}run" AS run
WHERE run.run_id = ANY(CAST(:run_ids AS varchar[]))

-- list_runs: A tenant's Runs behind a place, newest first; a filter that is null is none.
SELECT {run} FROM "{prefix}run" AS run
WHERE run.tenant = :tenant
  AND (run.created_at, run.run_id) < (CAST(:before_at AS timestamptz), :before_run)
  AND (CAST(:created_after AS timestamptz) IS NULL OR run.created_at > :created_after)
  AND (CAST(:state AS varchar) IS NULL OR run.state = :state)
  AND (CAST(:version AS varchar) IS NULL OR run.version = :version)
  AND (CAST(:thread AS varchar) IS NULL OR run.thread = :thread)
  AND (CAST(:parent AS varchar) IS NULL OR run.parent = :parent)
ORDER BY run.created_at DESC, run.run_id DESC
LIMIT :limit

-- claimable: What waits of the next tenants behind :after, wrapping around; of each its share (R-15).
-- A recursion finds tenant after tenant in the index; the rows come in the order of the index, too.
-- Caps are asked tenant by tenant: a join might take tenants in another order, and all of them.
-- With them Runs of workers that are dead or gone; a recursion finds the workers that a header names,
-- and says first what min() leaves out anyhow: without it the index of those is not taken for the min.
-- Each row has the clock, the share, whether a tenant has a cap, and whether it is an orphan before
-- its header; nulls: no Run.
WITH RECURSIVE
holder (id) AS (
  SELECT min(worker) FROM "{prefix}run" WHERE worker IS NOT NULL
  UNION ALL
  SELECT (SELECT min(run.worker) FROM "{prefix}run" AS run WHERE run.worker > holder.id)
  FROM holder WHERE holder.id IS NOT NULL
),
behind (tenant) AS (
  SELECT least((
      SELECT min(run.tenant) FROM "{prefix}run" AS run
      WHERE {waits} AND run.state = 'ready' AND run.tenant > :after
        AND (run.wake_at IS NULL OR run.wake_at <= now()) AND {fits}
    ), (
      SELECT min(run.tenant) FROM "{prefix}run" AS run
      WHERE {waits} AND run.state = 'suspended' AND run.tenant > :after
        AND run.wake_at <= now() AND {fits}
    ))
  UNION ALL
  SELECT least((
      SELECT min(run.tenant) FROM "{prefix}run" AS run
      WHERE {waits} AND run.state = 'ready' AND run.tenant > behind.tenant
        AND (run.wake_at IS NULL OR run.wake_at <= now()) AND {fits}
    ), (
      SELECT min(run.tenant) FROM "{prefix}run" AS run
      WHERE {waits} AND run.state = 'suspended' AND run.tenant > behind.tenant
        AND run.wake_at <= now() AND {fits}
    )) FROM behind WHERE behind.tenant IS NOT NULL
),
before (tenant) AS (
  SELECT least((
      SELECT min(run.tenant) FROM "{prefix}run" AS run
      WHERE {waits} AND run.state = 'ready' AND run.tenant > ''
        AND (run.wake_at IS NULL OR run.wake_at <= now()) AND {fits}
    ), (
      SELECT min(run.tenant) FROM "{prefix}run" AS run
      WHERE {waits} AND run.state = 'suspended' AND run.tenant > ''
        AND run.wake_at <= now() AND {fits}
    ))
  UNION ALL
  SELECT least((
      SELECT min(run.tenant) FROM "{prefix}run" AS run
      WHERE {waits} AND run.state = 'ready' AND run.tenant > before.tenant
        AND (run.wake_at IS NULL OR run.wake_at <= now()) AND {fits}
    ), (
      SELECT min(run.tenant) FROM "{prefix}run" AS run
      WHERE {waits} AND run.state = 'suspended' AND run.tenant > before.tenant
        AND run.wake_at <= now() AND {fits}
    )) FROM before WHERE before.tenant <= :after
),
chosen AS MATERIALIZED (
  SELECT tenant FROM (
    (SELECT tenant FROM behind WHERE tenant IS NOT NULL)
    UNION ALL
    (SELECT tenant FROM before WHERE tenant <= :after)
  ) AS every
  WHERE coalesce(
    (SELECT cap.running < cap."limit" FROM "{prefix}cap" AS cap WHERE cap.tenant = every.tenant),
    true)
  LIMIT :window
),
quota AS MATERIALIZED (
  SELECT CAST(greatest(
    :share, ceil(CAST(:limit AS double precision) / greatest(1, count(*)))) AS bigint) AS share
  FROM chosen
)
SELECT now(), quota.share,
  EXISTS (SELECT FROM "{prefix}cap" AS cap WHERE cap."limit" < :uncapped), found.*
FROM quota LEFT JOIN (
  SELECT false AS orphan, run.* FROM chosen
  LEFT JOIN "{prefix}cap" AS cap ON cap.tenant = chosen.tenant
  CROSS JOIN LATERAL (
    SELECT * FROM (
      (
      SELECT {run} FROM "{prefix}run" AS run
      WHERE {waits} AND run.state = 'ready' AND run.tenant = chosen.tenant AND run.wake_at IS NULL
      AND {fits}
      ORDER BY run.priority DESC, run.wake_at, run.created_at
      LIMIT (SELECT share FROM quota)
    )
      UNION ALL
      (
      SELECT {run} FROM "{prefix}run" AS run
      WHERE {waits} AND run.state = 'ready' AND run.tenant = chosen.tenant AND run.wake_at <= now()
      AND {fits}
      ORDER BY run.priority DESC, run.wake_at, run.created_at
      LIMIT (SELECT share FROM quota)
    )
      UNION ALL
      (
      SELECT {run} FROM "{prefix}run" AS run
      WHERE {waits} AND run.state = 'suspended' AND run.tenant = chosen.tenant AND run.wake_at <= now()
      AND {fits}
      ORDER BY run.priority DESC, run.wake_at, run.created_at
      LIMIT (SELECT share FROM quota)
    )
    ) AS each_kind
    ORDER BY priority DESC, coalesce(wake_at, created_at), run_id
    LIMIT least((SELECT share FROM quota),
      CASE WHEN cap.tenant IS NOT NULL THEN greatest(0, cap."limit" - cap.running) END)
  ) AS run
  UNION ALL
  SELECT true, {run}
  FROM holder JOIN "{prefix}run" AS run ON run.worker = holder.id
  WHERE run.state = 'running' AND NOT {live} AND {fits}
) AS found ON true

-- held: The running Runs of a worker.
SELECT {run} FROM "{prefix}run" AS run
WHERE run.worker = :worker AND run.state = 'running'

-- overdue: Late and aborted Runs that no live worker holds.
SELECT {run} FROM (
  (SELECT run.* FROM "{prefix}run" AS run
   WHERE {unsettled} AND run.deadline_at <= now() AND (run.state <> 'running' OR NOT {live})
   ORDER BY run.deadline_at LIMIT :limit)
  UNION
  (SELECT run.* FROM "{prefix}run" AS run
   WHERE {unsettled} AND run.abort IS NOT NULL AND (run.state <> 'running' OR NOT {live})
   LIMIT :limit)
) AS run
LIMIT :limit

-- workers: The workers that are not dead.
SELECT {worker} FROM "{prefix}worker" AS worker
WHERE NOT worker.dead ORDER BY worker.id

-- enlist: Write a worker's row, or renew it; a dead one stays dead.
WITH enlisted AS (
  INSERT INTO "{prefix}worker" AS worker
    (id, lease_until, lease_seconds, beat, since, dead, build, tools)
  VALUES (:worker, now() + CAST(:lease AS double precision) * interval '1 second', :lease, 0,
    now(), false, :build, :tools)
  ON CONFLICT (id) DO UPDATE SET
    since = {since},
    lease_until = excluded.lease_until, lease_seconds = excluded.lease_seconds,
    beat = worker.beat + 1
  WHERE NOT worker.dead
)
SELECT now()

-- renew: Prolong a lease and tell about Runs. No row: the worker is dead or unknown, for ever.
WITH renewed AS (
  UPDATE "{prefix}worker" AS worker SET
    since = {since},
    lease_until = now() + CAST(:lease AS double precision) * interval '1 second',
    lease_seconds = :lease, beat = beat + 1
  WHERE id = :worker AND NOT dead
  RETURNING id
)
SELECT now(), run.run_id, run.epoch, run.head, run.abort IS NOT NULL,
  coalesce(run.deadline_at <= now(), false)
FROM renewed LEFT JOIN "{prefix}run" AS run ON run.run_id = ANY(CAST(:run_ids AS varchar[]))

-- bury: Declare dead whose lease is over, if the observer may judge (R-6).
UPDATE "{prefix}worker" AS worker SET dead = true
WHERE NOT dead AND lease_until < now() AND EXISTS (
  SELECT FROM "{prefix}worker" AS observer
  WHERE observer.id = :observer AND NOT observer.dead
    AND NOT observer.lease_until - now() < observer.lease_seconds / 2 * interval '1 second'
    AND observer.since + observer.lease_seconds * interval '1 second' <= now())
RETURNING id

-- sweep: Forget dead workers that no header names.
DELETE FROM "{prefix}worker" AS worker
WHERE dead AND NOT EXISTS (SELECT FROM "{prefix}run" AS run WHERE run.worker = worker.id)

-- put_version: Keep a published Spec.
INSERT INTO "{prefix}version" (tenant, hash, document, created_at)
VALUES (:tenant, :hash, :document, now()) ON CONFLICT DO NOTHING

-- put_document: Keep a document.
INSERT INTO "{prefix}document" (tenant, hash, kind, text)
VALUES (:tenant, :hash, :kind, :text) ON CONFLICT DO NOTHING

-- set_cap: Bound a tenant, or bound it otherwise.
INSERT INTO "{prefix}cap" (tenant, running, "limit")
VALUES (:tenant, 0, :limit) ON CONFLICT (tenant) DO UPDATE SET "limit" = excluded."limit"

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

-- new_value: Write a small value that is not there. No row: it is.
INSERT INTO "{prefix}kv" AS kv (tenant, kind, "key", revision, value)
VALUES (:tenant, :kind, :key, :revision, :value) ON CONFLICT DO NOTHING
RETURNING TRUE

-- change_value: Write a small value that has the revision :expect. No row: it has not.
UPDATE "{prefix}kv" AS kv SET revision = :revision, value = :value
WHERE kv.tenant = :tenant AND kv.kind = :kind AND kv."key" = :key AND kv.revision = :expect
RETURNING TRUE

-- delete_value: Delete a small value that has the revision :expect, or any. No row: it has not.
DELETE FROM "{prefix}kv" AS kv
WHERE kv.tenant = :tenant AND kv.kind = :kind AND kv."key" = :key
  AND (CAST(:expect AS bigint) IS NULL OR kv.revision = :expect)
RETURNING TRUE

-- blank: Take content and salt off some records; whether that was all. No row: no such Run.
WITH chosen AS (
  SELECT record.seq FROM "{prefix}record" AS record
  WHERE record.run_id = :run_id AND (record.content IS NOT NULL OR record.salt IS NOT NULL)
    AND EXISTS (
      SELECT FROM "{prefix}run" AS run WHERE run.run_id = :run_id AND run.tenant = :tenant)
  ORDER BY record.seq LIMIT CAST(:limit AS bigint) + 1
),
blanked AS (
  UPDATE "{prefix}record" AS record SET content = NULL, salt = NULL
  FROM (SELECT seq FROM chosen ORDER BY seq LIMIT :limit) AS chosen
  WHERE record.run_id = :run_id AND record.seq = chosen.seq
)
SELECT (SELECT count(*) FROM chosen) <= :limit
FROM "{prefix}run" AS run WHERE run.run_id = :run_id AND run.tenant = :tenant

-- delete_runs: Delete Runs as they were read, with all their rows, all or none; whether it did.
WITH given AS (
  SELECT * FROM json_to_recordset(:headers) AS given (
    run_id varchar, head bigint, state varchar, referenced boolean)
),
held AS MATERIALIZED (
  SELECT run.run_id, run.thread, run.position
  FROM "{prefix}run" AS run JOIN given ON given.run_id = run.run_id
  WHERE run.tenant = :tenant AND run.head = given.head AND run.state = given.state
    AND run.referenced = given.referenced
  ORDER BY run.run_id
  FOR UPDATE OF run
),
verdict AS MATERIALIZED (SELECT (SELECT count(*) FROM held) = :count AS fits),
runs AS (
  DELETE FROM "{prefix}run" AS run USING held, verdict
  WHERE run.run_id = held.run_id AND verdict.fits
),
records AS (
  DELETE FROM "{prefix}record" AS record USING held, verdict
  WHERE record.run_id = held.run_id AND verdict.fits
),
places AS (
  DELETE FROM "{prefix}thread" AS thread USING held, verdict
  WHERE thread.tenant = :tenant AND thread.thread = held.thread
    AND thread.position = held.position AND verdict.fits
),
keys AS (
  DELETE FROM "{prefix}key" AS key USING verdict
  WHERE key.tenant = :tenant AND verdict.fits AND (
    key.run_id IN (SELECT run_id FROM held)
    OR key.run_id = '' AND key.key = ANY(CAST(:keys AS varchar[])))
)
SELECT fits FROM verdict
