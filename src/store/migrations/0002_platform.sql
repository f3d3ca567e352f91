-- Applied migrations are never edited: their hash is checked at every start.

-- 0: what the role gives.
ALTER TABLE keys ADD COLUMN scopes INTEGER NOT NULL DEFAULT 0;
-- The one sandbox that the key is good for, or ''.
ALTER TABLE keys ADD COLUMN sandbox_id TEXT NOT NULL DEFAULT '';
-- Which key made it, or ''.
ALTER TABLE sandboxes ADD COLUMN key_id TEXT NOT NULL DEFAULT '';

-- Users, templates, snapshots and the like: whose they are, what they are called, and a text.
CREATE TABLE objects (
	kind TEXT NOT NULL,
	id TEXT NOT NULL,
	owner TEXT NOT NULL,
	name TEXT NOT NULL,
	state INTEGER NOT NULL,
	text TEXT NOT NULL,
	created_ms INTEGER NOT NULL,
	updated_ms INTEGER NOT NULL,
	PRIMARY KEY (kind, id)
) STRICT;

-- The name stands before the owner: it also finds one whose owner is not known.
CREATE UNIQUE INDEX objects_name ON objects (kind, name, owner) WHERE name <> '';
CREATE INDEX objects_by_time ON objects (kind, created_ms, id);
CREATE INDEX objects_by_owner ON objects (kind, owner, created_ms, id);

-- Logs that only grow, and are cut at their beginning.
CREATE TABLE journal (
	stream TEXT NOT NULL,
	seq INTEGER NOT NULL,
	at_ms INTEGER NOT NULL,
	owner TEXT NOT NULL,
	kind TEXT NOT NULL,
	text TEXT NOT NULL,
	hash BLOB NOT NULL CHECK (length(hash) = 32),
	PRIMARY KEY (stream, seq)
) STRICT, WITHOUT ROWID;

CREATE INDEX journal_by_time ON journal (stream, at_ms, seq);
CREATE INDEX journal_by_owner ON journal (stream, owner, seq);

-- What one sandbox used on one day.
CREATE TABLE usage (
	sandbox_id TEXT NOT NULL,
	day INTEGER NOT NULL,
	owner TEXT NOT NULL,
	key_id TEXT NOT NULL,
	cpu_us INTEGER NOT NULL,
	memory_byte_ms INTEGER NOT NULL,
	disk_byte_ms INTEGER NOT NULL,
	net_bytes INTEGER NOT NULL,
	executions INTEGER NOT NULL,
	wall_ms INTEGER NOT NULL,
	PRIMARY KEY (sandbox_id, day)
) STRICT, WITHOUT ROWID;

CREATE INDEX usage_by_day ON usage (day);
CREATE INDEX usage_by_owner ON usage (owner, day);
