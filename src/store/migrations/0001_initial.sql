-- Applied migrations are never edited: their hash is checked at every start.

CREATE TABLE meta (
	name TEXT NOT NULL PRIMARY KEY,
	text TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE keys (
	id TEXT NOT NULL PRIMARY KEY,
	hash BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
	name TEXT NOT NULL,
	owner TEXT NOT NULL,
	role INTEGER NOT NULL,
	created_ms INTEGER NOT NULL,
	expires_ms INTEGER NOT NULL,
	revoked_ms INTEGER NOT NULL,
	last_used_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE sandboxes (
	id TEXT NOT NULL PRIMARY KEY,
	owner TEXT NOT NULL,
	name TEXT NOT NULL,
	box_id TEXT NOT NULL,
	template TEXT NOT NULL,
	state INTEGER NOT NULL,
	level INTEGER NOT NULL,
	is_live INTEGER NOT NULL,
	flags INTEGER NOT NULL,
	created_ms INTEGER NOT NULL,
	updated_ms INTEGER NOT NULL,
	ended_ms INTEGER NOT NULL,
	expires_ms INTEGER NOT NULL,
	remaining_ms INTEGER NOT NULL,
	timeout_ms INTEGER NOT NULL,
	idle_ms INTEGER NOT NULL,
	reason TEXT NOT NULL,
	metadata TEXT NOT NULL,
	spec TEXT NOT NULL,
	env TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX sandboxes_live_name ON sandboxes (owner, name) WHERE is_live AND name <> '';
CREATE INDEX sandboxes_by_time ON sandboxes (created_ms, id);
CREATE INDEX sandboxes_by_owner ON sandboxes (owner, created_ms, id);
CREATE INDEX sandboxes_live ON sandboxes (created_ms, id) WHERE is_live;
CREATE INDEX sandboxes_ended ON sandboxes (ended_ms) WHERE NOT is_live;

CREATE TABLE executions (
	id TEXT NOT NULL PRIMARY KEY,
	sandbox_id TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
	owner TEXT NOT NULL,
	kind INTEGER NOT NULL,
	state INTEGER NOT NULL,
	is_live INTEGER NOT NULL,
	flags INTEGER NOT NULL,
	guest_id INTEGER NOT NULL,
	exit_code INTEGER NOT NULL,
	signal INTEGER NOT NULL,
	started_ms INTEGER NOT NULL,
	ended_ms INTEGER NOT NULL,
	wall_us INTEGER NOT NULL,
	cpu_us INTEGER NOT NULL,
	peak_bytes INTEGER NOT NULL,
	output_bytes INTEGER NOT NULL,
	output_start INTEGER NOT NULL,
	reason TEXT NOT NULL,
	content TEXT NOT NULL,
	output BLOB
) STRICT;

CREATE INDEX executions_by_sandbox ON executions (sandbox_id, started_ms, id);
CREATE INDEX executions_live ON executions (started_ms, id) WHERE is_live;
CREATE INDEX executions_ended ON executions (ended_ms) WHERE NOT is_live;
