#include "api/routes.h"

#include "api/bodies.h"
#include "api/handlers.h"
#include "api/queries.h"
#include "api/search_bodies.h"
#include "api/sessions.h"
#include "api/tools.h"
#include "auth/scope.h"

#define V1 "/api/v1"
#define BOX ROUTES_BOX
#define EXEC BOX "/executions/:eid"
#define CONTEXT BOX "/contexts/:cid"
#define SESSION BOX "/sessions/:cid"

#define SESSIONS "/api/sessions"
#define HOOK V1 "/webhooks/:wid"

#define SSE "text/event-stream"
#define BYTES "application/octet-stream"
#define TAR "application/x-tar"

/* A row is a line or two: what is asked for, who may, who answers with what. */
#define ROW(method, pattern, scope, flags, handle_, ...)                                   \
	{                                                                                  \
		.route = { method, pattern, scope, flags }, .handle = handle_, __VA_ARGS__ \
	}

static const char about_expose[] =
	"A port of a sandbox is closed until it is exposed. The token is shown once; exposing the "
	"port again makes another, and ends what the old one opened.";
static const char about_build[] =
	"Each step that changes files runs in a sandbox of its own, and what it has written is "
	"kept: "
	"the same step on top of the same is not done again. The build goes on in the background; "
	"when it is ready, there is a new version of the template.";
static const char about_files[] =
	"A tar archive, by the SHA-256 of its bytes: steps of builds copy from it. It counts as "
	"the owner's disk, and goes when no build has needed it for a day.";
static const char about_packages[] =
	"Runs pip, npm, cargo or go in the sandbox, with a way out to the registries that are "
	"configured for it while it runs, and to nothing else.";
static const char about_webhooks[] =
	"Each event that matches is sent as a POST with the event's JSON (and `missed`, when "
	"events "
	"before it were lost), at least once and in order. Holt-Event has its kind, Holt-Delivery "
	"a "
	"name that is the same for all attempts, Holt-Timestamp seconds since 1970, Holt-Signature "
	"`v1=` and the hex HMAC-SHA-256 of \"TIMESTAMP.BODY\" under the secret. Any 2xx is taken "
	"as "
	"received; 410 disables the webhook; all else is tried again for about a day, after 1 s, "
	"2 s, 4 s ... 1 h.";
static const char about_session_sandbox[] =
	"Waits until the sandbox is ready: any number of calls at once get the same one. One that "
	"has ended is made anew, and `created` says so. When the time is over: 503 with "
	"Retry-After, and it goes on being made.";
static const char about_tools[] =
	"The operator's policy holds: a tool that is to be asked about waits for an approval of "
	"the "
	"caller's own or of an admin. Credentials stay with the daemon. 502 and 504 say that the "
	"server did not answer as it should; a tool that fails is no error of this call, but says "
	"so "
	"in isError.";
static const char about_login[] =
	"OAuth, with PKCE: the answer's address is opened in a browser on the machine whose "
	"loopback address was given, and what that comes back with goes to login/finish within ten "
	"minutes. Tokens are kept by the daemon and shown to nobody.";
static const char about_proxy[] =
	"Passes the request to what listens on the port inside the sandbox, and its answer back; a "
	"WebSocket too. Wants an API key, the port's token in X-Holt-Port-Token, or a public port. "
	"502 and 504 say that the program inside did not answer as it should.";

static const char about_tcp[] =
	"A connection to what listens on the port inside the sandbox, whatever it speaks: binary "
	"messages are its bytes both ways, an empty one says that its side sends no more. Wants "
	"what "
	"a request to the port wants.";

/* What is behind it answers with what it likes. */
#define PORT BOX "/ports/:port"
#define PROXY(method)                                                            \
	ROW(method, PORT "/*path", SCOPE_PORT, ROUTE_PORT, api_port_proxy, NULL, \
	    "Ask what listens on a port", NULL, .media = "*/*", .takes = "*/*",  \
	    .good = { 200, 308 }, .bad = { 502, 504 }, .about = about_proxy)

