/* Sandboxes. */
#include "api/schemas_impl.h"
#include "sandbox/lifecycle.h"

static const char *const states[] = { "creating",   "running",   "pausing",  "paused",
				      "resuming",   "stopping",  "stopped",  "failed",
				      "suspending", "suspended", "starting", NULL };

static const char *const starts[] = { "warm", "cold", NULL };

static const struct schema_field resources[] = {
	FIELD("cpu", NUMBER, .help = "cores"),
	FIELD("memory", INT, .help = "bytes"),
	FIELD("disk", INT, .help = "bytes, part of the memory"),
	FIELD("pids", INT, .help = "processes and threads"),
};

static const struct schema_field timings[] = {
	FIELD("claimMs", NUMBER, .help = "the launcher's answer"),
	FIELD("stockMs", NUMBER),
	FIELD("cloneMs", NUMBER),
	FIELD("readyMs", NUMBER),
	FIELD("limitsMs", NUMBER),
	FIELD("storeMs", NUMBER, .help = "the commit"),
	FIELD("totalMs", NUMBER, .help = "from the request to the answer"),
};

static const struct schema_field mount[] = {
	FIELD("id", STRING),
	FIELD("name", STRING),
	FIELD("path", STRING, .help = "in the sandbox"),
	FIELD("readOnly", BOOL),
};

static const struct schema_field sandbox[] = {
	FIELD("id", STRING),
	FIELD("name", STRING | NIL),
	FIELD("status", STRING, .choices = states),
	FIELD("reason", STRING | NIL, .help = "why it ended"),
	FIELD("template", STRING),
	FIELD("runtime", STRING, .help = "the same as template"),
	FIELD("securityLevel", STRING),
	FIELD("networkAccess", STRING),
	FIELD("tools", SCHEMA_ANY,
	      .help = "whose tools its programs may call: true, false, or names"),
	FIELD("owner", STRING),
	FIELD("createdAt", TIME),
	FIELD("expiresAt", TIME | NIL, .help = "null while paused"),
	FIELD("endedAt", TIME | NIL),
	FIELD("timeout", NUMBER | NIL, .help = "seconds to live"),
	FIELD("idleTimeout", NUMBER | NIL, .help = "seconds without anything happening"),
	FIELD("remaining", NUMBER | NIL, .help = "seconds that are left, while paused"),
	FIELD("onTimeout", STRING, .choices = lapse_names),
	FIELD("autoResume", BOOL, .help = "what is wanted of it wakes it"),
	FIELD("resources", OBJECT, .ref = "Resources"),
	FIELD("metadata", MAP),
	FIELD("envNames", STRINGS, .help = "values are never told"),
	FIELD("volumes", LIST, .ref = "Mount"),
	FIELD("runningExecutions", INT),
	FIELD("start", STRING, .choices = starts, .help = "warm: it came from the pool"),
	FIELD("timings", OBJECT | NIL, .ref = "Timings"),
	FIELD("endpoints", MAP, .help = "paths of what can be asked of it"),
	FIELD("usage", OBJECT | NIL, .ref = "SandboxUsage", .optional = 1,
	      .help = "of a list with ?usage=true; null: it has no box"),
};

static const struct schema_field sandbox_list[] = {
	FIELD("items", LIST, .ref = "Sandbox"),
	NEXT,
};

static const struct schema_field sandbox_status[] = {
	FIELD("id", STRING),
	FIELD("status", STRING, .choices = states),
	FIELD("reason", STRING | NIL),
	FIELD("expiresAt", TIME | NIL),
	FIELD("runningExecutions", INT),
};

static const struct schema_field sandbox_usage[] = {
	FIELD("cpuSeconds", NUMBER, .help = "since its box was made"),
	FIELD("memory", INT, .help = "bytes, with what it has written"),
	FIELD("memoryPeak", INT),
	FIELD("processes", INT, .help = "and threads"),
	FIELD("outOfMemoryKills", INT),
};

static const struct schema_field forks[] = {
	FIELD("items", LIST, .ref = "Sandbox"),
};

static const struct schema list[] = {
	SCHEMA("Sandbox", "A sandbox, live or ended", sandbox),
	SCHEMA("SandboxList", "A page of sandboxes, newest first", sandbox_list),
	SCHEMA("SandboxStatus", "The state alone", sandbox_status),
	SCHEMA("Mount", "A volume in a sandbox", mount),
	SCHEMA("Resources", "What a sandbox may use", resources),
	SCHEMA("Timings", "Where the time of its making went, in milliseconds", timings),
	SCHEMA("SandboxUsage", "What a sandbox takes just now", sandbox_usage),
	SCHEMA("Forks", "The new sandboxes, all of them running", forks),
};

const struct schema_group schemas_sandboxes = { list, ARRAY_LEN(list) };
