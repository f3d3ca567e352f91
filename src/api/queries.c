#include "api/queries.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "api/call.h"
#include "api/problem.h"
#include "api/routes.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/str.h"
#include "mcpc/servers.h"
#include "net/http.h"
#include "sandbox/session.h"

#define PAGE(max_)                                                                    \
	{ "limit", QUERY_U64, 1, max_, NULL, "how many at most" },                    \
	{                                                                             \
		"cursor", QUERY_TEXT, 0, 0, NULL, "the nextCursor of the page before" \
	}
#define USER                                                                                    \
	{                                                                                       \
		"user", QUERY_TEXT, 0, 0, NULL, "whose rights count in the box: name or number" \
	}
#define PATH                                                                                  \
	{                                                                                     \
		"path", QUERY_TEXT, 1, 4095, NULL, "absolute, in the box; default /workspace" \
	}
#define SIGNED                                                                                \
	{ "by", QUERY_TEXT, 20, 20, NULL, "of a signed address: the key that it ends with" }, \
		{ "expires", QUERY_U64, 0, INT64_MAX / 1000, NULL, "of a signed address" },   \
	{                                                                                     \
		"signature", QUERY_TEXT, 0, 128, NULL, "of a signed address: needs no key"    \
	}
#define ENCODING                                                       \
	{                                                              \
		"encoding", QUERY_CHOICE, 0, 0, encodings, "of output" \
	}

static const char *const usage_formats[] = { "json", "csv", NULL };
static const char *const encodings[] = { "text", "base64", NULL };

const struct route_query query_page[] = { PAGE(500), { 0 } };
const struct route_query query_templates[] = {
	{ "builtIn", QUERY_BOOL, 0, 0, NULL, "those that every server has, instead" },
	PAGE(500),
	{ 0 },
};
const struct route_query query_keys[] = { PAGE(1000), { 0 } };
const struct route_query query_sandboxes[] = {
	{ "status", QUERY_TEXT, 0, 0, NULL,
	  "one or more states with commas, or all; default: every live one" },
	{ "template", QUERY_TEXT, 0, 0, NULL, "only those made from it" },
	{ "name", QUERY_TEXT, 0, 0, NULL, "only the one of that name" },
	{ "metadata.", QUERY_TEXT, 0, 0, NULL,
	  "metadata.KEY=VALUE: only those with that metadata; up to 16" },
	{ "usage", QUERY_BOOL, 0, 0, NULL, "with what each takes just now" },
	PAGE(500),
	{ 0 },
};
const struct route_query query_tools[] = {
	{ "query", QUERY_TEXT, 0, 512, NULL, "words to be found in names and descriptions" },
	{ "server", QUERY_TEXT, 0, 64, NULL, "only this one's" },
	{ "detail", QUERY_CHOICE, 0, 0, mcpc_details, "how much of each; summary unless given" },
	{ "limit", QUERY_U64, 1, 1000, NULL, "how many at most; 100 unless given" },
	{ 0 },
};
#define JOURNAL                                                                    \
	{ "owner", QUERY_TEXT, 0, 63, NULL, "only theirs; for admins" },           \
		{ "kind", QUERY_TEXT, 0, 63, NULL, "only of that kind" },          \
		{ "from", QUERY_TEXT, 0, 32, NULL, "time or day, in UTC" },        \
	{                                                                          \
		"to", QUERY_TEXT, 0, 32, NULL, "time or day; not part of the page" \
	}

const struct route_query query_journal[] = { JOURNAL, PAGE(1000), { 0 } };
const struct route_query query_usage[] = {
	{ "from", QUERY_TEXT, 0, 32, NULL, "first day, in UTC" },
	{ "to", QUERY_TEXT, 0, 32, NULL, "day behind the last" },
	{ "group", QUERY_TEXT, 0, 32, NULL, "day (the default), user, key, sandbox; commas" },
	{ "user", QUERY_TEXT, 0, 63, NULL, "only theirs; for admins" },
	{ "key", QUERY_TEXT, 0, 63, NULL, "only of sandboxes that this key made" },
	{ "format", QUERY_CHOICE, 0, 0, usage_formats,
	  "default json; of csv the next page's cursor is in X-Next-Cursor" },
	PAGE(1000),
	{ 0 },
};
const struct route_query query_events[] = {
	JOURNAL,
	{ "sandbox", QUERY_TEXT, 0, 63, NULL,
	  "stream: only what is about it; kind may end with *" },
	{ "lastEventId", QUERY_TEXT, 0, 0, NULL, "as the header Last-Event-ID" },
	PAGE(1000),
	{ 0 },
};
const struct route_query query_encoding[] = { ENCODING, { 0 } };
const struct route_query query_output[] = {
	{ "from", QUERY_U64, 0, UINT64_MAX, NULL, "position; default 0" },
	{ "lastEventId", QUERY_TEXT, 0, 0, NULL, "as the header Last-Event-ID" },
	{ "wait", QUERY_MS, 0, 60000, NULL, "for output, while there is none" },
	ENCODING,
	{ 0 },
};
const struct route_query query_eof[] = {
	{ "eof", QUERY_BOOL, 0, 0, NULL, "close the input behind these bytes" },
	{ 0 },
};
const struct route_query query_wait[] = {
	{ "timeout", QUERY_MS, 0, 600000, NULL, "default 30 s; 0: do not wait" },
	ENCODING,
	{ 0 },
};
const struct route_query query_files[] = {
	PATH,
	{ "depth", QUERY_U64, 1, 64, NULL, "levels of directories; default 1" },
	USER,
	{ 0 },
};
const struct route_query query_file_get[] = {
	{ "stat", QUERY_BOOL, 0, 0, NULL, "the entry as JSON instead of the bytes" },
	USER,
	SIGNED,
	{ 0 },
};
const struct route_query query_file_put[] = {
	{ "mode", QUERY_TEXT, 1, 5, NULL, "octal; default 0644" },
	{ "parents", QUERY_BOOL, 0, 0, NULL, "make missing directories; default 1" },
	USER,
	SIGNED,
	{ 0 },
};
const struct route_query query_file_remove[] = {
	{ "recursive", QUERY_BOOL, 0, 0, NULL, "a directory that is not empty, too" },
	USER,
	{ 0 },
};
const struct route_query query_user[] = { USER, { 0 } };
const struct route_query query_tree[] = { PATH, USER, { 0 } };
const struct route_query query_watch[] = {
	PATH,
	{ "recursive", QUERY_BOOL, 0, 0, NULL, "everything below, too" },
	USER,
	{ 0 },
};
const struct route_query query_pty[] = {
	{ "execution", QUERY_TEXT, 0, 64, NULL, "attach to this terminal" },
	{ "command", QUERY_TEXT, 0, 0, NULL, "of a new terminal; default: a shell" },
	{ "cwd", QUERY_TEXT, 0, 4095, NULL, "of a new terminal" },
	USER,
	{ "rows", QUERY_U64, 1, UINT16_MAX, NULL, "default 24" },
	{ "cols", QUERY_U64, 1, UINT16_MAX, NULL, "default 80" },
	{ "kill", QUERY_BOOL, 0, 0, NULL, "closing the socket ends the terminal" },
	{ 0 },
};

