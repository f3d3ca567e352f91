/* What runs in a sandbox: executions, contexts, installations. */
#include "api/schemas_impl.h"

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

static const char *const languages[] = { "python", "javascript", "typescript", "bash",
					 "r",      "java",       NULL };

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

static const struct schema_field package[] = {
	FIELD("executionId", STRING), FIELD("request", OBJECT, .help = "manager and packages"),
	FIELD("running", BOOL),       FIELD("installed", BOOL, .help = "it has ended well"),
	FIELD("startedAt", TIME),
};

static const struct schema_field package_list[] = {
	FIELD("items", LIST, .ref = "Package"),
	NEXT,
};

static const struct schema list[] = {
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
	SCHEMA("Package", "A call that installed packages", package),
	SCHEMA("PackageList", "A page of installations, newest first", package_list),
};

const struct schema_group schemas_runs = { list, ARRAY_LEN(list) };
