#include "api/search_bodies.h"

#include <string.h>

#include "api/call.h"
#include "api/file_job.h"
#include "api/problem.h"
#include "base/clock.h"
#include "spec/guest.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define FIELD(name_, type_, member, ...) \
	JV_FIELD(name_, type_, struct body_search, member, __VA_ARGS__)

#define GLOB_MAX 256
#define DEPTH_MAX 1000
#define LIMIT_MAX 10000
#define PATTERN_MAX (16u << 10) /* a request to a box is 64 KiB at the most */
#define REPLACEMENT_MAX (32u << 10)
#define BUNDLE_FILES_MAX 1000
#define YEAR_MS (366ll * 24 * 3600 * 1000)
#define FIND_LIMIT 1000
#define LINE_BYTES 512

static const char *const types[] = {
	[ENTRY_FILE] = "file",
	[ENTRY_DIR] = "directory",
	[ENTRY_SYMLINK] = "symlink",
	[ENTRY_OTHER] = "other",
	NULL,
};

#define WHERE                                                                                 \
	FIELD("path", STRING, path, .min = 1, .max = FILE_PATH_MAX - 1),                      \
		FIELD("name", STRING, name, .flags = JV_NULLABLE, .min = 1, .max = GLOB_MAX), \
		FIELD("exclude", STRING, exclude, .flags = JV_NULLABLE, .min = 1,             \
		      .max = GLOB_MAX),                                                       \
		FIELD("depth", U32, depth, .flags = JV_NULLABLE, .min = 1, .max = DEPTH_MAX), \
		FIELD("limit", U32, limit, .min = 1, .max = LIMIT_MAX)
#define WHAT                                                                                   \
	FIELD("pattern", STRING, pattern, .flags = JV_REQUIRED, .min = 1, .max = PATTERN_MAX), \
		FIELD("regex", BOOL, regex), FIELD("ignoreCase", BOOL, ignore_case)

static const struct jv_field find_fields[] = {
	WHERE,
	FIELD("type", CHOICE, type, .choices = types),
	FIELD("minSize", SIZE, size_min, .min = 0, .max = INT64_MAX),
	FIELD("maxSize", SIZE, size_max, .min = 1, .max = INT64_MAX),
	FIELD("newerThan", DURATION, newer_ms, .min = 1, .max = 100 * YEAR_MS),
	FIELD("olderThan", DURATION, older_ms, .min = 1, .max = 50 * YEAR_MS),
};
static const struct jv_field grep_fields[] = {
	WHAT,
	WHERE,
	FIELD("context", U32, context, .min = 0, .max = GUEST_CONTEXT_MAX),
	FIELD("lineBytes", U32, line_bytes, .min = 1, .max = GUEST_LINE_MAX),
	FIELD("filesOnly", BOOL, names_only),
};
static const struct jv_field replace_fields[] = {
	WHAT,
	FIELD("replacement", STRING, replacement, .flags = JV_REQUIRED, .max = REPLACEMENT_MAX),
	WHERE,
	FIELD("dryRun", BOOL, dry_run),
};
static const struct body_search defaults = {
	.type = -1,
	.limit = FIND_LIMIT,
	.line_bytes = LINE_BYTES,
};

#define SEARCH_BODY(name_, fields_)                                            \
	{                                                                      \
		.name = name_, .fields = fields_, .count = ARRAY_LEN(fields_), \
		.size = sizeof(struct body_search), .defaults = &defaults,     \
	}
const struct route_body body_find = {
	.name = "FindRequest",
	.fields = find_fields,
	.count = ARRAY_LEN(find_fields),
	.size = sizeof(struct body_search),
	.defaults = &defaults,
	.is_optional = true,
};
const struct route_body body_grep = SEARCH_BODY("GrepRequest", grep_fields);
const struct route_body body_replace = SEARCH_BODY("ReplaceRequest", replace_fields);

static const char *const encodings[] = { "text", "base64", NULL };

static const struct jv_field bundle_file_fields[] = {
	JV_FIELD("path", STRING, struct bundle_file, path, .flags = JV_REQUIRED, .min = 1,
		 .max = FILE_PATH_MAX - 1),
	JV_FIELD("content", STRING, struct bundle_file, content, .flags = JV_REQUIRED,
		 .max = INT32_MAX),
	JV_FIELD("encoding", CHOICE, struct bundle_file, encoding, .choices = encodings),
	JV_FIELD("mode", STRING, struct bundle_file, mode, .min = 1, .max = 8),
};
static const struct jv_field bundle_fields[] = {
	JV_FIELD("path", STRING, struct body_bundle, path, .min = 1, .max = FILE_PATH_MAX - 1),
	JV_FIELD("files", OBJECTS, struct body_bundle, files, .flags = JV_REQUIRED, .min = 1,
		 .max = BUNDLE_FILES_MAX, .sub = bundle_file_fields,
		 .sub_count = ARRAY_LEN(bundle_file_fields), .size = sizeof(struct bundle_file)),
};
const struct route_body body_bundle = {
	.name = "BundleRequest",
	.fields = bundle_fields,
	.count = ARRAY_LEN(bundle_fields),
	.size = sizeof(struct body_bundle),
};

static const struct jv_field bundle_get_fields[] = {
	JV_FIELD("path", STRING, struct body_bundle_get, path, .min = 1, .max = FILE_PATH_MAX - 1),
	JV_FIELD("paths", STRINGS, struct body_bundle_get, paths, .flags = JV_REQUIRED, .min = 1,
		 .max = BUNDLE_FILES_MAX, .text_max = FILE_PATH_MAX - 1),
};
const struct route_body body_bundle_get = {
	.name = "BundleQuery",
	.fields = bundle_get_fields,
	.count = ARRAY_LEN(bundle_get_fields),
	.size = sizeof(struct body_bundle_get),
};

bool search_path(struct api_call *c, const char *path, const char **ret)
{
	*ret = path ? path : FILE_HOME;
	if ((*ret)[0] == '/')
		return true;
	problem_field(c, "path", "want an absolute path");
	return false;
}

/* The box's clock is the machine's. */
static uint64_t ago_ns(uint64_t ms)
{
	uint64_t now = (uint64_t)clock_wall_ms();

	return ms == 0 ? 0 : ms < now ? (now - ms) * 1000000 : 1;
}

static const char *text(const char *s)
{
	return s ? s : "";
}

bool search_request(struct api_call *c, uint8_t op, struct guest_file *ret)
{
	const struct body_search *b = c->body;
	struct guest_file f = {
		.op = op,
		.flags = (b->regex ? FILE_REGEX : 0) | (b->ignore_case ? FILE_ICASE : 0) |
			 (b->names_only ? FILE_NAMES : 0) | (b->dry_run ? FILE_DRY_RUN : 0),
		.depth = b->depth,
		.target = "",
		.search = { .limit = b->limit,
			    .context = b->context,
			    .line_bytes = b->line_bytes,
			    .types = b->type < 0 ? 0 : (uint8_t)(1u << b->type),
			    .size_min = b->size_min,
			    .size_max = b->size_max,
			    .after_ns = ago_ns(b->newer_ms),
			    .before_ns = ago_ns(b->older_ms),
			    .name = text(b->name),
			    .exclude = text(b->exclude),
			    .pattern = text(b->pattern),
			    .replacement = text(b->replacement) },
	};

	if (!search_path(c, b->path, &f.path) || !file_user(c, &f.user))
		return false;
	*ret = f;
	return true;
}
