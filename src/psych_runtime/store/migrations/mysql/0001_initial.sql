-- The tables of psych-runtime. Released migrations never change; `{prefix}` is the tables' prefix,
-- `{binary}` the server's name of the collation that compares byte by byte and pads nothing.

CREATE TABLE IF NOT EXISTS "{prefix}cap" (
	tenant VARCHAR(128) COLLATE {binary} NOT NULL,
	running INTEGER NOT NULL,
	"limit" INTEGER NOT NULL,
	CONSTRAINT "{prefix}cap_pkey" PRIMARY KEY (tenant)
) ENGINE=InnoDB CHARSET=utf8mb4 COMMENT='How many Runs a tenant may have running at once.' COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS "{prefix}document" (
	tenant VARCHAR(128) COLLATE {binary} NOT NULL,
	hash VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	kind VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	text LONGTEXT NOT NULL,
	CONSTRAINT "{prefix}document_pkey" PRIMARY KEY (tenant, hash),
	CONSTRAINT "{prefix}document_kind_check" CHECK (kind IN ('system', 'tool'))
) ENGINE=InnoDB CHARSET=utf8mb4 COMMENT='A system prompt or tool definition, stored once.' COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS "{prefix}key" (
	tenant VARCHAR(128) COLLATE {binary} NOT NULL,
	run_id VARCHAR(30) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	"key" VARCHAR(256) COLLATE {binary} NOT NULL,
	digest VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	receipt LONGTEXT NOT NULL,
	CONSTRAINT "{prefix}key_pkey" PRIMARY KEY (tenant, run_id, "key")
) ENGINE=InnoDB CHARSET=utf8mb4 COMMENT='A request that was seen; run_id is empty for admissions.' COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS "{prefix}kv" (
	tenant VARCHAR(128) COLLATE {binary} NOT NULL,
	kind VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	"key" VARCHAR(256) COLLATE {binary} NOT NULL,
	revision BIGINT NOT NULL,
	value LONGTEXT NOT NULL,
	CONSTRAINT "{prefix}kv_pkey" PRIMARY KEY (tenant, kind, "key")
) ENGINE=InnoDB CHARSET=utf8mb4 COMMENT='A small value with compare-and-swap.' COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS "{prefix}record" (
	run_id VARCHAR(30) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	seq BIGINT NOT NULL,
	tenant VARCHAR(128) COLLATE {binary} NOT NULL,
	type VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	body LONGTEXT NOT NULL,
	content LONGTEXT,
	salt VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin,
	CONSTRAINT "{prefix}record_pkey" PRIMARY KEY (run_id, seq)
) ENGINE=InnoDB CHARSET=utf8mb4 COMMENT='One record of a log: body and content are kept as written.' COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS "{prefix}run" (
	tenant VARCHAR(128) COLLATE {binary} NOT NULL,
	run_id VARCHAR(30) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	version VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	state VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	head BIGINT NOT NULL,
	head_hash VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	head_at DATETIME(6) NOT NULL,
	worker VARCHAR(40) CHARACTER SET ascii COLLATE ascii_bin,
	epoch BIGINT NOT NULL,
	crashes INTEGER NOT NULL,
	wake_at DATETIME(6),
	deadline_at DATETIME(6),
	remaining_seconds DOUBLE,
	priority INTEGER NOT NULL,
	schema_version INTEGER NOT NULL,
	abort VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin,
	thread VARCHAR(128) COLLATE {binary} NOT NULL,
	position INTEGER NOT NULL,
	previous VARCHAR(30) CHARACTER SET ascii COLLATE ascii_bin,
	parent VARCHAR(30) CHARACTER SET ascii COLLATE ascii_bin,
	root VARCHAR(30) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	referenced BOOL NOT NULL,
	created_at DATETIME(6) NOT NULL,
	open LONGTEXT NOT NULL,
	capped BOOL NOT NULL,
	CONSTRAINT "{prefix}run_pkey" PRIMARY KEY (run_id),
	CONSTRAINT "{prefix}run_state_check" CHECK (state IN ('ready', 'running', 'suspended', 'settled', 'corrupt')),
	CONSTRAINT "{prefix}run_abort_check" CHECK (abort IN ('requested', 'forced')),
	INDEX "{prefix}run_abort" (state, abort),
	INDEX "{prefix}run_claim" (state, tenant, priority DESC, wake_at, created_at),
	INDEX "{prefix}run_due" (state, deadline_at),
	INDEX "{prefix}run_list" (tenant, created_at, run_id),
	INDEX "{prefix}run_root" (root),
	INDEX "{prefix}run_worker" (worker)
) ENGINE=InnoDB CHARSET=utf8mb4 COMMENT='The header of a Run, beside its log; changes only in the commit of the record that explains the change.' COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS "{prefix}thread" (
	tenant VARCHAR(128) COLLATE {binary} NOT NULL,
	thread VARCHAR(128) COLLATE {binary} NOT NULL,
	position INTEGER NOT NULL,
	run_id VARCHAR(30) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	CONSTRAINT "{prefix}thread_pkey" PRIMARY KEY (tenant, thread, position)
) ENGINE=InnoDB CHARSET=utf8mb4 COMMENT='Who stands where in a thread.' COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS "{prefix}version" (
	tenant VARCHAR(128) COLLATE {binary} NOT NULL,
	hash VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	document LONGTEXT NOT NULL,
	created_at DATETIME(6) NOT NULL,
	CONSTRAINT "{prefix}version_pkey" PRIMARY KEY (tenant, hash)
) ENGINE=InnoDB CHARSET=utf8mb4 COMMENT='A published Spec.' COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS "{prefix}worker" (
	id VARCHAR(40) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	lease_until DATETIME(6) NOT NULL,
	lease_seconds DOUBLE NOT NULL,
	beat BIGINT NOT NULL,
	since DATETIME(6) NOT NULL,
	dead BOOL NOT NULL,
	build VARCHAR(128) NOT NULL,
	tools LONGTEXT NOT NULL,
	CONSTRAINT "{prefix}worker_pkey" PRIMARY KEY (id)
) ENGINE=InnoDB CHARSET=utf8mb4 COMMENT='A worker''s claim to be alive.' COLLATE utf8mb4_bin;
