-- Whether a Run is counted in its tenant's cap: the table is built anew, with the column in place.

CREATE TABLE "{prefix}run_new" (
	tenant TEXT NOT NULL,
	run_id TEXT NOT NULL,
	version TEXT NOT NULL,
	state TEXT NOT NULL,
	head INTEGER NOT NULL,
	head_hash TEXT NOT NULL,
	head_at TEXT NOT NULL,
	worker TEXT,
	epoch INTEGER NOT NULL,
	crashes INTEGER NOT NULL,
	wake_at TEXT,
	deadline_at TEXT,
	remaining_seconds REAL,
	priority INTEGER NOT NULL,
	schema_version INTEGER NOT NULL,
	abort TEXT,
	thread TEXT NOT NULL,
	position INTEGER NOT NULL,
	previous TEXT,
	parent TEXT,
	root TEXT NOT NULL,
	referenced INTEGER NOT NULL,
	created_at TEXT NOT NULL,
	open TEXT NOT NULL,
	capped INTEGER NOT NULL,
	CONSTRAINT "{prefix}run_pkey" PRIMARY KEY (run_id),
	CONSTRAINT "{prefix}run_state_check" CHECK (state IN ('ready', 'running', 'suspended', 'settled', 'corrupt')),
	CONSTRAINT "{prefix}run_abort_check" CHECK (abort IN ('requested', 'forced'))
)
 STRICT;

INSERT INTO "{prefix}run_new" (
	tenant, run_id, version, state, head, head_hash, head_at, worker, epoch, crashes,
	wake_at, deadline_at, remaining_seconds, priority, schema_version, abort, thread,
	position, previous, parent, root, referenced, created_at, open, capped
)
SELECT
	tenant, run_id, version, state, head, head_hash, head_at, worker, epoch, crashes,
	wake_at, deadline_at, remaining_seconds, priority, schema_version, abort, thread,
	position, previous, parent, root, referenced, created_at, open, 0
FROM "{prefix}run";

DROP TABLE "{prefix}run";

ALTER TABLE "{prefix}run_new" RENAME TO "{prefix}run";

CREATE INDEX "{prefix}run_abort" ON "{prefix}run" (abort) WHERE state IN ('ready', 'running', 'suspended') AND abort IS NOT NULL;

CREATE INDEX "{prefix}run_claim" ON "{prefix}run" (state, tenant, priority DESC, wake_at, created_at) WHERE state IN ('ready', 'suspended');

CREATE INDEX "{prefix}run_due" ON "{prefix}run" (deadline_at) WHERE state IN ('ready', 'running', 'suspended') AND deadline_at IS NOT NULL;

CREATE INDEX "{prefix}run_list" ON "{prefix}run" (tenant, created_at, run_id);

CREATE INDEX "{prefix}run_root" ON "{prefix}run" (root) WHERE parent IS NOT NULL;

CREATE INDEX "{prefix}run_worker" ON "{prefix}run" (worker) WHERE worker IS NOT NULL;
