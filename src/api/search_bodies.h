/* Bodies of find, grep, replace and of bundles of files. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/routes.h"
#include "json/jv_decode.h"

struct api_call;
struct guest_file;

struct body_search {
	const char *path, *name, *exclude; /* NULL: absent */
	uint32_t depth, limit;
	/* find */
	int type; /* enum guest_entry_type; -1: any */
	uint64_t size_min, size_max, newer_ms, older_ms;
	/* grep, replace */
	const char *pattern, *replacement;
	bool regex, ignore_case, names_only, dry_run;
	uint32_t context, line_bytes;
};

struct bundle_file {
	const char *path, *content, *mode;
	int encoding; /* enum bundle_encoding */
};
enum bundle_encoding { BUNDLE_TEXT, BUNDLE_BASE64 };

struct body_bundle {
	const char *path;
	struct jv_objects files; /* struct bundle_file */
};

struct body_bundle_get {
	const char *path;
	struct jv_strings paths;
};

extern const struct route_body body_find, body_grep, body_replace, body_bundle, body_bundle_get;

/* What the box is asked to do; its strings are the body's. False: answered with 400. */
bool search_request(struct api_call *c, uint8_t op, struct guest_file *ret);
/* An absolute path, or the default when there is none. False: answered with 400. */
bool search_path(struct api_call *c, const char *path, const char **ret);
