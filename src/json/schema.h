/* JSON Schema (2020-12) of a table of fields (json/jv_decode.h): what is described is what is
 * checked. */
#pragma once

#include <stddef.h>

struct jv_field;
struct jw;

/* What parse_duration() takes. */
#define SCHEMA_DURATION "^[0-9]+(\\.[0-9]+)?(ms|s|m|h|d)?$"

/* One value: an object that jv_decode() takes. */
void schema_write_body(struct jw *w, const struct jv_field *fields, size_t n);
/* The same, saying what is meant where a field is absent: defaults is a struct that they go into.
 */
void schema_write_input(struct jw *w, const struct jv_field *fields, size_t n,
			const void *defaults);
/* One value: an object of ours with such members. It has no bounds, may grow, and offsets mean
 * nothing. */
void schema_write_answer(struct jw *w, const struct jv_field *fields, size_t n);
