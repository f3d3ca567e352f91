/* What callers may ask for: every value named that is not. All: -EINVAL with "field: why". */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct sandbox_pair;
struct sandbox_request;
struct sandbox_settings;

#define ENV_BYTES_MAX (32u << 10) /* names and values together: a frame to the box holds them */
#define METADATA_BYTES_MAX (16u << 10)
#define METADATA_NAME_MAX 128u

int check_name(const char *name, struct err *err); /* "" is none */
int check_env(const struct sandbox_pair *items, size_t n, struct err *err);
int check_metadata(const struct sandbox_pair *items, size_t n, struct err *err);
int check_note(const char *note, struct err *err);
struct limits;
/* What one sandbox may have at most; 0 is not asked for. */
int check_limits(const struct sandbox_settings *s, const struct limits *l, struct err *err);
int check_timeout(const struct sandbox_settings *s, uint64_t timeout_ms, struct err *err);
/* All of a request but its template and limits. */
int check_request(const struct sandbox_settings *s, const struct sandbox_request *req,
		  struct err *err);
