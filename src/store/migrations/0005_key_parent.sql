-- Applied migrations are never edited: their hash is checked at every start.

-- The key that made this one, where that one expires: a key ends with it. '': none.
ALTER TABLE keys ADD COLUMN parent_id TEXT NOT NULL DEFAULT '';
