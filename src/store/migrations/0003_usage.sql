-- Applied migrations are never edited: their hash is checked at every start.

-- What one sandbox used on one day; without a sandbox, what its owner keeps on the disk.
CREATE TABLE usage_of_day (
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
	until_ms INTEGER NOT NULL, -- counted until then; 0: not known
	box_cpu_us INTEGER NOT NULL, -- of the box, as far as it is counted
	exec_cpu_us INTEGER NOT NULL, -- of its executions that have ended
	PRIMARY KEY (sandbox_id, day, owner)
) STRICT, WITHOUT ROWID;

INSERT INTO usage_of_day
	SELECT sandbox_id, day, owner, key_id, cpu_us, memory_byte_ms, disk_byte_ms, net_bytes,
		executions, wall_ms, 0, 0, 0 FROM usage;
DROP TABLE usage;
ALTER TABLE usage_of_day RENAME TO usage;

CREATE INDEX usage_by_day ON usage (day);
CREATE INDEX usage_by_owner ON usage (owner, day);
