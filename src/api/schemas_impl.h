/* How the tables of schemas are written, and those that stand in another file. */
#pragma once

#include "api/schemas.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* FIELD("name", STRING | NIL, .help = "..."): types without their prefix. */
#define FIELD(name_, types_, ...)                             \
	{                                                     \
		.name = name_, .types = (types_), __VA_ARGS__ \
	}
#define SCHEMA(name_, about_, fields_)                                                         \
	{                                                                                      \
		.name = name_, .about = about_, .fields = fields_, .count = ARRAY_LEN(fields_) \
	}

enum {
	STRING = SCHEMA_STRING,
	TIME = SCHEMA_TIME,
	INT = SCHEMA_INT,
	NUMBER = SCHEMA_NUMBER,
	BOOL = SCHEMA_BOOL,
	NIL = SCHEMA_NULL,
	OBJECT = SCHEMA_OBJECT,
	LIST = SCHEMA_LIST,
	STRINGS = SCHEMA_STRINGS,
	MAP = SCHEMA_MAP,
};

#define NEXT FIELD("nextCursor", STRING | NIL, .help = "the next page's cursor; null: the last")

/* One file a topic: a schema and its row stand together. */
struct schema_group {
	const struct schema *list;
	size_t count;
};
extern const struct schema_group schemas_sandboxes;
extern const struct schema_group schemas_runs;
extern const struct schema_group schemas_files;
extern const struct schema_group schemas_makings;
extern const struct schema_group schemas_builds;
extern const struct schema_group schemas_people;
extern const struct schema_group schemas_logs;
extern const struct schema_group schemas_webhooks;
extern const struct schema_group schemas_daemon;
extern const struct schema_group schemas_sessions;
extern const struct schema_group schemas_tools;
