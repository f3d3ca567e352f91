/* A YAML document as JSON: mappings, lists, texts, numbers, true, false and null, as YAML 1.2's
 * core has them. No aliases, anchors or tags; bounded in size and depth. */
#pragma once

#include <stddef.h>

struct buf;
struct err;

#define YAML_JSON_MAX (256u << 10) /* bytes of the YAML */
#define YAML_JSON_DEPTH 16u

/* Appends the JSON. file is for messages: "FILE:LINE: why". -EINVAL, -E2BIG, -ENOMEM; ret then
 * holds nothing of use. An empty document is null. Keys that are there twice are for whoever reads
 * the JSON. */
int yaml_json(const char *file, const void *yaml, size_t n, struct buf *ret, struct err *err);
/* The same, for documents that others read, too: what YAML's core takes for a number, a boolean or
 * null and we for a text (True, 0x1F, +1, .5, 007) is refused, unless it is quoted. */
int yaml_json_exact(const char *file, const void *yaml, size_t n, struct buf *ret, struct err *err);
