-- The tables of psych-runtime. Released migrations never change; `{prefix}` is the tables' prefix.

CREATE TABLE "{prefix}cap" (
	tenant TEXT NOT NULL,
	running INTEGER NOT NULL,
	"limit" INTEGER NOT NULL,
	CONSTRAINT "{prefix}cap_pkey" PRIMARY KEY (tenant)
)
 WITHOUT ROWID,
 STRICT;

CREATE TABLE "{prefix}document" (
	tenant TEXT NOT NULL,
	hash TEXT NOT NULL,
	kind TEXT NOT NULL,
	text TEXT NOT NULL,
	CONSTRAINT "{prefix}document_pkey" PRIMARY KEY (tenant, hash),
	CONSTRAINT "{prefix}document_kind_check" CHECK (kind IN ('system', 'tool'))
)
 STRICT;

CREATE TABLE "{prefix}key" (
	tenant TEXT NOT NULL,
	run_id TEXT NOT NULL,
	"key" TEXT NOT NULL,
	digest TEXT NOT NULL,
	receipt TEXT NOT NULL,
	CONSTRAINT "{prefix}key_pkey" PRIMARY KEY (tenant, run_id, "key")
)
 STRICT;

CREATE TABLE "{prefix}kv" (
	tenant TEXT NOT NULL,
	kind TEXT NOT NULL,
	"key" TEXT NOT NULL,
	revision INTEGER NOT NULL,
	value TEXT NOT NULL,
	CONSTRAINT "{prefix}kv_pkey" PRIMARY KEY (tenant, kind, "key")
)
 STRICT;

CREATE TABLE "{prefix}record" (
	run_id TEXT NOT NULL,
	seq INTEGER NOT NULL,
	tenant TEXT NOT NULL,
	type TEXT NOT NULL,
	body TEXT NOT NULL,
	content TEXT,
	salt TEXT,
	CONSTRAINT "{prefix}record_pkey" PRIMARY KEY (run_id, seq)
)
 STRICT;

CREATE TABLE "{prefix}run" (
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
	CONSTRAINT "{prefix}run_pkey" PRIMARY KEY (run_id),
	CONSTRAINT "{prefix}run_state_check" CHECK (state IN ('ready', 'running', 'suspended', 'settled', 'corrupt')),
	CONSTRAINT "{prefix}run_abort_check" CHECK (abort IN ('requested', 'forced'))
)
 STRICT;

CREATE INDEX "{prefix}run_abort" ON "{prefix}run" (abort) WHERE state IN ('ready', 'running', 'suspended');

CREATE INDEX "{prefix}run_claim" ON "{prefix}run" (state, tenant, priority DESC, wake_at, created_at) WHERE state IN ('ready', 'suspended');

CREATE INDEX "{prefix}run_due" ON "{prefix}run" (deadline_at) WHERE state IN ('ready', 'running', 'suspended');

CREATE INDEX "{prefix}run_list" ON "{prefix}run" (tenant, created_at, run_id);

CREATE INDEX "{prefix}run_root" ON "{prefix}run" (root);

CREATE INDEX "{prefix}run_worker" ON "{prefix}run" (worker);

CREATE TABLE "{prefix}thread" (
	tenant TEXT NOT NULL,
	thread TEXT NOT NULL,
	position INTEGER NOT NULL,
	run_id TEXT NOT NULL,
	CONSTRAINT "{prefix}thread_pkey" PRIMARY KEY (tenant, thread, position)
)
 WITHOUT ROWID,
 STRICT;

CREATE TABLE "{prefix}version" (
	tenant TEXT NOT NULL,
	hash TEXT NOT NULL,
	document TEXT NOT NULL,
	created_at TEXT NOT NULL,
	CONSTRAINT "{prefix}version_pkey" PRIMARY KEY (tenant, hash)
)
 STRICT;

CREATE TABLE "{prefix}worker" (
	id TEXT NOT NULL,
	lease_until TEXT NOT NULL,
	lease_seconds REAL NOT NULL,
	beat INTEGER NOT NULL,
	since TEXT NOT NULL,
	dead INTEGER NOT NULL,
	build TEXT NOT NULL,
	tools TEXT NOT NULL,
	CONSTRAINT "{prefix}worker_pkey" PRIMARY KEY (id)
)
 STRICT;
