/* An execution as clients see it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct exec_info;
struct jw;
struct output;
struct output_chunk;

/* Of one with its output: OUTPUT_KEEP_MAX, each byte as long as JSON can make it. */
#define EXECUTION_JSON_MAX (400u << 20)

enum encoding { ENCODING_TEXT, ENCODING_BASE64 };
int encoding_from(const char *name, enum encoding *ret); /* "text", "base64"; -EINVAL */

/* Bytes as a JSON string of that encoding. */
void encoding_json(struct jw *w, enum encoding e, const char *data, size_t n);

/* Its members, inside an object that the caller has begun; the second without its id. */
void execution_json_fields(struct jw *w, const struct exec_info *info);
void execution_json_result(struct jw *w, const struct exec_info *info);
/* The same and its kept output; output may be NULL: none was kept. */
void execution_json(struct jw *w, const struct exec_info *info, const struct output *output,
		    enum encoding e);
void execution_json_exit(struct jw *w, const struct exec_info *info); /* exitCode, signal */
const char *stream_name(int stream);                                  /* "stdout", "stderr" */
