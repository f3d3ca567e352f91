/* JSON Schema (2020-12, as OpenAPI 3.1 has it) from our tables: bodies, queries, answers. */
#pragma once

#include <stddef.h>

struct jv_field;
struct jw;
struct route_query;
struct schema;

/* Each writes one value. */
void openapi_body(struct jw *w, const struct jv_field *fields, size_t n);
void openapi_query(struct jw *w, const struct route_query *q);
void openapi_answer(struct jw *w, const struct schema *s);
void openapi_ref(struct jw *w, const char *schema); /* {"$ref":"#/components/schemas/..."} */
