-- The parts of the statement for a unit of its own (R-1): it writes and answers one row, or does
-- neither; what it does not write the statement for many judges. `_single` puts them together.

-- changed: the header as it becomes, when nothing stands against it and no cap counts it
-- Of an empty table the planner takes an index of all Runs of a tenant for as good as the key, and
-- keeps to it while the table grows; with an expression it cannot.
changed AS (
  UPDATE "{prefix}run" AS run SET
    head = coalesce(:head, run.head),
    head_hash = coalesce(:head_hash, run.head_hash),
    head_at = coalesce(CAST(CAST(:head_at AS text) AS timestamptz), run.head_at),
    schema_version = greatest(:newest, run.schema_version),
    state = coalesce(:state, run.state),
    worker = CASE WHEN :sets_worker THEN :worker ELSE run.worker END,
    epoch = coalesce(:epoch, run.epoch),
    crashes = coalesce(:crashes, run.crashes),
    wake_at = CASE WHEN :sets_wake
      THEN coalesce(CAST(CAST(:wake_at AS text) AS timestamptz),
        now() + CAST(:wake_after AS double precision) * interval '1 second')
      ELSE run.wake_at END,
    deadline_at = CASE WHEN :sets_deadline
      THEN now() + CAST(:deadline_after AS double precision) * interval '1 second'
      ELSE run.deadline_at END,
    remaining_seconds = CASE
      WHEN :keeps_remaining AND run.deadline_at IS NOT NULL
        THEN greatest(0, extract(epoch FROM run.deadline_at - now()))
      WHEN :keeps_remaining THEN run.remaining_seconds
      WHEN :sets_remaining THEN NULL
      ELSE run.remaining_seconds END,
    abort = coalesce(:abort, run.abort),
    referenced = coalesce(:referenced, run.referenced),
    open = CASE WHEN CAST(:opened AS jsonb) IS NULL AND CAST(:closed AS text[]) IS NULL
      THEN run.open
      ELSE ((run.open::jsonb || coalesce(:opened, '{}')) - coalesce(:closed, '{}'))::text END
  WHERE run.run_id = :run_id AND run.tenant || '' = :tenant AND run.head = :expect_head
    AND (CAST(:fence AS bigint) IS NULL OR run.epoch = :fence)
    AND (CAST(:state AS varchar) IS NULL OR NOT run.capped AND (
      :state <> 'running'
      OR NOT EXISTS (SELECT FROM "{prefix}cap" AS cap WHERE cap.tenant = :tenant)))
{unknown}
  RETURNING run.run_id, run.tenant
)

-- admitted: the header of a new Run, when its id and its place are free
changed AS (
  INSERT INTO "{prefix}run" (
    tenant, run_id, version, state, head, head_hash, head_at, worker, epoch, crashes, wake_at,
    deadline_at, remaining_seconds, priority, schema_version, abort, thread, position, previous,
    parent, root, referenced, created_at, open, capped)
  SELECT
    CAST(:tenant AS varchar), CAST(:run_id AS varchar), CAST(:version AS varchar),
    CAST(:state AS varchar), CAST(:head AS bigint), CAST(:head_hash AS varchar),
    CAST(:head_at AS timestamptz), CAST(:worker AS varchar), CAST(:epoch AS bigint),
    CAST(:crashes AS integer), CAST(:wake_at AS timestamptz),
    coalesce(now() + CAST(:deadline_after AS double precision) * interval '1 second',
      CAST(:deadline_at AS timestamptz)),
    CAST(:remaining_seconds AS double precision), CAST(:priority AS integer),
    CAST(:schema_version AS integer), CAST(:abort AS varchar), CAST(:thread AS varchar),
    CAST(:position AS integer), CAST(:previous AS varchar), CAST(:parent AS varchar),
    CAST(:root AS varchar), CAST(:referenced AS boolean), CAST(:created_at AS timestamptz),
    CAST(:open AS text), CAST(:capped AS boolean)
  WHERE NOT EXISTS (SELECT FROM "{prefix}run" AS run WHERE run.run_id = CAST(:run_id AS varchar))
    AND NOT EXISTS (
      SELECT FROM "{prefix}thread" AS thread
      WHERE thread.tenant = CAST(:tenant AS varchar) AND thread.thread = CAST(:thread AS varchar)
        AND thread.position = CAST(:position AS integer))
{unknown}
  RETURNING run_id, tenant, thread, position
),
new_place AS (
  INSERT INTO "{prefix}thread" (tenant, thread, position, run_id)
  SELECT tenant, thread, position, run_id FROM changed
)

-- unknown: the key is not known yet
    AND NOT EXISTS (
      SELECT FROM "{prefix}key" AS known
      WHERE known.tenant = CAST(:tenant AS varchar) AND known.run_id = CAST(:key_run_id AS varchar)
        AND known.key = CAST(:key AS varchar))

-- new_key: the key
new_key AS (
  INSERT INTO "{prefix}key" (tenant, run_id, key, digest, receipt)
  SELECT tenant, CAST(:key_run_id AS varchar), CAST(:key AS varchar), CAST(:digest AS varchar),
    CAST(:receipt AS text)
  FROM changed
)

-- one_record: the record
written AS (
  INSERT INTO "{prefix}record" (run_id, seq, tenant, type, body, content, salt)
  SELECT run_id, CAST(:seq AS bigint), tenant, CAST(:type AS varchar), CAST(:body AS text),
    CAST(:content AS text), CAST(:salt AS varchar)
  FROM changed
)

-- records: the records
written AS (
  INSERT INTO "{prefix}record" (run_id, seq, tenant, type, body, content, salt)
  SELECT changed.run_id, seq, changed.tenant, type, body, content, salt
  FROM changed CROSS JOIN LATERAL (
    SELECT unnest(CAST(:seqs AS bigint[])) AS seq, unnest(CAST(:types AS varchar[])) AS type,
      unnest(CAST(:bodies AS text[])) AS body, unnest(CAST(:contents AS text[])) AS content,
      unnest(CAST(:salts AS varchar[])) AS salt
  ) AS given
)

-- answer: whether it was written
SELECT true FROM changed
