-- Compiled by `python -m psych_runtime.store.sqlite._compile`. Do not edit.

-- judge_changes
SELECT "{prefix}run".run_id, "{prefix}run".tenant, "{prefix}run".epoch, "{prefix}run".head, "{prefix}run".schema_version, "{prefix}run".head_hash, "{prefix}run".head_at, "{prefix}run".open, "{prefix}run".state, "{prefix}run".worker, "{prefix}run".crashes, "{prefix}run".wake_at, "{prefix}run".deadline_at, "{prefix}run".remaining_seconds, "{prefix}run".abort, "{prefix}run".referenced, "{prefix}run".capped
FROM "{prefix}run"
WHERE "{prefix}run".run_id IN (SELECT anon_1.value
FROM json_each(:run_ids) AS anon_1)

-- advance_head
UPDATE "{prefix}run" SET head=:head, head_hash=:head_hash, head_at=:head_at, schema_version=:schema_version, open=:open WHERE "{prefix}run".run_id = :run_id

-- change_header
UPDATE "{prefix}run" SET state=:state, head=:head, head_hash=:head_hash, head_at=:head_at, worker=:worker, epoch=:epoch, crashes=:crashes, wake_at=:wake_at, deadline_at=:deadline_at, remaining_seconds=:remaining_seconds, schema_version=:schema_version, abort=:abort, referenced=:referenced, open=:open, capped=:capped WHERE "{prefix}run".run_id = :run_id

-- insert_run
INSERT INTO "{prefix}run" (tenant, run_id, version, state, head, head_hash, head_at, worker, epoch, crashes, wake_at, deadline_at, remaining_seconds, priority, schema_version, abort, thread, position, previous, parent, root, referenced, created_at, open, capped) VALUES (:tenant, :run_id, :version, :state, :head, :head_hash, :head_at, :worker, :epoch, :crashes, :wake_at, :deadline_at, :remaining_seconds, :priority, :schema_version, :abort, :thread, :position, :previous, :parent, :root, :referenced, :created_at, :open, :capped)

-- insert_record
INSERT INTO "{prefix}record" (run_id, seq, tenant, type, body, content, salt) VALUES (:run_id, :seq, :tenant, :type, :body, :content, :salt)

-- insert_thread
INSERT INTO "{prefix}thread" (tenant, thread, position, run_id) VALUES (:tenant, :thread, :position, :run_id)

-- insert_key
INSERT INTO "{prefix}key" (tenant, run_id, "key", digest, receipt) VALUES (:tenant, :run_id, :key, :digest, :receipt)

-- insert_version
INSERT INTO "{prefix}version" (tenant, hash, document, created_at) VALUES (:tenant, :hash, :document, :created_at)

-- insert_document
INSERT INTO "{prefix}document" (tenant, hash, kind, text) VALUES (:tenant, :hash, :kind, :text)

-- insert_worker
INSERT INTO "{prefix}worker" (id, lease_until, lease_seconds, beat, since, dead, build, tools) VALUES (:id, :lease_until, :lease_seconds, :beat, :since, :dead, :build, :tools)

-- insert_cap
INSERT INTO "{prefix}cap" (tenant, running, "limit") VALUES (:tenant, :running, :limit)

-- insert_kv
INSERT INTO "{prefix}kv" (tenant, kind, "key", revision, value) VALUES (:tenant, :kind, :key, :revision, :value)

-- read_header
SELECT "{prefix}run".tenant, "{prefix}run".run_id, "{prefix}run".version, "{prefix}run".state, "{prefix}run".head, "{prefix}run".head_hash, "{prefix}run".head_at, "{prefix}run".worker, "{prefix}run".epoch, "{prefix}run".crashes, "{prefix}run".wake_at, "{prefix}run".deadline_at, "{prefix}run".remaining_seconds, "{prefix}run".priority, "{prefix}run".schema_version, "{prefix}run".abort, "{prefix}run".thread, "{prefix}run".position, "{prefix}run".previous, "{prefix}run".parent, "{prefix}run".root, "{prefix}run".referenced, "{prefix}run".created_at, "{prefix}run".open, "{prefix}run".capped
FROM "{prefix}run"
WHERE "{prefix}run".run_id = :run_id AND "{prefix}run".tenant = :tenant

-- read_head
SELECT "{prefix}run".head, "{prefix}run".state
FROM "{prefix}run"
WHERE "{prefix}run".run_id = :run_id AND "{prefix}run".tenant = :tenant