static const struct api_route routes[] = {
	ROW("GET", "/healthz", SCOPE_NONE, ROUTE_PUBLIC, api_healthz, NULL, "Alive", "Health"),
	ROW("GET", "/readyz", SCOPE_NONE, ROUTE_PUBLIC, api_readyz, NULL, "Ready to work", "Ready",
	    .good = { 200, 503 }),
	ROW("GET", "/health", SCOPE_NONE, ROUTE_PUBLIC, api_health, NULL,
	    "Ready to work, and which version", "Ready", .good = { 200, 503 }),
	ROW("GET", "/metrics", SCOPE_METRICS, ROUTE_METRICS, api_metrics, NULL,
	    "Prometheus metrics", NULL, .media = "text/plain; version=0.0.4"),
	ROW("GET", V1 "/openapi.json", SCOPE_NONE, ROUTE_PUBLIC, api_openapi, NULL,
	    "This contract, as OpenAPI 3.1", NULL, .media = "application/json"),
	ROW("POST", V1 "/sandboxes", SCOPE_SANDBOX_WRITE, 0, api_sandbox_create, &body_sandbox,
	    "Make a sandbox", "Sandbox", .good = { 201, 200 }, .rate = ROUTE_RATE_CREATE),
	ROW("GET", V1 "/sandboxes", SCOPE_SANDBOX_READ, 0, api_sandbox_list, NULL, "List sandboxes",
	    "SandboxList", .query = query_sandboxes),
	ROW("GET", BOX, SCOPE_SANDBOX_READ, 0, api_sandbox_get, NULL, "One sandbox", "Sandbox"),
	ROW("GET", BOX "/status", SCOPE_SANDBOX_READ, 0, api_sandbox_status, NULL,
	    "One sandbox's state", "SandboxStatus"),
	ROW("GET", BOX "/usage", SCOPE_SANDBOX_READ, 0, api_sandbox_usage, NULL,
	    "What a sandbox takes just now", "SandboxUsage"),
	ROW("PATCH", BOX, SCOPE_SANDBOX_WRITE, 0, api_sandbox_patch, &body_patch,
	    "Change a sandbox's time to live or metadata", "Sandbox"),
	ROW("DELETE", BOX, SCOPE_SANDBOX_WRITE, 0, api_sandbox_delete, NULL, "End a sandbox", NULL),
	ROW("POST", BOX "/pause", SCOPE_SANDBOX_WRITE, 0, api_sandbox_pause, NULL,
	    "Freeze a sandbox", "Sandbox"),
	ROW("POST", BOX "/resume", SCOPE_SANDBOX_WRITE, 0, api_sandbox_resume, NULL,
	    "Let a frozen sandbox go on", "Sandbox"),
	ROW("POST", BOX "/stop", SCOPE_SANDBOX_WRITE, 0, api_sandbox_stop, NULL,
	    "End a sandbox's box, and keep its files", "Sandbox"),
	ROW("POST", BOX "/start", SCOPE_SANDBOX_WRITE, 0, api_sandbox_start, NULL,
	    "Give a stopped sandbox a box again", "Sandbox"),
	ROW("POST", BOX "/snapshots", SCOPE_SANDBOX_WRITE, 0, api_snapshot_create, &body_snapshot,
	    "Keep what a sandbox has written", "Snapshot", .good = { 201 }),
	ROW("POST", BOX "/fork", SCOPE_SANDBOX_WRITE, 0, api_sandbox_fork, &body_fork,
	    "Make sandboxes with the same files", "Forks", .good = { 201 },
	    .rate = ROUTE_RATE_CREATE),
	ROW("GET", V1 "/snapshots", SCOPE_SANDBOX_READ, 0, api_snapshot_list, NULL,
	    "List snapshots", "SnapshotList", .query = query_page),
	ROW("GET", V1 "/snapshots/:sid", SCOPE_SANDBOX_READ, 0, api_snapshot_get, NULL,
	    "One snapshot", "Snapshot"),
	ROW("DELETE", V1 "/snapshots/:sid", SCOPE_SANDBOX_WRITE, 0, api_snapshot_delete, NULL,
	    "Forget a snapshot", NULL),
	ROW("POST", V1 "/templates", SCOPE_TEMPLATE, 0, api_template_create, &body_template,
	    "Make a new version of a template", "Template", .good = { 201 }),
	ROW("GET", V1 "/templates", SCOPE_SANDBOX_READ, 0, api_template_list, NULL,
	    "List one's own templates", "TemplateList", .query = query_templates),
	ROW("GET", V1 "/templates/:name", SCOPE_SANDBOX_READ, 0, api_template_get, NULL,
	    "One template, built in or one's own", "Template"),
	ROW("DELETE", V1 "/templates/:name", SCOPE_TEMPLATE, 0, api_template_delete, NULL,
	    "Remove a version of a template", NULL),
	ROW("GET", V1 "/templates/:name/aliases", SCOPE_SANDBOX_READ, 0, api_alias_list, NULL,
	    "Other names of a template's versions", "AliasList"),
	ROW("PUT", V1 "/templates/:name/aliases/:alias", SCOPE_TEMPLATE, 0, api_alias_put,
	    &body_alias, "Let an alias stand for a version", "Alias"),
	ROW("DELETE", V1 "/templates/:name/aliases/:alias", SCOPE_TEMPLATE, 0, api_alias_delete,
	    NULL, "Remove an alias", NULL),
	ROW("POST", V1 "/templates/builds", SCOPE_TEMPLATE, 0, api_build_create, &body_build,
	    "Build a template by steps", "Build", .good = { 202 }, .rate = ROUTE_RATE_CREATE,
	    .about = about_build),
	ROW("GET", V1 "/templates/builds", SCOPE_TEMPLATE, 0, api_build_list, NULL,
	    "List one's builds", "BuildList", .query = query_page),
	ROW("GET", V1 "/templates/builds/:bid", SCOPE_TEMPLATE, 0, api_build_get, NULL,
	    "One build, with the end of each step's output", "Build"),
	ROW("GET", V1 "/templates/builds/:bid/events", SCOPE_TEMPLATE, 0, api_build_events, NULL,
	    "Follow a build from its beginning to its end", NULL, .media = SSE),
	ROW("DELETE", V1 "/templates/builds/:bid", SCOPE_TEMPLATE, 0, api_build_delete, NULL,
	    "Cancel a build, or forget one that is over", NULL, .good = { 204 }),
	ROW("DELETE", V1 "/templates/cache", SCOPE_TEMPLATE, 0, api_build_cache_delete, NULL,
	    "Forget what steps of one's builds have made", NULL),
	ROW("GET", V1 "/templates/files/:hash", SCOPE_TEMPLATE, 0, api_build_file_get, NULL,
	    "Whether an archive to copy from is there", "TemplateFile"),
	ROW("PUT", V1 "/templates/files/:hash", SCOPE_TEMPLATE, 0, api_build_file_put, NULL,
	    "Send an archive to copy from", "TemplateFile", .takes = TAR, .good = { 201 },
	    .about = about_files),
	ROW("GET", V1 "/runtimes", SCOPE_SANDBOX_READ, 0, api_runtime_list, NULL,
	    "The built-in templates", "RuntimeList"),
	ROW("GET", V1 "/runtimes/:name", SCOPE_SANDBOX_READ, 0, api_runtime_get, NULL,
	    "One built-in template", "Template"),
	ROW("POST", V1 "/volumes", SCOPE_TEMPLATE, 0, api_volume_create, &body_volume,
	    "Make a volume", "Volume", .good = { 201 }),
	ROW("GET", V1 "/volumes", SCOPE_SANDBOX_READ, 0, api_volume_list, NULL, "List volumes",
	    "VolumeList", .query = query_page),
	ROW("GET", V1 "/volumes/:vid", SCOPE_SANDBOX_READ, 0, api_volume_get, NULL, "One volume",
	    "Volume"),
	ROW("DELETE", V1 "/volumes/:vid", SCOPE_TEMPLATE, 0, api_volume_delete, NULL,
	    "Remove a volume and what it holds", NULL),
	ROW("POST", BOX "/execute", SCOPE_EXEC, 0, api_exec_start, &body_execute,
	    "Run code or a command", "Execution", .query = query_encoding, .media = SSE,
	    .good = { 200, 202 }, .rate = ROUTE_RATE_EXEC),
	ROW("POST", BOX "/executions", SCOPE_EXEC, 0, api_exec_start, &body_execution,
	    "Start an execution", "Execution", .query = query_encoding, .media = SSE,
	    .good = { 200, 202 }, .rate = ROUTE_RATE_EXEC),
	ROW("GET", BOX "/executions", SCOPE_SANDBOX_READ, 0, api_exec_list, NULL, "List executions",
	    "ExecutionList", .query = query_page),
	ROW("GET", EXEC, SCOPE_SANDBOX_READ, 0, api_exec_get, NULL, "One execution", "Execution",
	    .query = query_encoding),
	ROW("DELETE", EXEC, SCOPE_EXEC, 0, api_exec_cancel, NULL, "Cancel an execution", NULL),
	ROW("GET", EXEC "/output", SCOPE_SANDBOX_READ, 0, api_exec_output, NULL,
	    "Output from a position on, as JSON or as events", "Output", .query = query_output,
	    .media = SSE),
	ROW("POST", EXEC "/stdin", SCOPE_EXEC, 0, api_exec_stdin, NULL,
	    "Bytes for its standard input", "Input", .query = query_eof, .takes = BYTES),
	ROW("POST", EXEC "/signal", SCOPE_EXEC, 0, api_exec_signal, &body_signal, "Send a signal",
	    NULL),
	ROW("POST", EXEC "/cancel", SCOPE_EXEC, 0, api_exec_cancel, NULL, "Cancel an execution",
	    NULL),
	ROW("GET", EXEC "/wait", SCOPE_SANDBOX_READ, 0, api_exec_wait, NULL, "Wait for its end",
	    "Execution", .query = query_wait, .good = { 200, 202 }),
	ROW("POST", EXEC "/resize", SCOPE_EXEC, 0, api_exec_resize, &body_resize,
	    "Resize its terminal", NULL),
	ROW("POST", BOX "/contexts", SCOPE_EXEC, 0, api_context_create, &body_context,
	    "Make a stateful interpreter", "Context", .good = { 201 }),
	ROW("GET", BOX "/contexts", SCOPE_SANDBOX_READ, 0, api_context_list, NULL, "List contexts",
	    "ContextList"),
	ROW("GET", CONTEXT, SCOPE_SANDBOX_READ, 0, api_context_get, NULL, "One context", "Context"),
	ROW("DELETE", CONTEXT, SCOPE_EXEC, 0, api_context_delete, NULL, "End a context", NULL),
	ROW("POST", CONTEXT "/run", SCOPE_EXEC, 0, api_context_run, &body_run,
	    "Run code in a context", "ContextRun", .media = SSE, .rate = ROUTE_RATE_EXEC),
	ROW("POST", CONTEXT "/interrupt", SCOPE_EXEC, 0, api_context_interrupt, NULL,
	    "Interrupt what runs; the state is kept", NULL),
	ROW("POST", CONTEXT "/restart", SCOPE_EXEC, 0, api_context_restart, NULL,
	    "Begin anew; the state is lost", "Context"),
	ROW("POST", BOX "/sessions", SCOPE_EXEC, 0, api_session_create, &body_session,
	    "Make a shell that keeps its state", "Context", .good = { 201 }),
	ROW("GET", BOX "/sessions", SCOPE_SANDBOX_READ, 0, api_session_list, NULL, "List sessions",
	    "ContextList"),
	ROW("GET", SESSION, SCOPE_SANDBOX_READ, 0, api_context_get, NULL, "One session", "Context"),
	ROW("DELETE", SESSION, SCOPE_EXEC, 0, api_context_delete, NULL, "End a session", NULL),
	ROW("POST", SESSION "/run", SCOPE_EXEC, 0, api_context_run, &body_session_run,
	    "Run a command in a session", "ContextRun", .media = SSE, .rate = ROUTE_RATE_EXEC),
	ROW("POST", SESSION "/interrupt", SCOPE_EXEC, 0, api_context_interrupt, NULL,
	    "Interrupt the command that runs", NULL),
	ROW("GET", BOX "/files", SCOPE_FILE_READ, 0, api_file_list, NULL, "List files", "FileList",
	    .query = query_files),
	ROW("GET", BOX "/files/*path", SCOPE_FILE_READ, ROUTE_SIGNED, api_file_get, NULL,
	    "Read a file, or a part of it", "File", .query = query_file_get, .media = BYTES,
	    .good = { 200, 206, 304 }, .bad = { 412, 416 }),
	ROW("PUT", BOX "/files/*path", SCOPE_FILE_WRITE, ROUTE_SIGNED, api_file_put, NULL,
	    "Write a file", "File", .query = query_file_put, .takes = BYTES, .good = { 201, 200 },
	    .bad = { 412 }),
	ROW("POST", BOX "/files/*path", SCOPE_FILE_WRITE, 0, api_file_change, &body_file,
	    "Make a directory, or move something", "File", .query = query_user,
	    .good = { 201, 200 }),
	ROW("DELETE", BOX "/files/*path", SCOPE_FILE_WRITE, 0, api_file_delete, NULL,
	    "Remove a file or directory", NULL, .query = query_file_remove),
	ROW("GET", BOX "/watch", SCOPE_FILE_READ, 0, api_watch, NULL,
	    "What happens to files, as events", NULL, .query = query_watch, .media = SSE),
	ROW("GET", BOX "/archive", SCOPE_FILE_READ, 0, api_archive_get, NULL,
	    "A directory as a tar stream", NULL, .query = query_tree, .media = TAR),
	ROW("PUT", BOX "/archive", SCOPE_FILE_WRITE, 0, api_archive_put, NULL,
	    "Unpack a tar stream", "Unpacked", .query = query_tree, .takes = TAR),
	ROW("POST", BOX "/find", SCOPE_FILE_READ, 0, api_find, &body_find,
	    "Files whose name, type, size or time fit", "FileList", .query = query_user),
	ROW("POST", BOX "/grep", SCOPE_FILE_READ, 0, api_grep, &body_grep,
	    "Lines of files that match", "GrepResult", .query = query_user),
	ROW("POST", BOX "/replace", SCOPE_FILE_WRITE, 0, api_replace, &body_replace,
	    "Another text for what matches, in one or many files", "ReplaceResult",
	    .query = query_user),
	ROW("POST", BOX "/bundle", SCOPE_FILE_READ, 0, api_bundle_get, &body_bundle_get,
	    "Read several files", "Bundle", .query = query_user),
	ROW("PUT", BOX "/bundle", SCOPE_FILE_WRITE, 0, api_bundle_put, &body_bundle,
	    "Write several files", "Unpacked", .query = query_user),
	ROW("GET", BOX "/pty", SCOPE_EXEC, ROUTE_SOCKET, api_pty, NULL, "A terminal", NULL,
	    .query = query_pty, .rate = ROUTE_RATE_EXEC),
	ROW("GET", BOX "/stream", SCOPE_EXEC, ROUTE_SOCKET, api_stream, NULL,
	    "Executions over a WebSocket", NULL, .rate = ROUTE_RATE_EXEC),
	ROW("POST", BOX "/packages", SCOPE_EXEC, 0, api_packages_install, &body_packages,
	    "Install packages", "Execution", .query = query_encoding, .media = SSE, .bad = { 409 },
	    .about = about_packages, .rate = ROUTE_RATE_EXEC),
	ROW("GET", BOX "/packages", SCOPE_SANDBOX_READ, 0, api_packages_list, NULL,
	    "List what was installed", "PackageList", .query = query_page),
	ROW("POST", BOX "/ports", SCOPE_PORT, 0, api_port_expose, &body_port, "Expose a port",
	    "ExposedPort", .good = { 201 }, .about = about_expose),
	ROW("GET", BOX "/ports", SCOPE_PORT, 0, api_port_list, NULL,
	    "List exposed ports, and those that listen", "PortList"),
	ROW("GET", PORT, SCOPE_PORT, 0, api_port_get, NULL, "One exposed port", "Port"),
	ROW("DELETE", PORT, SCOPE_PORT, 0, api_port_close, NULL, "Close a port", NULL),
	ROW("GET", BOX "/tcp/:port", SCOPE_PORT, ROUTE_SOCKET | ROUTE_PORT, api_port_tcp, NULL,
	    "A connection to a port, as bytes", NULL, .bad = { 502, 504 }, .about = about_tcp),
	PROXY("GET"),
	PROXY("HEAD"),
	PROXY("POST"),
	PROXY("PUT"),
	PROXY("PATCH"),
	PROXY("DELETE"),
	PROXY("OPTIONS"),
	ROW("GET", V1 "/usage", SCOPE_USAGE, 0, api_usage, NULL,
	    "What was used, by day, user, key or sandbox", "UsagePage", .query = query_usage,
	    .media = "text/csv"),
	ROW("GET", V1 "/audit", SCOPE_AUDIT, 0, api_audit, NULL, "Who did what: a chained log",
	    "AuditPage", .query = query_journal, .bad = { 404 }),
	ROW("GET", V1 "/events", SCOPE_SANDBOX_READ, 0, api_events, NULL,
	    "What happened, as a page or as a stream", "EventPage", .query = query_events,
	    .media = SSE, .bad = { 404 }),
	ROW("GET", V1 "/security-events", SCOPE_SANDBOX_READ, 0, api_security_events, NULL,
	    "Refusals and kills by limits", "EventPage", .query = query_journal),
	ROW("POST", V1 "/webhooks", SCOPE_WEBHOOK, 0, api_webhook_create, &body_webhook,
	    "Have events sent to a server", "Webhook", .good = { 201 }, .about = about_webhooks),
	ROW("GET", V1 "/webhooks", SCOPE_WEBHOOK, 0, api_webhook_list, NULL, "List webhooks",
	    "WebhookList", .query = query_page),
	ROW("GET", HOOK, SCOPE_WEBHOOK, 0, api_webhook_get, NULL, "One webhook, and how it does",
	    "Webhook"),
	ROW("PATCH", HOOK, SCOPE_WEBHOOK, 0, api_webhook_patch, &body_webhook_patch,
	    "Change a webhook, or its secret", "Webhook"),
	ROW("DELETE", HOOK, SCOPE_WEBHOOK, 0, api_webhook_delete, NULL, "Remove a webhook", NULL),
	ROW("POST", HOOK "/test", SCOPE_WEBHOOK, 0, api_webhook_test, NULL,
	    "Send a webhook.ping, once, and wait for the answer", "WebhookTest"),
	ROW("GET", HOOK "/deliveries", SCOPE_WEBHOOK, 0, api_webhook_deliveries, NULL,
	    "What became of the last events", "WebhookDeliveryList"),
	ROW("POST", V1 "/keys", SCOPE_KEY, 0, api_key_create, &body_key, "Make a key", "Key",
	    .good = { 201 }),
	ROW("GET", V1 "/keys", SCOPE_KEY, 0, api_key_list, NULL, "List keys", "KeyList",
	    .query = query_keys),
	ROW("DELETE", V1 "/keys/:kid", SCOPE_KEY, 0, api_key_revoke, NULL, "Revoke a key", NULL),
	ROW("POST", V1 "/user/apikeys", SCOPE_KEY, ROUTE_OWN, api_key_create, &body_key,
	    "Make a key of your own", "Key", .good = { 201 }),
	ROW("GET", V1 "/user/apikeys", SCOPE_KEY, ROUTE_OWN, api_key_list, NULL,
	    "List your own keys", "KeyList", .query = query_keys),
	ROW("DELETE", V1 "/user/apikeys/:kid", SCOPE_KEY, ROUTE_OWN, api_key_revoke, NULL,
	    "Revoke a key of your own", NULL),
	ROW("POST", BOX "/tokens", SCOPE_KEY, 0, api_token_create, &body_token,
	    "Make a token that is good for this sandbox alone", "Key", .good = { 201 }),
	ROW("GET", BOX "/tokens", SCOPE_KEY, 0, api_key_list, NULL, "List a sandbox's tokens",
	    "KeyList", .query = query_keys),
	ROW("DELETE", BOX "/tokens/:kid", SCOPE_KEY, 0, api_key_revoke, NULL, "Revoke a token",
	    NULL),
	ROW("GET", V1 "/user", SCOPE_NONE, 0, api_user, NULL,
	    "Who the key says you are, what you may have and what you have", "User"),
	ROW("POST", V1 "/users", SCOPE_ADMIN, 0, api_user_create, &body_user, "Make a user",
	    "UserRecord", .good = { 201 }),
	ROW("GET", V1 "/users", SCOPE_ADMIN, 0, api_user_list, NULL, "List users", "UserList",
	    .query = query_keys),
	ROW("GET", V1 "/users/:name", SCOPE_ADMIN, 0, api_user_get, NULL, "One user", "UserRecord"),
	ROW("PATCH", V1 "/users/:name", SCOPE_ADMIN, 0, api_user_patch, &body_user_patch,
	    "Change a user's role, limits or status", "UserRecord"),
	ROW("DELETE", V1 "/users/:name", SCOPE_ADMIN, 0, api_user_delete, NULL,
	    "End a user, with their keys and sandboxes", NULL),
	ROW("POST", V1 "/warmpools", SCOPE_ADMIN, 0, api_warmpool_create, &body_pool,
	    "Keep finished boxes of a template", "WarmPool", .good = { 201 }),
	ROW("GET", V1 "/warmpools", SCOPE_SANDBOX_READ, 0, api_warmpool_list, NULL,
	    "List the warm pools", "WarmPoolList", .query = query_page),
	ROW("GET", V1 "/warmpools/:id", SCOPE_SANDBOX_READ, 0, api_warmpool_get, NULL,
	    "One warm pool", "WarmPool"),
	ROW("PATCH", V1 "/warmpools/:id", SCOPE_ADMIN, 0, api_warmpool_patch, &body_pool_patch,
	    "Change a warm pool", "WarmPool"),
	ROW("DELETE", V1 "/warmpools/:id", SCOPE_ADMIN, 0, api_warmpool_delete, NULL,
	    "Keep no more than is usual", NULL),
	ROW("GET", V1 "/warmpools/:id/status", SCOPE_SANDBOX_READ, 0, api_warmpool_status, NULL,
	    "How a warm pool does", "WarmPoolStatus"),
	ROW("GET", V1 "/skills", SCOPE_FILE_READ, 0, api_skill_list, NULL,
	    "Skills that agents are given", "SkillList"),
	ROW("GET", V1 "/skills/:name", SCOPE_FILE_READ, 0, api_skill_get, NULL,
	    "A skill, with its instructions", "Skill"),
	ROW("GET", V1 "/profiles", SCOPE_NONE, 0, api_profile_list, NULL,
	    "What each security profile sets", "ProfileList"),
	ROW("GET", V1 "/profiles/:name", SCOPE_NONE, 0, api_profile_get, NULL,
	    "What a security profile sets", "Profile"),
	ROW("POST", SESSIONS, SCOPE_SANDBOX_WRITE, 0, api_agent_session_create, &body_agent_session,
	    "Make a session of an agent", "AgentSessionAnswer", .good = { 201 },
	    .query = query_agent_session),
	ROW("GET", SESSIONS, SCOPE_SANDBOX_READ, 0, api_agent_session_list, NULL,
	    "List sessions of agents", "AgentSessionList", .query = query_agent_sessions),
	ROW("GET", SESSIONS "/:sid", SCOPE_SANDBOX_READ, 0, api_agent_session_get, NULL,
	    "One session of an agent", "AgentSessionShown", .query = query_agent_session),
	ROW("DELETE", SESSIONS "/:sid", SCOPE_SANDBOX_WRITE, 0, api_agent_session_delete, NULL,
	    "End a session and its sandbox", "AgentSessionEnded", .query = query_agent_session),
	ROW("POST", SESSIONS "/:sid/sandbox", SCOPE_SANDBOX_WRITE, 0, api_agent_session_provision,
	    &body_session_sandbox, "The session's sandbox, made when there is none",
	    "SessionSandbox", .query = query_session_sandbox, .rate = ROUTE_RATE_CREATE,
	    .about = about_session_sandbox),
	ROW("GET", SESSIONS "/:sid/sandbox", SCOPE_SANDBOX_READ, 0, api_agent_session_sandbox, NULL,
	    "The session's sandbox, as it stands", "SessionSandbox", .query = query_agent_session),
	ROW("GET", V1 "/tools/servers", SCOPE_SANDBOX_READ, 0, api_tool_servers, NULL,
	    "MCP servers that the operator has configured", "ToolServerList"),
	ROW("POST", V1 "/tools/servers/:server/login", SCOPE_ADMIN, 0, api_tool_login, &body_login,
	    "Log in at a server, for all who call its tools", "ToolServerOpened",
	    .bad = { 409, 502, 504 }, .about = about_login),
	ROW("POST", V1 "/tools/servers/:server/login/finish", SCOPE_ADMIN, 0, api_tool_login_finish,
	    &body_login_finish, "The browser is back", NULL, .bad = { 409, 502, 504 }),
	ROW("DELETE", V1 "/tools/servers/:server/login", SCOPE_ADMIN, 0, api_tool_logout, NULL,
	    "Forget a server's tokens", NULL, .bad = { 409 }),
	ROW("GET", V1 "/tools", SCOPE_SANDBOX_READ, 0, api_tool_list, NULL,
	    "Find tools of these servers", "ToolList", .query = query_tools),
	ROW("POST", V1 "/tools/:server/:tool/call", SCOPE_EXEC, 0, api_tool_call, &body_tool_call,
	    "Call a tool", "ToolResult", .bad = { 502, 504 }, .rate = ROUTE_RATE_EXEC,
	    .about = about_tools),
	ROW("GET", V1 "/approvals", SCOPE_SANDBOX_READ, 0, api_approval_list, NULL,
	    "What waits for somebody's approval", "ApprovalList"),
	ROW("POST", V1 "/approvals/:aid", SCOPE_EXEC, 0, api_approval_decide, &body_decision,
	    "Say yes or no", NULL),
	ROW("GET", V1 "/pool", SCOPE_ADMIN, 0, api_pool, NULL, "State of the warm pools",
	    "PoolList"),
};

const struct api_route *routes_table(size_t *ret_count)
{
	*ret_count = sizeof(routes) / sizeof(routes[0]);
	return routes;
}
