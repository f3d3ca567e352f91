#include "sandbox/event_kinds.h"

#include <string.h>

#include "sandbox/events.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static const struct event_kind table[] = {
	{ "sandbox.created", "asked for: name, template, status" },
	{ "sandbox.running", "its box is ready" },
	{ "sandbox.paused", "frozen" },
	{ "sandbox.resumed", "goes on" },
	{ "sandbox.suspended", "has no box, its files are kept" },
	{ "sandbox.started", "has a box again" },
	{ "sandbox.expiring",
	  "its time is over in a minute, or the last tenth of it has begun: expiresAt, "
	  "onTimeout" },
	{ "sandbox.stopped", "ended; reason" },
	{ "sandbox.preload_failed", "what its template preloads is not there; reason" },
	{ "sandbox.failed", "could not be made, or was lost; reason" },
	{ "execution.started", "sandbox" },
	{ "execution.ended", "sandbox, result, exitCode, signal, wallMs, cpuMs" },
	{ "context.created", "its interpreter runs: sandbox, name, language" },
	{ "context.restarted", "runs anew, its state is lost" },
	{ "context.failed", "its interpreter is gone, or could not be started; reason" },
	{ "context.deleted", "ended by a caller" },
	{ "port.opened", "sandbox, port, public" },
	{ "port.closed", "sandbox, port" },
	{ "snapshot.created", "name" },
	{ "snapshot.updated", "another has taken its place: name" },
	{ "snapshot.deleted", "name" },
	{ "volume.created", "name" },
	{ "volume.deleted", "name" },
	{ "template.created", "a new version: name" },
	{ "template.updated", "name" },
	{ "template.deleted", "name" },
	{ "template.built", "a build has made a version" },
	{ "template.build_failed", "a build could not be finished" },
	{ "pool.created", "name; for admins" },
	{ "pool.updated", "name; for admins" },
	{ "pool.deleted", "name; for admins" },
	{ "key.created", "name, role, and sandbox of a token" },
	{ "key.revoked", "" },
	{ "user.created", "role, status" },
	{ "user.updated", "role, status" },
	{ "user.deleted", "" },
	{ "quota.exceeded",
	  "something was refused for it: quota, limit, used; at most one a minute" },
	{ "tool.called", "a tool of an MCP server: server, tool, sandbox, outcome, tookMs" },
	{ "approval.wanted", "a call waits for somebody: server, tool, method, sandbox" },
	{ "approval.allowed", "somebody has said yes: the same, and by" },
	{ "approval.denied", "somebody has said no" },
	{ "approval.expired", "nobody has said anything: as good as a no" },
	{ "mcp.server_ready", "an MCP server is connected: server; for admins" },
	{ "mcp.server_lost", "an MCP server is gone, and will be tried again: reason; for admins" },
	{ "webhook.created", "name" },
	{ "webhook.updated", "name" },
	{ "webhook.deleted", "name" },
	{ "webhook.disabled", "its receiver has answered 410, and gets nothing more: name" },
	{ "webhook.ping", "a test, sent when asked for and to one webhook only" },
	{ SECURITY_PREFIX "auth_failed", "no key, or one that is not good: peer, method, route" },
	{ SECURITY_PREFIX "denied", "a key that may not do that, or an object of another owner" },
	{ SECURITY_PREFIX "limited", "more requests than allowed" },
	{ SECURITY_PREFIX "egress_refused",
	  "a program asked for what its way out does not lead to" },
	{ SECURITY_PREFIX "oom_killed", "an execution was ended for its memory: sandbox" },
	{ SECURITY_PREFIX "timed_out", "an execution was ended for its time: sandbox" },
	{ SECURITY_PREFIX "seccomp_killed", "an execution was ended for a system call: sandbox" },
	{ SECURITY_PREFIX "audit_tampered", "the audit log is not as it was written" },
};

const struct event_kind *event_kinds(size_t *ret_count)
{
	*ret_count = LEN(table);
	return table;
}

bool event_kind_is_known(const char *kind)
{
	for (size_t i = 0; i < LEN(table); i++)
		if (strcmp(table[i].kind, kind) == 0)
			return true;
	return false;
}

bool event_pattern_matches(const char *pattern, const char *kind)
{
	size_t n = strlen(pattern);

	if (n > 0 && pattern[n - 1] == '*')
		return strncmp(pattern, kind, n - 1) == 0;
	return n == 0 || strcmp(pattern, kind) == 0;
}

static bool is_security(const char *kind)
{
	return strncmp(kind, SECURITY_PREFIX, strlen(SECURITY_PREFIX)) == 0;
}

bool event_pattern_is_valid(const char *pattern)
{
	size_t n = strlen(pattern);
	const char *star = strchr(pattern, '*');

	if (n == 0 || n > EVENT_KIND_MAX)
		return false;
	if (star && (star != pattern + n - 1 || (n > 1 && star[-1] != '.')))
		return false;
	for (size_t i = 0; i < LEN(table); i++)
		if (!is_security(table[i].kind) && event_pattern_matches(pattern, table[i].kind))
			return true;
	return false;
}