-- read_heads
SELECT "{prefix}run".tenant, "{prefix}run".run_id, "{prefix}run".head, "{prefix}run".state
FROM "{prefix}run"
WHERE "{prefix}run".run_id IN (SELECT anon_1.value
FROM json_each(:run_ids) AS anon_1)

-- read_log
SELECT "{prefix}record".run_id, "{prefix}record".seq, "{prefix}record".tenant, "{prefix}record".type, "{prefix}record".body, "{prefix}record".content, "{prefix}record".salt
FROM "{prefix}record"
WHERE "{prefix}record".run_id = :run_id AND "{prefix}record".seq > :after ORDER BY "{prefix}record".seq
LIMIT :limit OFFSET 0

-- read_tail
SELECT "{prefix}run".tenant, "{prefix}run".run_id, "{prefix}run".version, "{prefix}run".state, "{prefix}run".head, "{prefix}run".head_hash, "{prefix}run".head_at, "{prefix}run".worker, "{prefix}run".epoch, "{prefix}run".crashes, "{prefix}run".wake_at, "{prefix}run".deadline_at, "{prefix}run".remaining_seconds, "{prefix}run".priority, "{prefix}run".schema_version, "{prefix}run".abort, "{prefix}run".thread, "{prefix}run".position, "{prefix}run".previous, "{prefix}run".parent, "{prefix}run".root, "{prefix}run".referenced, "{prefix}run".created_at, "{prefix}run".open, "{prefix}run".capped
FROM "{prefix}thread" JOIN "{prefix}run" ON "{prefix}run".run_id = "{prefix}thread".run_id
WHERE "{prefix}thread".tenant = :tenant AND "{prefix}thread".thread = :thread ORDER BY "{prefix}thread".position DESC
LIMIT 1 OFFSET 0

-- read_places
SELECT "{prefix}thread".tenant, "{prefix}thread".thread, "{prefix}thread".position
FROM json_each(:places) AS anon_1 JOIN "{prefix}thread" ON "{prefix}thread".tenant = json_extract(anon_1.value, '$[0]') AND "{prefix}thread".thread = json_extract(anon_1.value, '$[1]') AND "{prefix}thread".position = json_extract(anon_1.value, '$[2]')

-- read_key
SELECT "{prefix}key".tenant, "{prefix}key".run_id, "{prefix}key"."key", "{prefix}key".digest, "{prefix}key".receipt
FROM "{prefix}key"
WHERE "{prefix}key".tenant = :tenant AND "{prefix}key".run_id = :run_id AND "{prefix}key"."key" = :key

-- list_runs
SELECT "{prefix}run".tenant, "{prefix}run".run_id, "{prefix}run".version, "{prefix}run".state, "{prefix}run".head, "{prefix}run".head_hash, "{prefix}run".head_at, "{prefix}run".worker, "{prefix}run".epoch, "{prefix}run".crashes, "{prefix}run".wake_at, "{prefix}run".deadline_at, "{prefix}run".remaining_seconds, "{prefix}run".priority, "{prefix}run".schema_version, "{prefix}run".abort, "{prefix}run".thread, "{prefix}run".position, "{prefix}run".previous, "{prefix}run".parent, "{prefix}run".root, "{prefix}run".referenced, "{prefix}run".created_at, "{prefix}run".open, "{prefix}run".capped
FROM "{prefix}run"
WHERE "{prefix}run".tenant = :tenant AND ("{prefix}run".created_at, "{prefix}run".run_id) < (:before_at, :before_run) AND "{prefix}run".created_at > :created_after AND (:state IS NULL OR "{prefix}run".state = :state) AND (:version IS NULL OR "{prefix}run".version = :version) AND (:thread IS NULL OR "{prefix}run".thread = :thread) AND (:parent IS NULL OR "{prefix}run".parent = :parent) ORDER BY "{prefix}run".created_at DESC, "{prefix}run".run_id DESC
LIMIT :limit OFFSET 0

-- read_version
SELECT "{prefix}version".document
FROM "{prefix}version"
WHERE "{prefix}version".tenant = :tenant AND "{prefix}version".hash = :hash

-- read_document
SELECT "{prefix}document".text
FROM "{prefix}document"
WHERE "{prefix}document".tenant = :tenant AND "{prefix}document".hash = :hash

