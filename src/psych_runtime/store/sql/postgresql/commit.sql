-- The parts of the statement that commits many units at once (R-1); `_commit` puts them together.
-- Ranks of refusals: 1 RunNotFound, 2 LeaseLost, 3 SeqConflict, 4 KeyTaken, 5 ThreadTaken, 6 CapReached.

-- given: the changes, as `_batch` says them
given AS MATERIALIZED (
  SELECT * FROM json_to_recordset(:changes) AS given (
    unit integer, place integer, run_id varchar, tenant varchar, admits boolean,
    fence bigint, expect_head bigint, head bigint, head_hash varchar, head_at timestamptz,
    newest integer, state varchar, sets_worker boolean, worker varchar, epoch bigint,
    crashes integer, sets_wake boolean, wake_at timestamptz, wake_after double precision,
    sets_deadline boolean, deadline_after double precision, sets_remaining boolean,
    keeps_remaining boolean, abort varchar, referenced boolean, opened jsonb, closed jsonb)
)

-- held: the headers as they are, under lock in the order of their ids
held AS MATERIALIZED (
  SELECT run.run_id, run.tenant, run.epoch, run.head, run.state, run.capped
  FROM "{prefix}run" AS run
  WHERE run.run_id IN (SELECT run_id FROM given)
  ORDER BY run.run_id
  FOR UPDATE OF run
)

-- named: the keys
named AS MATERIALIZED (
  SELECT * FROM json_to_recordset(:keys) AS named (
    unit integer, place integer, tenant varchar, run_id varchar, key varchar,
    digest varchar, receipt text)
)

-- admitted: the headers of new Runs
admitted AS MATERIALIZED (
  SELECT * FROM json_to_recordset(:admissions) AS admitted (
    unit integer, doubled boolean, deadline_after double precision, tenant varchar,
    run_id varchar, version varchar, state varchar, head bigint, head_hash varchar,
    head_at timestamptz, worker varchar, epoch bigint, crashes integer, wake_at timestamptz,
    deadline_at timestamptz, remaining_seconds double precision, priority integer,
    schema_version integer, abort varchar, thread varchar, position integer, previous varchar,
    parent varchar, root varchar, referenced boolean, created_at timestamptz, open text,
    capped boolean)
)

-- refused_runs: what stands against a change
  SELECT unit, rank, place, NULL AS digest, NULL AS receipt
  FROM (
    SELECT given.unit, given.place, CASE
      WHEN NOT admits AND (held.run_id IS NULL OR held.tenant <> given.tenant)
        THEN 1
      WHEN fence <> held.epoch THEN 2
      WHEN expect_head <> held.head OR admits AND held.run_id IS NOT NULL THEN 3
    END AS rank
    FROM given LEFT JOIN held ON held.run_id = given.run_id
  ) AS ranked
  WHERE rank IS NOT NULL

-- refused_keys: keys that are known
  SELECT named.unit, 4, named.place, known.digest, known.receipt
  FROM named JOIN "{prefix}key" AS known
    ON known.tenant = named.tenant AND known.run_id = named.run_id AND known.key = named.key

-- refused_places: places in threads that are taken
  SELECT admitted.unit, 5, given.place, NULL, NULL
  FROM admitted JOIN given ON given.unit = admitted.unit AND given.run_id = admitted.run_id
  WHERE admitted.doubled OR EXISTS (
    SELECT FROM "{prefix}thread" AS thread
    WHERE thread.tenant = admitted.tenant AND thread.thread = admitted.thread
      AND thread.position = admitted.position
  )

-- caps: what enters and leaves running, and whether there is room
moving AS MATERIALIZED (
  SELECT given.unit, given.place, given.run_id, held.tenant,
    given.state = 'running' AND held.state <> 'running' AS enters,
    given.state <> 'running' AND held.capped AS leaves
  FROM given JOIN held ON held.run_id = given.run_id
  WHERE given.state IS NOT NULL AND given.unit NOT IN (SELECT unit FROM judged)
),
caps AS MATERIALIZED (
  SELECT cap.tenant, cap.running, cap."limit"
  FROM "{prefix}cap" AS cap
  WHERE cap.tenant IN (SELECT tenant FROM moving WHERE enters OR leaves)
  ORDER BY cap.tenant
  FOR UPDATE OF cap
),
full_caps AS MATERIALIZED (
  SELECT unit, 6, place, NULL, NULL
  FROM (
    SELECT moving.unit, moving.place, caps.running, caps."limit", row_number() OVER (
      PARTITION BY moving.tenant ORDER BY moving.unit, moving.place) AS turn
    FROM moving JOIN caps ON caps.tenant = moving.tenant
    WHERE moving.enters
  ) AS entering
  WHERE running + turn > "limit"
)

