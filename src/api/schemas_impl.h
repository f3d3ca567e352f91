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

/* schemas_logs.c */
extern const struct schema_field schema_event[5];
extern const struct schema_field schema_event_page[2];
extern const struct schema_field schema_audit_line[6];
extern const struct schema_field schema_audit_head[3];
extern const struct schema_field schema_usage[10];
extern const struct schema_field schema_usage_page[2];
extern const struct schema_field schema_audit_page[3];