#define USER_ID                                                                                   \
	{                                                                                         \
		"user_id", QUERY_TEXT, 0, 256, NULL, "only of this user of yours; also X-User-ID" \
	}

const struct route_query query_agent_sessions[] = { USER_ID, PAGE(1000), { 0 } };
const struct route_query query_agent_session[] = { USER_ID, { 0 } };
const struct route_query query_session_sandbox[] = {
	USER_ID,
	{ "timeout", QUERY_MS, 0, SESSION_WAIT_MAX_MS, NULL, "how long to wait for it; 5 min" },
	{ 0 },
};

const struct route_query *query_find(const struct api_route *route, const char *name)
{
	const struct route_query *q = route->query;

	for (; q && q->name; q++) {
		size_t n = strlen(q->name);

		if (strcmp(q->name, name) == 0 ||
		    (q->name[n - 1] == '.' && strncmp(q->name, name, n) == 0))
			return q;
	}
	return NULL;
}

static bool is_choice(const struct route_query *q, const char *value)
{
	for (size_t i = 0; q->choices[i]; i++)
		if (strcmp(q->choices[i], value) == 0)
			return true;
	return false;
}

static bool check_text(struct api_call *c, const struct route_query *q, const char *value)
{
	size_t n = strlen(value);

	if (n >= q->min && (q->max == 0 || n <= q->max))
		return true;
	problem_field(c, q->name, "%s: want from %" PRIu64 " to %" PRIu64 " bytes", q->name, q->min,
		      q->max);
	return false;
}

static bool check_choice(struct api_call *c, const struct route_query *q, const char *value)
{
	char list[160] = "";
	size_t n = 0;

	if (is_choice(q, value))
		return true;
	for (size_t i = 0; q->choices[i] && n + strlen(q->choices[i]) + 4 < sizeof(list); i++) {
		const char *before = i == 0 ? "" : q->choices[i + 1] ? ", " : " or ";

		if (str_format(list + n, sizeof(list) - n, "%s%s", before, q->choices[i]) < 0)
			break;
		n += strlen(list + n);
	}
	problem_field(c, q->name, "want %s", list);
	return false;
}

static bool check_value(struct api_call *c, const struct route_query *q, const char *value)
{
	uint64_t number;
	int on;

	switch (q->type) {
	case QUERY_TEXT:
		return check_text(c, q, value);
	case QUERY_CHOICE:
		return check_choice(c, q, value);
	case QUERY_BOOL:
		if (parse_bool(value, &on) == 0)
			return true;
		problem_field(c, q->name, "want true or false");
		return false;
	case QUERY_U64:
		if (parse_u64(value, q->min, q->max, &number) == 0)
			return true;
		problem_field(c, q->name, "want a number from %" PRIu64 " to %" PRIu64, q->min,
			      q->max);
		return false;
	case QUERY_MS:
		if (parse_duration(value, 0, q->max, &number) == 0)
			return true;
		problem_field(c, q->name, "want a time of at most %" PRIu64 "s", q->max / 1000);
		return false;
	}
	return false;
}

bool query_check(struct api_call *c)
{
	struct str rest = str_of(http_query_string(c->http));
	const char *name, *value;
	int r;

	while ((r = http_query_next(c->http, &rest, &name, &value)) > 0) {
		const struct route_query *q = query_find(c->route, name);

		if (q && !check_value(c, q, value))
			return false;
	}
	if (r == -EINVAL)
		problem_status(c, 400, "a query parameter is not well-formed");
	else if (r < 0)
		problem_reply(c, &(struct err){ .code = -r });
	return r == 0;
}