-- next_ready_tenant
SELECT "{prefix}run".tenant
FROM "{prefix}run"
WHERE "{prefix}run".state IN ('ready', 'suspended') AND "{prefix}run".state = 'ready' AND ("{prefix}run".wake_at IS NULL OR "{prefix}run".wake_at <= :now) AND "{prefix}run".tenant > :after ORDER BY "{prefix}run".tenant
LIMIT 1 OFFSET 0

-- next_due_tenant
SELECT "{prefix}run".tenant
FROM "{prefix}run"
WHERE "{prefix}run".state IN ('ready', 'suspended') AND "{prefix}run".state = 'suspended' AND "{prefix}run".wake_at <= :now AND "{prefix}run".tenant > :after ORDER BY "{prefix}run".tenant
LIMIT 1 OFFSET 0

-- next_ready_priority
SELECT "{prefix}run".priority
FROM "{prefix}run"
WHERE "{prefix}run".state IN ('ready', 'suspended') AND "{prefix}run".state = 'ready' AND "{prefix}run".tenant = :tenant AND "{prefix}run".priority < :below ORDER BY "{prefix}run".priority DESC
LIMIT 1 OFFSET 0

-- next_suspended_priority
SELECT "{prefix}run".priority
FROM "{prefix}run"
WHERE "{prefix}run".state IN ('ready', 'suspended') AND "{prefix}run".state = 'suspended' AND "{prefix}run".tenant = :tenant AND "{prefix}run".priority < :below ORDER BY "{prefix}run".priority DESC
LIMIT 1 OFFSET 0

-- find_ready
SELECT "{prefix}run".tenant, "{prefix}run".run_id, "{prefix}run".version, "{prefix}run".state, "{prefix}run".head, "{prefix}run".head_hash, "{prefix}run".head_at, "{prefix}run".worker, "{prefix}run".epoch, "{prefix}run".crashes, "{prefix}run".wake_at, "{prefix}run".deadline_at, "{prefix}run".remaining_seconds, "{prefix}run".priority, "{prefix}run".schema_version, "{prefix}run".abort, "{prefix}run".thread, "{prefix}run".position, "{prefix}run".previous, "{prefix}run".parent, "{prefix}run".root, "{prefix}run".referenced, "{prefix}run".created_at, "{prefix}run".open, "{prefix}run".capped
FROM "{prefix}run"
WHERE "{prefix}run".state IN ('ready', 'suspended') AND "{prefix}run".state = 'ready' AND "{prefix}run".tenant = :tenant AND "{prefix}run".priority = :priority AND "{prefix}run".wake_at IS NULL ORDER BY "{prefix}run".created_at

-- find_ready_due
SELECT "{prefix}run".tenant, "{prefix}run".run_id, "{prefix}run".version, "{prefix}run".state, "{prefix}run".head, "{prefix}run".head_hash, "{prefix}run".head_at, "{prefix}run".worker, "{prefix}run".epoch, "{prefix}run".crashes, "{prefix}run".wake_at, "{prefix}run".deadline_at, "{prefix}run".remaining_seconds, "{prefix}run".priority, "{prefix}run".schema_version, "{prefix}run".abort, "{prefix}run".thread, "{prefix}run".position, "{prefix}run".previous, "{prefix}run".parent, "{prefix}run".root, "{prefix}run".referenced, "{prefix}run".created_at, "{prefix}run".open, "{prefix}run".capped
FROM "{prefix}run"
WHERE "{prefix}run".state IN ('ready', 'suspended') AND "{prefix}run".state = 'ready' AND "{prefix}run".tenant = :tenant AND "{prefix}run".priority = :priority AND "{prefix}run".wake_at <= :now ORDER BY "{prefix}run".wake_at

-- find_suspended_due
SELECT "{prefix}run".tenant, "{prefix}run".run_id, "{prefix}run".version, "{prefix}run".state, "{prefix}run".head, "{prefix}run".head_hash, "{prefix}run".head_at, "{prefix}run".worker, "{prefix}run".epoch, "{prefix}run".crashes, "{prefix}run".wake_at, "{prefix}run".deadline_at, "{prefix}run".remaining_seconds, "{prefix}run".priority, "{prefix}run".schema_version, "{prefix}run".abort, "{prefix}run".thread, "{prefix}run".position, "{prefix}run".previous, "{prefix}run".parent, "{prefix}run".root, "{prefix}run".referenced, "{prefix}run".created_at, "{prefix}run".open, "{prefix}run".capped
FROM "{prefix}run"
WHERE "{prefix}run".state IN ('ready', 'suspended') AND "{prefix}run".state = 'suspended' AND "{prefix}run".tenant = :tenant AND "{prefix}run".priority = :priority AND "{prefix}run".wake_at <= :now ORDER BY "{prefix}run".wake_at

