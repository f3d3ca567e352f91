/* What answers look like, as data: one named schema for each JSON object that a route gives. The
 * OpenAPI document and docs/api.md are written from it, and the end-to-end tests hold every answer
 * against it. */
#pragma once

#include <stddef.h>

enum schema_type {
	SCHEMA_STRING = 1 << 0,
	SCHEMA_TIME = 1 << 1, /* a string: ISO 8601 in UTC */
	SCHEMA_INT = 1 << 2,
	SCHEMA_NUMBER = 1 << 3,
	SCHEMA_BOOL = 1 << 4,
	SCHEMA_NULL = 1 << 5,
	SCHEMA_OBJECT = 1 << 6,  /* the schema that ref names; without ref: any object */
	SCHEMA_LIST = 1 << 7,    /* of the schema that ref names; without ref: of anything */
	SCHEMA_STRINGS = 1 << 8, /* a list of strings */
	SCHEMA_MAP = 1 << 9,     /* an object of strings */
	SCHEMA_ANY = 1 << 10,
};

struct schema_field {
	const char *name;
	unsigned types;             /* enum schema_type: one or more */
	const char *ref;            /* name of a schema */
	const char *const *choices; /* of a string, NULL-terminated */
	const char *help;           /* NULL: the name says it */
	unsigned optional;          /* 1: may be absent */
};

struct schema {
	const char *name; /* "Sandbox": what a route's answer and a field's ref say */
	const char *about;
	const struct schema_field *fields;
	size_t count;
};

const struct schema *schema_at(size_t i);           /* NULL: there are no more */
const struct schema *schema_find(const char *name); /* NULL: there is none */
