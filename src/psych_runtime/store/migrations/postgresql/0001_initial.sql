-- The tables of psych-runtime. Released migrations never change; `{prefix}` is the tables' prefix.

CREATE TABLE "{prefix}cap" (
	tenant VARCHAR(128) COLLATE "C" NOT NULL,
	running INTEGER NOT NULL,
	"limit" INTEGER NOT NULL,
	CONSTRAINT "{prefix}cap_pkey" PRIMARY KEY (tenant)
);

COMMENT ON TABLE "{prefix}cap" IS 'How many Runs a tenant may have running at once.';

CREATE TABLE "{prefix}document" (
	tenant VARCHAR(128) COLLATE "C" NOT NULL,
	hash VARCHAR(64) COLLATE "C" NOT NULL,
	kind VARCHAR(32) COLLATE "C" NOT NULL,
	text TEXT NOT NULL,
	CONSTRAINT "{prefix}document_pkey" PRIMARY KEY (tenant, hash),
	CONSTRAINT "{prefix}document_kind_check" CHECK (kind IN ('system', 'tool'))
);

COMMENT ON TABLE "{prefix}document" IS 'A system prompt or tool definition, stored once.';

CREATE TABLE "{prefix}key" (
	tenant VARCHAR(128) COLLATE "C" NOT NULL,
	run_id VARCHAR(30) COLLATE "C" NOT NULL,
	key VARCHAR(256) COLLATE "C" NOT NULL,
	digest VARCHAR(64) COLLATE "C" NOT NULL,
	receipt TEXT NOT NULL,
	CONSTRAINT "{prefix}key_pkey" PRIMARY KEY (tenant, run_id, key)
);

COMMENT ON TABLE "{prefix}key" IS 'A request that was seen; run_id is empty for admissions.';

CREATE TABLE "{prefix}kv" (
	tenant VARCHAR(128) COLLATE "C" NOT NULL,
	kind VARCHAR(64) COLLATE "C" NOT NULL,
	key VARCHAR(256) COLLATE "C" NOT NULL,
	revision BIGINT NOT NULL,
	value TEXT NOT NULL,
	CONSTRAINT "{prefix}kv_pkey" PRIMARY KEY (tenant, kind, key)
);

COMMENT ON TABLE "{prefix}kv" IS 'A small value with compare-and-swap.';

CREATE TABLE "{prefix}record" (
	run_id VARCHAR(30) COLLATE "C" NOT NULL,
	seq BIGINT NOT NULL,
	tenant VARCHAR(128) COLLATE "C" NOT NULL,
	type VARCHAR(64) COLLATE "C" NOT NULL,
	body TEXT NOT NULL,
	content TEXT,
	salt VARCHAR(32) COLLATE "C",
	CONSTRAINT "{prefix}record_pkey" PRIMARY KEY (run_id, seq)
);

COMMENT ON TABLE "{prefix}record" IS 'One record of a log: body and content are kept as written.';

CREATE TABLE "{prefix}run" (
	tenant VARCHAR(128) COLLATE "C" NOT NULL,
	run_id VARCHAR(30) COLLATE "C" NOT NULL,
	version VARCHAR(64) COLLATE "C" NOT NULL,
	state VARCHAR(32) COLLATE "C" NOT NULL,
	head BIGINT NOT NULL,
	head_hash VARCHAR(64) COLLATE "C" NOT NULL,
	head_at TIMESTAMP(6) WITH TIME ZONE NOT NULL,
	worker VARCHAR(40) COLLATE "C",
	epoch BIGINT NOT NULL,
	crashes INTEGER NOT NULL,
	wake_at TIMESTAMP(6) WITH TIME ZONE,
	deadline_at TIMESTAMP(6) WITH TIME ZONE,
	remaining_seconds DOUBLE PRECISION,
	priority INTEGER NOT NULL,
	schema_version INTEGER NOT NULL,
	abort VARCHAR(32) COLLATE "C",
	thread VARCHAR(128) COLLATE "C" NOT NULL,
	position INTEGER NOT NULL,
	previous VARCHAR(30) COLLATE "C",
	parent VARCHAR(30) COLLATE "C",
	root VARCHAR(30) COLLATE "C" NOT NULL,
	referenced BOOLEAN NOT NULL,
	created_at TIMESTAMP(6) WITH TIME ZONE NOT NULL,
	open TEXT NOT NULL,
	capped BOOLEAN NOT NULL,
	CONSTRAINT "{prefix}run_pkey" PRIMARY KEY (run_id),
	CONSTRAINT "{prefix}run_state_check" CHECK (state IN ('ready', 'running', 'suspended', 'settled', 'corrupt')),
	CONSTRAINT "{prefix}run_abort_check" CHECK (abort IN ('requested', 'forced'))
) WITH (fillfactor = 50);

CREATE INDEX "{prefix}run_abort" ON "{prefix}run" (abort) WHERE state IN ('ready', 'running', 'suspended') AND abort IS NOT NULL;

CREATE INDEX "{prefix}run_claim" ON "{prefix}run" (state, tenant, priority DESC, wake_at, created_at) WHERE state IN ('ready', 'suspended');

CREATE INDEX "{prefix}run_due" ON "{prefix}run" (deadline_at) WHERE state IN ('ready', 'running', 'suspended') AND deadline_at IS NOT NULL;

CREATE INDEX "{prefix}run_list" ON "{prefix}run" (tenant, created_at, run_id);

CREATE INDEX "{prefix}run_root" ON "{prefix}run" (root) WHERE parent IS NOT NULL;

CREATE INDEX "{prefix}run_worker" ON "{prefix}run" (worker) WHERE worker IS NOT NULL;

COMMENT ON TABLE "{prefix}run" IS 'The header of a Run, beside its log; changes only in the commit of the record that explains the change.';

CREATE TABLE "{prefix}thread" (
	tenant VARCHAR(128) COLLATE "C" NOT NULL,
	thread VARCHAR(128) COLLATE "C" NOT NULL,
	position INTEGER NOT NULL,
	run_id VARCHAR(30) COLLATE "C" NOT NULL,
	CONSTRAINT "{prefix}thread_pkey" PRIMARY KEY (tenant, thread, position)
);

COMMENT ON TABLE "{prefix}thread" IS 'Who stands where in a thread.';

CREATE TABLE "{prefix}version" (
	tenant VARCHAR(128) COLLATE "C" NOT NULL,
	hash VARCHAR(64) COLLATE "C" NOT NULL,
	document TEXT NOT NULL,
	created_at TIMESTAMP(6) WITH TIME ZONE NOT NULL,
	CONSTRAINT "{prefix}version_pkey" PRIMARY KEY (tenant, hash)
);

COMMENT ON TABLE "{prefix}version" IS 'A published Spec.';

CREATE TABLE "{prefix}worker" (
	id VARCHAR(40) COLLATE "C" NOT NULL,
	lease_until TIMESTAMP(6) WITH TIME ZONE NOT NULL,
	lease_seconds DOUBLE PRECISION NOT NULL,
	beat BIGINT NOT NULL,
	since TIMESTAMP(6) WITH TIME ZONE NOT NULL,
	dead BOOLEAN NOT NULL,
	build VARCHAR(128) NOT NULL,
	tools TEXT NOT NULL,
	CONSTRAINT "{prefix}worker_pkey" PRIMARY KEY (id)
);

COMMENT ON TABLE "{prefix}worker" IS 'A worker''s claim to be alive.';