-- next_held_worker
SELECT "{prefix}run".worker
FROM "{prefix}run"
WHERE "{prefix}run".worker > :after ORDER BY "{prefix}run".worker
LIMIT 1 OFFSET 0

-- find_held
SELECT "{prefix}run".tenant, "{prefix}run".run_id, "{prefix}run".version, "{prefix}run".state, "{prefix}run".head, "{prefix}run".head_hash, "{prefix}run".head_at, "{prefix}run".worker, "{prefix}run".epoch, "{prefix}run".crashes, "{prefix}run".wake_at, "{prefix}run".deadline_at, "{prefix}run".remaining_seconds, "{prefix}run".priority, "{prefix}run".schema_version, "{prefix}run".abort, "{prefix}run".thread, "{prefix}run".position, "{prefix}run".previous, "{prefix}run".parent, "{prefix}run".root, "{prefix}run".referenced, "{prefix}run".created_at, "{prefix}run".open, "{prefix}run".capped
FROM "{prefix}run"
WHERE "{prefix}run".worker = :worker AND "{prefix}run".state = 'running'

-- find_late
SELECT "{prefix}run".tenant, "{prefix}run".run_id, "{prefix}run".version, "{prefix}run".state, "{prefix}run".head, "{prefix}run".head_hash, "{prefix}run".head_at, "{prefix}run".worker, "{prefix}run".epoch, "{prefix}run".crashes, "{prefix}run".wake_at, "{prefix}run".deadline_at, "{prefix}run".remaining_seconds, "{prefix}run".priority, "{prefix}run".schema_version, "{prefix}run".abort, "{prefix}run".thread, "{prefix}run".position, "{prefix}run".previous, "{prefix}run".parent, "{prefix}run".root, "{prefix}run".referenced, "{prefix}run".created_at, "{prefix}run".open, "{prefix}run".capped
FROM "{prefix}run"
WHERE "{prefix}run".state IN ('ready', 'running', 'suspended') AND "{prefix}run".deadline_at <= :now ORDER BY "{prefix}run".deadline_at

-- find_aborted
SELECT "{prefix}run".tenant, "{prefix}run".run_id, "{prefix}run".version, "{prefix}run".state, "{prefix}run".head, "{prefix}run".head_hash, "{prefix}run".head_at, "{prefix}run".worker, "{prefix}run".epoch, "{prefix}run".crashes, "{prefix}run".wake_at, "{prefix}run".deadline_at, "{prefix}run".remaining_seconds, "{prefix}run".priority, "{prefix}run".schema_version, "{prefix}run".abort, "{prefix}run".thread, "{prefix}run".position, "{prefix}run".previous, "{prefix}run".parent, "{prefix}run".root, "{prefix}run".referenced, "{prefix}run".created_at, "{prefix}run".open, "{prefix}run".capped
FROM "{prefix}run"
WHERE "{prefix}run".state IN ('ready', 'running', 'suspended') AND "{prefix}run".abort IS NOT NULL

-- read_worker
SELECT "{prefix}worker".id, "{prefix}worker".lease_until, "{prefix}worker".lease_seconds, "{prefix}worker".beat, "{prefix}worker".since, "{prefix}worker".dead, "{prefix}worker".build, "{prefix}worker".tools
FROM "{prefix}worker"
WHERE "{prefix}worker".id = :worker

-- live_workers
SELECT "{prefix}worker".id
FROM "{prefix}worker"
WHERE "{prefix}worker".dead = 0

-- worker_rows
SELECT "{prefix}worker".id, "{prefix}worker".lease_until, "{prefix}worker".lease_seconds, "{prefix}worker".beat, "{prefix}worker".since, "{prefix}worker".dead, "{prefix}worker".build, "{prefix}worker".tools
FROM "{prefix}worker"
WHERE "{prefix}worker".dead = 0 ORDER BY "{prefix}worker".id

-- renew_worker
UPDATE "{prefix}worker" SET lease_until=:until, lease_seconds=:seconds, beat=("{prefix}worker".beat + 1), since=:unbroken_since WHERE "{prefix}worker".id = :worker AND "{prefix}worker".dead = 0

-- see_run
SELECT "{prefix}run".epoch, "{prefix}run".head, "{prefix}run".abort, "{prefix}run".deadline_at
FROM "{prefix}run"
WHERE "{prefix}run".run_id = :run_id

