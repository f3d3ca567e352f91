/* JSON Schema (2020-12, as OpenAPI 3.1 has it) from our tables: queries and answers; bodies are
 * json/schema.h's. */
#pragma once

struct jw;
struct route_query;
struct schema;

/* Each writes one value. */
void openapi_query(struct jw *w, const struct route_query *q);
void openapi_answer(struct jw *w, const struct schema *s);
void openapi_ref(struct jw *w, const char *schema); /* {"$ref":"#/components/schemas/..."} */
