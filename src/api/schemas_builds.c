/* Schemas of template builds. */
#include "api/schemas_impl.h"
#include "sandbox/build.h"

static const struct schema_field file[] = {
	FIELD("hash", STRING, .help = "SHA-256 of its bytes"),
	FIELD("present", BOOL),
	FIELD("bytes", INT, .help = "0: it is not there"),
};

static const struct schema_field step[] = {
	FIELD("type", STRING, .choices = build_step_names),
	FIELD("args", STRINGS),
	FIELD("status", STRING, .choices = build_step_states),
	FIELD("cached", BOOL, .help = "it was done before, on top of the same"),
	FIELD("durationMs", INT),
	FIELD("output", STRING | NIL, .help = "the end of it; null in lists"),
	FIELD("outputOmitted", INT, .help = "bytes before that"),
};

static const struct schema_field build[] = {
	FIELD("id", STRING),
	FIELD("name", STRING, .help = "of the template"),
	FIELD("status", STRING, .choices = build_status_names),
	FIELD("from", STRING, .help = "what it begins with; empty: the default"),
	FIELD("template", STRING | NIL, .help = "what came of it, with its version"),
	FIELD("reason", STRING | NIL, .help = "why it failed"),
	FIELD("steps", LIST, .ref = "BuildStep"),
	FIELD("createdAt", TIME),
	FIELD("startedAt", TIME | NIL),
	FIELD("endedAt", TIME | NIL),
};

static const struct schema_field build_list[] = {
	FIELD("items", LIST, .ref = "Build"),
	NEXT,
};

static const struct schema list[] = {
	SCHEMA("BuildStep", "A step of a build", step),
	SCHEMA("Build", "A template that is made by steps", build),
	SCHEMA("BuildList", "A page of builds, newest first", build_list),
	SCHEMA("TemplateFile", "An archive that builds can copy from", file),
};

const struct schema_group schemas_builds = { list, ARRAY_LEN(list) };
