#include "api/schemas.h"

#include <string.h>

#include "api/schemas_impl.h"

#include "api/problem.h"

static const char *const roles[] = { "viewer", "user", "admin", NULL };
static const char *const health[] = { "ok", "unavailable", NULL };

/* ---- sandboxes ---- */

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

static const struct schema_field sandbox[] = {
	FIELD("id", STRING),
	FIELD("name", STRING | NIL),
	FIELD("status", STRING, .choices = states),
	FIELD("reason", STRING | NIL, .help = "why it ended"),
	FIELD("template", STRING),
	FIELD("runtime", STRING, .help = "the same as template"),
	FIELD("securityLevel", STRING),
	FIELD("networkAccess", STRING),
	FIELD("owner", STRING),
	FIELD("createdAt", TIME),
	FIELD("expiresAt", TIME | NIL, .help = "null while paused"),
	FIELD("endedAt", TIME | NIL),
	FIELD("timeout", NUMBER | NIL, .help = "seconds to live"),
	FIELD("idleTimeout", NUMBER | NIL, .help = "seconds without anything happening"),
	FIELD("remaining", NUMBER | NIL, .help = "seconds that are left, while paused"),
	FIELD("resources", OBJECT, .ref = "Resources"),
	FIELD("metadata", MAP),
	FIELD("envNames", STRINGS, .help = "values are never told"),
	FIELD("runningExecutions", INT),
	FIELD("start", STRING, .choices = starts, .help = "warm: it came from the pool"),
	FIELD("timings", OBJECT | NIL, .ref = "Timings"),
	FIELD("endpoints", MAP, .help = "paths of what can be asked of it"),
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

/* ---- executions ---- */

static const char *const exec_kinds[] = { "command", "code", "pty", "context", NULL };
static const char *const exec_states[] = { "running", "completed",   "timeout", "cancelled",
					   "failed",  "interrupted", NULL };
static const char *const streams[] = { "stdout", "stderr", NULL };

static const struct schema_field execution[] = {
	FIELD("executionId", STRING),
	FIELD("sandboxId", STRING),
	FIELD("kind", STRING, .choices = exec_kinds),
	FIELD("status", STRING, .choices = exec_states),
	FIELD("reason", STRING | NIL, .help = "why it could not be started"),
	FIELD("startedAt", TIME),
	FIELD("completedAt", TIME | NIL),
	FIELD("exitCode", INT | NIL, .help = "128 + n when signal n ended it"),
	FIELD("signal", STRING | INT | NIL),
	FIELD("timedOut", BOOL),
	FIELD("truncated", BOOL, .help = "some output was not kept"),
	FIELD("oomKilled", BOOL),
	FIELD("cancelled", BOOL),
	FIELD("leftovers", BOOL, .help = "processes that it started still live"),
	FIELD("warm", BOOL),
	FIELD("background", BOOL),
	FIELD("durationMs", NUMBER),
	FIELD("cpuMs", NUMBER),
	FIELD("peakMemoryBytes", INT),
	FIELD("outputBytes", INT),
	FIELD("omittedBytes", INT, .help = "of the output's beginning that are not kept"),
	FIELD("stdout", STRING, .optional = 1, .help = "not in lists and events"),
	FIELD("stderr", STRING, .optional = 1, .help = "not in lists and events"),
	FIELD("contextId", STRING, .optional = 1, .help = "with a contextId: where it ran"),
	FIELD("results", LIST, .ref = "ContextResult", .optional = 1, .help = "the same"),
	FIELD("error", OBJECT | NIL, .ref = "ContextError", .optional = 1, .help = "the same"),
	FIELD("stateLost", BOOL, .optional = 1, .help = "the same"),
};

static const struct schema_field execution_list[] = {
	FIELD("items", LIST, .ref = "Execution"),
	NEXT,
};

static const struct schema_field chunk[] = {
	FIELD("seq", INT, .help = "position of its first byte"),
	FIELD("stream", STRING, .choices = streams),
	FIELD("data", STRING),
};

static const struct schema_field output[] = {
	FIELD("executionId", STRING),
	FIELD("chunks", LIST, .ref = "OutputChunk"),
	FIELD("from", INT),
	FIELD("next", INT, .help = "where to go on"),
	FIELD("begin", INT, .help = "what is kept begins here"),
	FIELD("end", INT),
	FIELD("omitted", INT, .help = "bytes given up between from and the first chunk"),
	FIELD("done", BOOL),
};

static const struct schema_field input[] = {
	FIELD("bytes", INT),
	FIELD("eof", BOOL),
};

/* ---- contexts ---- */

static const char *const languages[] = { "python", "javascript", "typescript", "bash", NULL };
static const char *const context_states[] = { "starting", "idle", "busy", "failed", NULL };
static const char *const run_states[] = { "ok", "error", "interrupted", "timeout", "lost", NULL };

static const struct schema_field context[] = {
	FIELD("contextId", STRING),
	FIELD("sandboxId", STRING),
	FIELD("executionId", STRING | NIL, .help = "the interpreter's own"),
	FIELD("name", STRING | NIL),
	FIELD("language", STRING, .choices = languages),
	FIELD("cwd", STRING, .help = "where it began"),
	FIELD("state", STRING, .choices = context_states),
	FIELD("reason", STRING | NIL, .help = "why it failed"),
	FIELD("createdAt", TIME),
	FIELD("runs", INT, .help = "that have ended since the daemon started"),
	FIELD("queued", INT, .help = "that wait behind the running one"),
};

static const struct schema_field context_list[] = {
	FIELD("items", LIST, .ref = "Context"),
};

static const struct schema_field context_result[] = {
	FIELD("isMain", BOOL, .help = "the last expression's value"),
	FIELD("text", STRING, .optional = 1),
	FIELD("html", STRING, .optional = 1),
	FIELD("markdown", STRING, .optional = 1),
	FIELD("svg", STRING, .optional = 1),
	FIELD("png", STRING, .optional = 1, .help = "base64"),
	FIELD("jpeg", STRING, .optional = 1, .help = "base64"),
	FIELD("pdf", STRING, .optional = 1, .help = "base64"),
	FIELD("latex", STRING, .optional = 1),
	FIELD("javascript", STRING, .optional = 1),
	FIELD("json", SCHEMA_ANY, .optional = 1),
	FIELD("data", SCHEMA_ANY, .optional = 1, .help = "a table: columns of values"),
	FIELD("chart", OBJECT, .optional = 1, .help = "what a figure shows"),
	FIELD("extra", OBJECT, .optional = 1, .help = "other MIME types"),
};

static const struct schema_field context_error[] = {
	FIELD("name", STRING),
	FIELD("value", STRING),
	FIELD("traceback", STRING),
};

static const struct schema_field context_run[] = {
	FIELD("runId", STRING),
	FIELD("contextId", STRING),
	FIELD("sandboxId", STRING),
	FIELD("language", STRING, .choices = languages),
	FIELD("status", STRING, .choices = run_states),
	FIELD("reason", STRING | NIL, .help = "of one that was lost"),
	FIELD("startedAt", TIME | NIL),
	FIELD("durationMs", NUMBER),
	FIELD("executionCount", INT | NIL, .help = "of runs in this interpreter"),
	FIELD("exitCode", INT | NIL, .help = "of a shell's command"),
	FIELD("cwd", STRING | NIL, .help = "of a shell, behind the command"),
	FIELD("timedOut", BOOL),
	FIELD("truncated", BOOL, .help = "some output or results passed a limit"),
	FIELD("stateLost", BOOL, .help = "the interpreter began anew, or is gone"),
	FIELD("results", LIST, .ref = "ContextResult", .optional = 1, .help = "not in events"),
	FIELD("error", OBJECT | NIL, .ref = "ContextError", .optional = 1, .help = "not in events"),
	FIELD("stdout", STRING, .optional = 1, .help = "not in events"),
	FIELD("stderr", STRING, .optional = 1, .help = "not in events"),
};

/* ---- files ---- */

static const char *const file_types[] = { "file", "directory", "symlink", "other", NULL };

static const struct schema_field file[] = {
	FIELD("path", STRING),
	FIELD("type", STRING, .choices = file_types),
	FIELD("size", INT),
	FIELD("mode", STRING, .help = "octal"),
	FIELD("uid", INT),
	FIELD("gid", INT),
	FIELD("mtime", TIME | NIL),
	FIELD("target", STRING | NIL, .help = "where a symbolic link points"),
};

static const struct schema_field file_list[] = {
	FIELD("path", STRING),
	FIELD("items", LIST, .ref = "File"),
	FIELD("truncated", BOOL, .help = "there are more"),
};

static const struct schema_field unpacked[] = {
	FIELD("path", STRING),
	FIELD("count", INT, .help = "entries"),
};

static const struct schema_field found_line[] = {
	FIELD("path", STRING),
	FIELD("line", INT | NIL, .help = "from 1; null with filesOnly"),
	FIELD("column", INT | NIL, .help = "bytes, from 1; null for a line around a match"),
	FIELD("text", STRING | NIL),
	FIELD("isMatch", BOOL, .help = "false: a line around one"),
	FIELD("isCut", BOOL, .help = "the text is not the whole line"),
};

static const struct schema_field grep_result[] = {
	FIELD("path", STRING),
	FIELD("items", LIST, .ref = "GrepLine"),
	FIELD("truncated", BOOL, .help = "there are more"),
	FIELD("matches", INT, .help = "lines, or files with filesOnly"),
	FIELD("skipped", INT, .help = "files that are no text or cannot be read"),
};

static const struct schema_field replaced_file[] = {
	FIELD("path", STRING),
	FIELD("replacements", INT),
};

static const struct schema_field skipped_file[] = {
	FIELD("path", STRING),
	FIELD("reason", STRING),
};

static const struct schema_field replace_result[] = {
	FIELD("path", STRING),
	FIELD("items", LIST, .ref = "ReplacedFile"),
	FIELD("truncated", BOOL, .help = "more files match"),
	FIELD("files", INT),
	FIELD("replacements", INT, .help = "in all files"),
	FIELD("dryRun", BOOL, .help = "nothing was changed"),
	FIELD("skipped", LIST, .ref = "SkippedFile", .help = "the first hundred"),
};

static const struct schema_field bundle_file[] = {
	FIELD("path", STRING, .help = "as it was asked for"),
	FIELD("size", INT | NIL),
	FIELD("content", STRING | NIL),
	FIELD("encoding", STRING | NIL, .help = "text, or base64 for what is none"),
	FIELD("error", OBJECT | NIL, .ref = "Problem", .help = "why there is no content"),
};

static const struct schema_field bundle[] = {
	FIELD("files", LIST, .ref = "BundleFile", .help = "in the order of the request"),
};

static const struct schema_field sandbox_usage[] = {
	FIELD("cpuSeconds", NUMBER, .help = "since its box was made"),
	FIELD("memory", INT, .help = "bytes, with what it has written"),
	FIELD("memoryPeak", INT),
	FIELD("processes", INT, .help = "and threads"),
	FIELD("outOfMemoryKills", INT),
};

static const struct schema_field profile_setting[] = {
	FIELD("name", STRING),
	FIELD("value", STRING),
	FIELD("about", STRING),
	FIELD("choices", STRINGS, .help = "that a request may make instead"),
};

static const struct schema_field profile[] = {
	FIELD("name", STRING),
	FIELD("about", STRING),
	FIELD("isAvailable", BOOL),
	FIELD("reason", STRING | NIL, .help = "why it cannot be had on this machine"),
	FIELD("settings", LIST, .ref = "ProfileSetting"),
	FIELD("mayLoosen", STRINGS, .help = "what may be weaker than standard: nothing"),
};

static const struct schema_field profile_list[] = {
	FIELD("items", LIST, .ref = "Profile"),
};

/* ---- keys, user ---- */

static const struct schema_field key[] = {
	FIELD("id", STRING),
	FIELD("name", STRING),
	FIELD("role", STRING, .choices = roles),
	FIELD("owner", STRING),
	FIELD("scopes", STRINGS),
	FIELD("sandboxId", STRING | NIL, .help = "a token: good for this sandbox alone"),
	FIELD("createdAt", TIME),
	FIELD("expiresAt", TIME | NIL),
	FIELD("lastUsedAt", TIME | NIL),
	FIELD("key", STRING, .optional = 1, .help = "only in the answer that makes it"),
};

static const struct schema_field key_list[] = {
	FIELD("items", LIST, .ref = "Key"),
	NEXT,
};

static const struct schema_field user[] = {
	FIELD("owner", STRING),
	FIELD("role", STRING, .choices = roles),
	FIELD("keyId", STRING, .help = "empty: a token of an identity provider"),
	FIELD("sandboxId", STRING | NIL),
	FIELD("scopes", STRINGS),
	FIELD("quota", OBJECT, .ref = "Quota"),
	FIELD("use", OBJECT, .ref = "Use"),
	FIELD("rateLimits", OBJECT, .ref = "Rates"),
};

static const char *const user_states[] = { "active", "disabled", NULL };

static const struct schema_field quota[] = {
	FIELD("sandboxes", INT | NIL, .help = "live ones"),
	FIELD("cpu", NUMBER | NIL, .help = "cores, of those that are not paused"),
	FIELD("memory", INT | NIL, .help = "bytes"),
	FIELD("disk", INT | NIL, .help = "bytes"),
	FIELD("executions", INT | NIL, .help = "a day, UTC"),
};

static const struct schema_field use[] = {
	FIELD("sandboxes", INT), FIELD("cpu", NUMBER),     FIELD("memory", INT),
	FIELD("disk", INT),      FIELD("executions", INT),
};

static const struct schema_field rates[] = {
	FIELD("read", STRING | NIL, .help = "such as 600/m"),
	FIELD("write", STRING | NIL),
	FIELD("exec", STRING | NIL),
	FIELD("create", STRING | NIL),
};

static const struct schema_field user_record[] = {
	FIELD("name", STRING),
	FIELD("role", STRING, .choices = roles, .help = "none of their keys reaches above"),
	FIELD("status", STRING, .choices = user_states),
	FIELD("quota", OBJECT, .ref = "Quota"),
	FIELD("use", OBJECT, .ref = "Use"),
	FIELD("rateLimits", OBJECT, .ref = "Rates"),
	FIELD("createdAt", TIME),
	FIELD("updatedAt", TIME),
};

static const struct schema_field user_list[] = {
	FIELD("items", LIST, .ref = "UserRecord"),
	NEXT,
};

/* ---- the daemon ---- */

static const struct schema_field pool[] = {
	FIELD("template", STRING), FIELD("ready", INT),  FIELD("building", INT),
	FIELD("claimed", INT),     FIELD("target", INT), FIELD("hits", INT),
	FIELD("misses", INT),
};

static const struct schema_field pool_list[] = {
	FIELD("items", LIST, .ref = "Pool"),
};

static const struct schema_field alive[] = {
	FIELD("status", STRING, .choices = health),
	FIELD("service", STRING),
	FIELD("version", STRING),
};

static const struct schema_field scaling[] = {
	FIELD("enabled", BOOL),
	FIELD("targetUtilization", INT, .help = "per cent of those waiting that a peak takes"),
	FIELD("scaleDownDelay", NUMBER, .help = "seconds of less demand before it shrinks"),
};

static const struct schema_field warm_pool[] = {
	FIELD("id", STRING),
	FIELD("name", STRING),
	FIELD("runtime", STRING),
	FIELD("template", STRING, .help = "the same"),
	FIELD("minSize", INT),
	FIELD("maxSize", INT),
	FIELD("securityLevel", STRING),
	FIELD("preloadPackages", STRINGS),
	FIELD("autoScaling", OBJECT, .ref = "AutoScaling"),
	FIELD("createdAt", TIME),
	FIELD("updatedAt", TIME),
};

static const struct schema_field warm_pool_list[] = {
	FIELD("items", LIST, .ref = "WarmPool"),
	NEXT,
};

static const struct schema_field warm_pool_status[] = {
	FIELD("ready", INT, .help = "boxes that wait"),
	FIELD("building", INT),
	FIELD("claimed", INT, .help = "boxes that are in use"),
	FIELD("target", INT, .help = "how many are to wait, by the claims of late"),
	FIELD("hits", INT),
	FIELD("misses", INT),
	FIELD("hitRate", NUMBER | NIL, .help = "null before the first claim"),
	FIELD("timeToReadyMs", NUMBER, .help = "to make a box, lately"),
	FIELD("availablePods", INT, .help = "ready, as others call it"),
	FIELD("assignedPods", INT, .help = "claimed"),
	FIELD("pendingPods", INT, .help = "building"),
};

static const struct schema_field snapshot[] = {
	FIELD("id", STRING),
	FIELD("name", STRING | NIL),
	FIELD("owner", STRING),
	FIELD("sandboxId", STRING, .help = "what it was taken of"),
	FIELD("template", STRING),
	FIELD("size", INT, .help = "bytes on disk, of what was new"),
	FIELD("files", INT, .help = "files and directories, of what was new"),
	FIELD("skipped", INT, .help = "what no snapshot can hold: sockets, devices"),
	FIELD("layers", INT, .help = "that a sandbox from it has below what it writes"),
	FIELD("metadata", MAP, .help = "of the sandbox then"),
	FIELD("createdAt", TIME),
};

static const struct schema_field snapshot_list[] = {
	FIELD("items", LIST, .ref = "Snapshot"),
	NEXT,
};

static const char *const volume_states[] = { "making", "ready", "leaving", NULL };

static const struct schema_field volume[] = {
	FIELD("id", STRING),
	FIELD("name", STRING),
	FIELD("owner", STRING),
	FIELD("size", INT, .help = "bytes"),
	FIELD("status", STRING, .choices = volume_states),
	FIELD("createdAt", TIME),
};

static const struct schema_field volume_list[] = {
	FIELD("items", LIST, .ref = "Volume"),
	NEXT,
};

static const struct schema_field template[] = {
	FIELD("id", STRING),
	FIELD("name", STRING, .help = "of one's own: with its version"),
	FIELD("description", STRING),
	FIELD("builtIn", BOOL),
	FIELD("from", STRING, .help = "the built-in template below it"),
	FIELD("resources", OBJECT | NIL, .ref = "Resources", .help = "null: as configured"),
	FIELD("envNames", STRINGS),
	FIELD("layers", INT, .help = "of files that it brings"),
	FIELD("createdAt", TIME | NIL),
};

static const struct schema_field template_list[] = {
	FIELD("items", LIST, .ref = "Template"),
	NEXT,
};

static const struct schema_field runtime_list[] = {
	FIELD("items", LIST, .ref = "Template"),
};

static const struct schema_field forks[] = {
	FIELD("items", LIST, .ref = "Sandbox"),
};

static const struct schema_field ready[] = {
	FIELD("status", STRING, .choices = health),
	FIELD("version", STRING, .optional = 1),
	FIELD("checks", MAP, .help = "ok, or what is wrong with each part"),
};

/* ---- errors ---- */

/* ---- packages ---- */

static const struct schema_field package[] = {
	FIELD("executionId", STRING), FIELD("request", OBJECT, .help = "manager and packages"),
	FIELD("running", BOOL),       FIELD("installed", BOOL, .help = "it has ended well"),
	FIELD("startedAt", TIME),
};

static const struct schema_field package_list[] = {
	FIELD("items", LIST, .ref = "Package"),
};

/* ---- ports ---- */

#define PORT_FIELDS                                                                  \
	FIELD("port", INT), FIELD("public", BOOL, .help = "anybody may reach it"),   \
		FIELD("wake", BOOL, .help = "a request resumes the paused sandbox"), \
		FIELD("url", STRING, .help = "where it is reached"), FIELD("createdAt", TIME)

static const struct schema_field port[] = { PORT_FIELDS };

static const struct schema_field exposed_port[] = {
	PORT_FIELDS,
	FIELD("token", STRING, .help = "for X-Holt-Port-Token; shown only here"),
};

static const struct schema_field port_list[] = {
	FIELD("items", LIST, .ref = "Port"),
};

static const struct schema_field problem[] = {
	FIELD("code", STRING, .choices = problem_codes),
	FIELD("message", STRING, .help = "for people"),
	FIELD("details", OBJECT | NIL,
	      .help = "field: which one is to blame, by its path; or quota, limit and used"),
};

static const struct schema_field error[] = {
	FIELD("error", OBJECT, .ref = "Problem"),
};

static const struct schema schemas[] = {
	SCHEMA("Error", "What every error answers, whatever its status", error),
	SCHEMA("Problem", "What went wrong", problem),
	SCHEMA("Sandbox", "A sandbox, live or ended", sandbox),
	SCHEMA("SandboxList", "A page of sandboxes, newest first", sandbox_list),
	SCHEMA("SandboxStatus", "The state alone", sandbox_status),
	SCHEMA("Resources", "What a sandbox may use", resources),
	SCHEMA("Timings", "Where the time of its making went, in milliseconds", timings),
	SCHEMA("Execution", "Something that runs, or ran, in a sandbox", execution),
	SCHEMA("ExecutionList", "A page of executions, newest first", execution_list),
	SCHEMA("Output", "Output from a position on", output),
	SCHEMA("OutputChunk", "A piece of output", chunk),
	SCHEMA("Input", "What was taken for a standard input", input),
	SCHEMA("Context", "An interpreter, or a shell, that keeps its state", context),
	SCHEMA("ContextList", "All contexts of a sandbox, oldest first", context_list),
	SCHEMA("ContextRun", "What became of code in a context", context_run),
	SCHEMA("ContextResult", "A value that was shown, in one or more forms", context_result),
	SCHEMA("ContextError", "What was raised", context_error),
	SCHEMA("File", "An entry of a directory", file),
	SCHEMA("FileList", "Entries, sorted by path", file_list),
	SCHEMA("Unpacked", "What an archive brought", unpacked),
	SCHEMA("GrepLine", "A line that matches, or one around it", found_line),
	SCHEMA("GrepResult", "Lines that match, file by file", grep_result),
	SCHEMA("ReplacedFile", "A file that was changed", replaced_file),
	SCHEMA("SkippedFile", "A file that was left alone", skipped_file),
	SCHEMA("ReplaceResult", "What a replace has changed", replace_result),
	SCHEMA("BundleFile", "A file of several, or why it is not there", bundle_file),
	SCHEMA("Bundle", "Several files", bundle),
	SCHEMA("SandboxUsage", "What a sandbox takes just now", sandbox_usage),
	SCHEMA("ProfileSetting", "One thing that a profile settles", profile_setting),
	SCHEMA("Profile", "What boxes of it are protected by", profile),
	SCHEMA("ProfileList", "The security profiles", profile_list),
	SCHEMA("Package", "A call that installed packages", package),
	SCHEMA("PackageList", "Installations among the sandbox's last executions", package_list),
	SCHEMA("Port", "A port that is exposed", port),
	SCHEMA("ExposedPort", "A port that was just exposed", exposed_port),
	SCHEMA("PortList", "The exposed ports, by number", port_list),
	SCHEMA("Usage", "What was used", schema_usage),
	SCHEMA("UsagePage", "A page of sums", schema_usage_page),
	SCHEMA("Event", "Something that happened", schema_event),
	SCHEMA("EventPage", "A page of a log, oldest first", schema_event_page),
	SCHEMA("AuditLine", "A call that changed something, or a refusal", schema_audit_line),
	SCHEMA("AuditHead", "The end of the audit log", schema_audit_head),
	SCHEMA("AuditPage", "A page of the audit log, oldest first", schema_audit_page),
	SCHEMA("Key", "An API key, without the key", key),
	SCHEMA("KeyList", "A page of keys, newest first", key_list),
	SCHEMA("User", "Who is asking", user),
	SCHEMA("UserRecord", "A user", user_record),
	SCHEMA("UserList", "A page of users, newest first", user_list),
	SCHEMA("Quota", "What a user may have at a time; null: no limit", quota),
	SCHEMA("Use", "What a user has", use),
	SCHEMA("Rates", "How fast each key may ask; null: no limit", rates),
	SCHEMA("Pool", "Finished boxes of one template", pool),
	SCHEMA("PoolList", "The warm pools", pool_list),
	SCHEMA("AutoScaling", "How a warm pool follows the demand", scaling),
	SCHEMA("WarmPool", "How many finished boxes of a template wait", warm_pool),
	SCHEMA("WarmPoolList", "A page of warm pools, newest first", warm_pool_list),
	SCHEMA("WarmPoolStatus", "How a warm pool does", warm_pool_status),
	SCHEMA("Snapshot", "What a sandbox had written", snapshot),
	SCHEMA("SnapshotList", "A page of snapshots, newest first", snapshot_list),
	SCHEMA("Volume", "A file system that outlives sandboxes", volume),
	SCHEMA("VolumeList", "A page of volumes, newest first", volume_list),
	SCHEMA("Template", "What sandboxes are made of", template),
	SCHEMA("TemplateList", "A page of templates, newest first", template_list),
	SCHEMA("RuntimeList", "The built-in templates", runtime_list),
	SCHEMA("Forks", "The new sandboxes, all of them running", forks),
	SCHEMA("Health", "The process answers", alive),
	SCHEMA("Ready", "Whether there is work to be had", ready),
};

const struct schema *schemas_table(size_t *ret_count)
{
	*ret_count = ARRAY_LEN(schemas);
	return schemas;
}

const struct schema *schema_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(schemas); i++)
		if (strcmp(schemas[i].name, name) == 0)
			return &schemas[i];
	return NULL;
}
