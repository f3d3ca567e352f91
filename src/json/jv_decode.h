/* JSON objects into structs by a table: a row says what a field is called, what it accepts and
 *where it goes. Unknown fields are refused by name, wrong ones by path: "resources.memory: want
 *...".
 *
 *	static const struct jv_field fields[] = {
 *		JV_FIELD("template", STRING, struct ask, template, .flags = JV_REQUIRED, .max = 64),
 *		JV_FIELD("memory", SIZE, struct ask, memory_bytes, .min = 8 << 20),
 *	};
 *	r = jv_decode(jv_root(doc), fields, 2, arena, &ask, &problem);
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "json/jv.h"

struct arena;

enum jv_type {
	JV_TYPE_STRING,   /* const char *, in the arena */
	JV_TYPE_BOOL,     /* bool */
	JV_TYPE_U32,      /* uint32_t */
	JV_TYPE_U64,      /* uint64_t */
	JV_TYPE_I64,      /* int64_t */
	JV_TYPE_DOUBLE,   /* double */
	JV_TYPE_SIZE,     /* uint64_t bytes, from 268435456 or "256Mi" */
	JV_TYPE_DURATION, /* uint64_t milliseconds, from 30 (seconds), 1.5 or "30s" */
	JV_TYPE_CPU,      /* uint32_t thousandths of a core, from 0.5 or "500m" */
	JV_TYPE_CHOICE,   /* int: the string's index in .choices */
	JV_TYPE_STRINGS,  /* struct jv_strings */
	JV_TYPE_PAIRS,    /* struct jv_pairs, from an object of strings */
	JV_TYPE_OBJECT,   /* a struct at the offset, described by .sub */
	JV_TYPE_OBJECTS,  /* struct jv_objects: an array of objects, each described by .sub */
	JV_TYPE_VALUE,    /* struct jv: anything, as it is; borrowed from the document */
	JV_TYPE_COUNT
};

enum jv_flag {
	JV_REQUIRED = 1 << 0,
	JV_NULLABLE = 1 << 1, /* null is as good as absent; otherwise it is refused */
};

#define JV_TEXT_MAX 4096u /* bytes of a string whose row gives no .max or .text_max */
#define JV_KEY_MAX 256u   /* bytes of a key in JV_TYPE_PAIRS */
#define JV_COUNT_MAX 64u  /* elements of a list or map whose row gives no .max */

struct jv_field {
	const char *name;
	enum jv_type type;
	size_t offset;
	unsigned flags;
	/* Bounds, both included, of: a number's value (a size's bytes, a duration's milliseconds, a
	 * share's thousandths), a string's bytes, a list's or map's elements. A max of 0 is as
	 * far as the type goes (numbers) or the maximum above (the others); with a min of 0 too,
	 * numbers have no lower bound either. */
	int64_t min, max;
	size_t text_max;            /* bytes of each string in a list or map; 0: JV_TEXT_MAX */
	const char *const *choices; /* NULL-terminated */
	const struct jv_field *sub; /* of JV_TYPE_OBJECT and JV_TYPE_OBJECTS */
	size_t sub_count;
	size_t size;      /* of one struct, JV_TYPE_OBJECTS only */
	const char *help; /* for whoever describes the body; NULL: the name says it */
};

/* A row: the rest are designated initialisers of what it needs beyond. */
#define JV_FIELD(name_, type_, struct_, member_, ...)                                         \
	{                                                                                     \
		.name = name_, .type = JV_TYPE_##type_, .offset = offsetof(struct_, member_), \
		__VA_ARGS__                                                                   \
	}

struct jv_strings {
	const char *const *items; /* arena */
	size_t len;
};

struct jv_pair {
	const char *name, *value; /* arena */
};

struct jv_pairs {
	const struct jv_pair *items; /* arena */
	size_t len;
};

struct jv_objects {
	void *items; /* arena: len structs of the row's .size, zeroed before they were filled */
	size_t len;
};

/* What is wrong, for a person: "resources.memory", "want a size such as \"256Mi\"". */
struct jv_problem {
	char field[96];
	char text[160];
};

/* Fields that are absent leave their place in *dst as it is: defaults go there first. -EINVAL or
 * -E2BIG (too long, too many) with *problem filled, -ENOMEM; *dst is then partly filled. problem
 * may be NULL. Strings are copied to the arena; one with a NUL byte inside is refused. */
int jv_decode(struct jv object, const struct jv_field *fields, size_t n, struct arena *a, void *dst,
	      struct jv_problem *problem);
/* The same, for contracts of others, which grow: unknown fields are passed over. */
int jv_decode_known(struct jv object, const struct jv_field *fields, size_t n, struct arena *a,
		    void *dst, struct jv_problem *problem);
