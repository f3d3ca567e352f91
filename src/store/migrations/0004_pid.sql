-- Applied migrations are never edited: their hash is checked at every start.

-- An execution's first process, by its number in the box; 0: not known. A column behind the output
-- would be read through all of it, so the table is made anew.
CREATE TABLE executions_with_pid (
	id TEXT NOT NULL PRIMARY KEY,
	sandbox_id TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
	owner TEXT NOT NULL,
	kind INTEGER NOT NULL,
	state INTEGER NOT NULL,
	is_live INTEGER NOT NULL,
	flags INTEGER NOT NULL,
	guest_id INTEGER NOT NULL,
	pid INTEGER NOT NULL,
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

INSERT INTO executions_with_pid
	SELECT id, sandbox_id, owner, kind, state, is_live, flags, guest_id, 0, exit_code, signal,
		started_ms, ended_ms, wall_us, cpu_us, peak_bytes, output_bytes, output_start, reason,
		content, output FROM executions;
DROP TABLE executions;
ALTER TABLE executions_with_pid RENAME TO executions;

CREATE INDEX executions_by_sandbox ON executions (sandbox_id, started_ms, id);
CREATE INDEX executions_live ON executions (started_ms, id) WHERE is_live;
CREATE INDEX executions_ended ON executions (ended_ms) WHERE NOT is_live;