-- changed: the headers as they become; what a change leaves out stays
changed AS (
  UPDATE "{prefix}run" AS run SET
    head = coalesce(given.head, run.head),
    head_hash = coalesce(given.head_hash, run.head_hash),
    head_at = coalesce(given.head_at, run.head_at),
    schema_version = greatest(given.newest, run.schema_version),
    state = coalesce(given.state, run.state),
    worker = CASE WHEN given.sets_worker THEN given.worker ELSE run.worker END,
    epoch = coalesce(given.epoch, run.epoch),
    crashes = coalesce(given.crashes, run.crashes),
    wake_at = CASE WHEN given.sets_wake
      THEN coalesce(given.wake_at, now() + given.wake_after * interval '1 second')
      ELSE run.wake_at END,
    deadline_at = CASE WHEN given.sets_deadline
      THEN now() + given.deadline_after * interval '1 second' ELSE run.deadline_at END,
    remaining_seconds = CASE
      WHEN given.keeps_remaining AND run.deadline_at IS NOT NULL
        THEN greatest(0, extract(epoch FROM run.deadline_at - now()))
      WHEN given.keeps_remaining THEN run.remaining_seconds
      WHEN given.sets_remaining THEN NULL
      ELSE run.remaining_seconds END,
    abort = coalesce(given.abort, run.abort),
    referenced = coalesce(given.referenced, run.referenced),
    open = CASE WHEN given.opened IS NULL AND given.closed IS NULL THEN run.open
      ELSE (
        (run.open::jsonb || coalesce(given.opened, '{}'))
        - ARRAY(SELECT jsonb_array_elements_text(coalesce(given.closed, '[]')))
      )::text END{counts}
  FROM given
  WHERE run.run_id = given.run_id AND NOT given.admits
    AND given.unit IN (SELECT unit FROM accepted)
)

-- capped: whether a Run is counted
,
    capped = CASE
      WHEN given.state = 'running' AND run.state <> 'running'
        THEN EXISTS (SELECT FROM caps WHERE caps.tenant = run.tenant)
      WHEN given.state <> 'running' THEN false
      ELSE run.capped END

-- written: the records
written AS (
  INSERT INTO "{prefix}record" (run_id, seq, tenant, type, body, content, salt)
  SELECT run_id, seq, tenant, type, body, content, salt FROM unnest(
    CAST(:units AS integer[]), CAST(:run_ids AS varchar[]), CAST(:seqs AS bigint[]),
    CAST(:tenants AS varchar[]), CAST(:types AS varchar[]), CAST(:bodies AS text[]),
    CAST(:contents AS text[]), CAST(:salts AS varchar[])
  ) AS given (unit, run_id, seq, tenant, type, body, content, salt)
  WHERE unit IN (SELECT unit FROM accepted)
)

-- counted: what the caps count
counted AS (
  UPDATE "{prefix}cap" AS cap SET running = greatest(0, cap.running + sums.entered - sums.left)
  FROM (
    SELECT tenant, count(*) FILTER (WHERE enters) AS entered,
      count(*) FILTER (WHERE leaves) AS left
    FROM moving WHERE unit IN (SELECT unit FROM accepted) AND (enters OR leaves)
    GROUP BY tenant
  ) AS sums
  WHERE cap.tenant = sums.tenant
)

-- new_keys: the keys
new_keys AS (
  INSERT INTO "{prefix}key" (tenant, run_id, key, digest, receipt)
  SELECT tenant, run_id, key, digest, receipt FROM named
  WHERE unit IN (SELECT unit FROM accepted)
  ORDER BY tenant, run_id, key
)

-- new_runs: the new Runs
new_runs AS (
  INSERT INTO "{prefix}run" ({columns})
  SELECT {given} FROM admitted
  WHERE unit IN (SELECT unit FROM accepted)
  ORDER BY run_id
),
new_places AS (
  INSERT INTO "{prefix}thread" (tenant, thread, position, run_id)
  SELECT tenant, thread, position, run_id FROM admitted
  WHERE unit IN (SELECT unit FROM accepted)
  ORDER BY tenant, thread, position
)

-- refused_all: the refusals together
  SELECT * FROM judged
  UNION ALL
  SELECT * FROM full_caps

-- accepted: units that nothing stands against
  SELECT DISTINCT unit FROM given WHERE unit NOT IN (SELECT unit FROM refused)

-- answer: the refusals
SELECT unit, rank, place, digest, receipt FROM refused