-- lapsed_workers
SELECT "{prefix}worker".id
FROM "{prefix}worker"
WHERE "{prefix}worker".dead = 0 AND "{prefix}worker".lease_until < :now ORDER BY "{prefix}worker".id

-- bury_worker
UPDATE "{prefix}worker" SET dead=1 WHERE "{prefix}worker".id = :worker AND "{prefix}worker".dead = 0 AND "{prefix}worker".lease_until < :now

-- sweep_workers
DELETE FROM "{prefix}worker" WHERE "{prefix}worker".dead = 1 AND NOT (EXISTS (SELECT *
FROM "{prefix}run"
WHERE "{prefix}run".worker = "{prefix}worker".id))

-- read_cap
SELECT "{prefix}cap".tenant, "{prefix}cap".running, "{prefix}cap"."limit"
FROM "{prefix}cap"
WHERE "{prefix}cap".tenant = :tenant

-- find_cap
SELECT "{prefix}cap".tenant
FROM "{prefix}cap"
WHERE "{prefix}cap"."limit" < :uncapped

-- limit_cap
UPDATE "{prefix}cap" SET "limit"=:new_limit WHERE "{prefix}cap".tenant = :in_tenant

-- count_cap
UPDATE "{prefix}cap" SET running=:now_running WHERE "{prefix}cap".tenant = :in_tenant

-- find_contents
SELECT "{prefix}record".seq
FROM "{prefix}record"
WHERE "{prefix}record".run_id = :run_id AND ("{prefix}record".content IS NOT NULL OR "{prefix}record".salt IS NOT NULL) ORDER BY "{prefix}record".seq
LIMIT :limit OFFSET 0

-- blank_record
UPDATE "{prefix}record" SET content=NULL, salt=NULL WHERE "{prefix}record".run_id = :in_run AND "{prefix}record".seq = :at_seq

-- delete_run
DELETE FROM "{prefix}run" WHERE "{prefix}run".run_id = :run_id

-- delete_log
DELETE FROM "{prefix}record" WHERE "{prefix}record".run_id = :run_id

-- delete_keys
DELETE FROM "{prefix}key" WHERE "{prefix}key".tenant = :tenant AND "{prefix}key".run_id = :run_id

-- delete_key
DELETE FROM "{prefix}key" WHERE "{prefix}key".tenant = :tenant AND "{prefix}key".run_id = :run_id AND "{prefix}key"."key" = :key

-- delete_place
DELETE FROM "{prefix}thread" WHERE "{prefix}thread".tenant = :tenant AND "{prefix}thread".thread = :thread AND "{prefix}thread".position = :position AND "{prefix}thread".run_id = :run_id

-- read_value
SELECT "{prefix}kv".tenant, "{prefix}kv".kind, "{prefix}kv"."key", "{prefix}kv".revision, "{prefix}kv".value
FROM "{prefix}kv"
WHERE "{prefix}kv".tenant = :tenant AND "{prefix}kv".kind = :kind AND "{prefix}kv"."key" = :key

-- list_values
SELECT "{prefix}kv".tenant, "{prefix}kv".kind, "{prefix}kv"."key", "{prefix}kv".revision, "{prefix}kv".value
FROM "{prefix}kv"
WHERE "{prefix}kv".tenant = :tenant AND "{prefix}kv".kind = :kind AND "{prefix}kv"."key" > :after AND "{prefix}kv"."key" >= :prefix AND "{prefix}kv"."key" < :beyond ORDER BY "{prefix}kv"."key"
LIMIT :limit OFFSET 0

-- change_value
UPDATE "{prefix}kv" SET revision=:to_revision, value=:new_value WHERE "{prefix}kv".tenant = :in_tenant AND "{prefix}kv".kind = :in_kind AND "{prefix}kv"."key" = :at_key AND "{prefix}kv".revision = :from_revision

-- delete_value
DELETE FROM "{prefix}kv" WHERE "{prefix}kv".tenant = :tenant AND "{prefix}kv".kind = :kind AND "{prefix}kv"."key" = :key AND (:expect IS NULL OR "{prefix}kv".revision = :expect)

-- read_ledger
SELECT "{prefix}psych_migration".number, "{prefix}psych_migration".name, "{prefix}psych_migration".sha256
FROM "{prefix}psych_migration" ORDER BY "{prefix}psych_migration".number

-- insert_migration
INSERT INTO "{prefix}psych_migration" (number, name, sha256, applied_at) VALUES (:number, :name, :sha256, :applied_at)
