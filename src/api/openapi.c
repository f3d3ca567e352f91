#include "api/openapi.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "api/call.h"
#include "api/handlers.h"
#include "api/openapi_schema.h"
#include "api/problem.h"
#include "api/queries.h"
#include "api/routes.h"
#include "api/schemas.h"
#include "auth/scope.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "net/http.h"
#include "sandbox/event_kinds.h"
#include "json/jw.h"
#include "json/schema.h"

#define V1 "/api/v1/"
#define JSON "application/json"
#define NAME_SIZE 128 /* of what is made from a route's pattern; a longer one is cut */

/* ---- names ---- */

/* "/api/v1/keys/:kid" is "/api/v1/keys/{kid}" there; "*path" too, although it may hold slashes. */
static void template_of(const char *pattern, char name[NAME_SIZE])
{
	size_t n = 0;
	bool in_param = false;

	for (const char *p = pattern; n + 2 < NAME_SIZE; p++) {
		if (in_param && (*p == '/' || *p == '\0')) {
			name[n++] = '}';
			in_param = false;
		}
		if (*p == '\0')
			break;
		if (p > pattern && p[-1] == '/' && (*p == ':' || *p == '*')) {
			name[n++] = '{';
			in_param = true;
			continue;
		}
		name[n++] = *p;
	}
	name[n] = '\0';
}

/* GET /api/v1/keys/:kid is getKeysByKid: made from what never changes. */
static void operation_id(const struct route *r, char name[NAME_SIZE])
{
	const char *p =
		strncmp(r->pattern, V1, strlen(V1)) == 0 ? r->pattern + strlen(V1) - 1 : r->pattern;
	size_t n = 0;

	for (const char *m = r->method; *m && n + 1 < NAME_SIZE; m++)
		name[n++] = (char)tolower((unsigned char)*m);
	for (bool begins = false; *p && n + 4 < NAME_SIZE; p++) {
		if (*p == ':' || *p == '*') {
			name[n++] = 'B', name[n++] = 'y';
			begins = true;
		} else if (!isalnum((unsigned char)*p)) {
			begins = true;
		} else {
			name[n++] = begins ? (char)toupper((unsigned char)*p) : *p;
			begins = false;
		}
	}
	name[n] = '\0';
}

/* What belongs together: the first word, or what stands behind a sandbox. */
static void tag_of(const char *pattern, char name[NAME_SIZE])
{
	const char *box = V1 "sandboxes/:id/";
	size_t n;

	if (strncmp(pattern, box, strlen(box)) == 0)
		pattern += strlen(box);
	else if (strncmp(pattern, V1, strlen(V1)) == 0)
		pattern += strlen(V1);
	else if (strncmp(pattern, "/api/", strlen("/api/")) == 0)
		pattern += strlen("/api/");
	else
		pattern = "health";
	n = strcspn(pattern, "/.");
	if (str_format(name, NAME_SIZE, "%.*s", (int)n, pattern) < 0)
		name[0] = '\0';
}

/* ---- parameters ---- */

static void parameter(struct jw *w, const char *name, const char *in, const char *help)
{
	jw_str_field(w, "name", name);
	jw_str_field(w, "in", in);
	if (strcmp(in, "path") == 0)
		jw_bool_field(w, "required", true);
	if (help)
		jw_str_field(w, "description", help);
	jw_key(w, "schema");
}

static void path_parameters(struct jw *w, const char *pattern)
{
	for (const char *p = strpbrk(pattern, ":*"); p; p = strpbrk(p + 1, ":*")) {
		char name[NAME_SIZE];
		bool is_rest = *p == '*';

		if (str_format(name, sizeof(name), "%.*s", (int)strcspn(p + 1, "/"), p + 1) < 0)
			continue;
		jw_object_begin(w);
		parameter(w, name, "path",
			  is_rest ? "everything behind it, slashes included" : NULL);
		jw_object_begin(w);
		jw_str_field(w, "type", "string");
		jw_uint_field(w, "minLength", 1);
		jw_object_end(w);
		jw_object_end(w);
	}
}

static void parameters(struct jw *w, const struct api_route *route)
{
	jw_key(w, "parameters");
	jw_array_begin(w);
	path_parameters(w, route->route.pattern);
	for (const struct route_query *q = route->query; q && q->name; q++) {
		if (q->name[strlen(q->name) - 1] == '.')
			continue; /* OpenAPI has no word for a family of names: prefixes() */
		jw_object_begin(w);
		parameter(w, q->name, "query", q->help);
		openapi_query(w, q);
		jw_object_end(w);
	}
	jw_array_end(w);
}

static void prefixes(struct jw *w, const struct api_route *route)
{
	for (const struct route_query *q = route->query; q && q->name; q++)
		if (q->name[strlen(q->name) - 1] == '.')
			jw_str_field(w, "x-query-prefix", q->help);
}

/* ---- bodies and answers ---- */

static void bytes_of(struct jw *w, const char *media)
{
	jw_key(w, media);
	jw_object_begin(w); /* 3.1: bytes that are no JSON have no schema */
	if (strncmp(media, "text/", 5) == 0) {
		jw_key(w, "schema");
		jw_object_begin(w);
		jw_str_field(w, "type", "string");
		jw_object_end(w);
	}
	jw_object_end(w);
}

static void json_of(struct jw *w, const char *schema)
{
	jw_key(w, JSON);
	jw_object_begin(w);
	jw_key(w, "schema");
	openapi_ref(w, schema);
	jw_object_end(w);
}

static void request_body(struct jw *w, const struct api_route *route)
{
	if (!route->body && !route->takes)
		return;
	jw_key(w, "requestBody");
	jw_object_begin(w);
	jw_bool_field(w, "required", route->body && !route->body->is_optional);
	jw_key(w, "content");
	jw_object_begin(w);
	if (route->body)
		json_of(w, route->body->name);
	else
		bytes_of(w, route->takes);
	jw_object_end(w);
	jw_object_end(w);
}

static const char *status_text(int status)
{
	static const struct {
		int status;
		const char *text;
	} texts[] = {
		{ 101, "The WebSocket begins" },
		{ 200, "Done" },
		{ 201, "Made" },
		{ 202, "Under way" },
		{ 204, "Done; there is nothing to say" },
		{ 206, "A part of it" },
		{ 304, "Not changed" },
		{ 400, "Something about the request is wrong" },
		{ 401, "No valid key" },
		{ 403, "The key does not allow it, or the sandbox does not" },
		{ 404, "Not there, or another owner's" },
		{ 409, "Not possible as things are" },
		{ 412, "A precondition does not hold" },
		{ 413, "Too large" },
		{ 414, "Too long a path and query" },
		{ 415, "Not JSON" },
		{ 416, "No such part" },
		{ 426, "Not a WebSocket handshake" },
		{ 429, "Too much, see Retry-After" },
		{ 500, "A bug" },
		{ 502, "What is behind it gave no answer" },
		{ 503, "Not now, see Retry-After" },
		{ 504, "What is behind it took too long" },
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].status == status)
			return texts[i].text;
	return "See the message";
}

static void response_begin(struct jw *w, int status)
{
	char key[8];

	(void)str_format(key, sizeof(key), "%d", status);
	jw_key(w, key);
	jw_object_begin(w);
	jw_str_field(w, "description", status_text(status));
}

static void good(struct jw *w, const struct api_route *route, int status)
{
	bool is_empty = status == 101 || status == 204 || status == 304;

	response_begin(w, status);
	if (!is_empty && (route->answer || route->media)) {
		jw_key(w, "content");
		jw_object_begin(w);
		if (route->answer)
			json_of(w, route->answer);
		if (route->media)
			bytes_of(w, route->media);
		jw_object_end(w);
	}
	jw_object_end(w);
}

static void error(struct jw *w, int status)
{
	response_begin(w, status);
	jw_key(w, "content");
	jw_object_begin(w);
	json_of(w, "Error");
	jw_object_end(w);
	jw_object_end(w);
}

static bool is_listed(const short *list, size_t n, int status)
{
	for (size_t i = 0; i < n && list[i]; i++)
		if (list[i] == status)
			return true;
	return false;
}

/* Which errors a route can answer with follows from what it is; its row names only the rest. */
static bool may_fail_with(const struct api_route *route, int status)
{
	const struct route *r = &route->route;
	bool has_param = strpbrk(r->pattern, ":*") != NULL;
	bool is_public = r->flags & ROUTE_PUBLIC;

	if (is_listed(route->good, sizeof(route->good) / sizeof(route->good[0]), status))
		return false;
	if (is_listed(route->bad, sizeof(route->bad) / sizeof(route->bad[0]), status))
		return true;
	switch (status) {
	case 401:
	case 403:
	case 429:
		return !is_public;
	case 404:
		return has_param;
	case 409:
		return has_param || strcmp(r->method, "GET") != 0;
	case 413:
		return route->body || route->takes;
	case 415:
		return route->body != NULL;
	case 414:
		return has_param || route->query;
	case 426:
		return r->flags & ROUTE_SOCKET;
	default:
		return status == 400 || status == 500 || status == 503;
	}
}

static void responses(struct jw *w, const struct api_route *route)
{
	static const short errors[] = { 400, 401, 403, 404, 409, 412, 413, 414,
					415, 416, 426, 429, 500, 502, 503, 504 };
	int standard = route->answer || route->media ? 200 : 204;

	jw_key(w, "responses");
	jw_object_begin(w);
	if (route->route.flags & ROUTE_SOCKET)
		good(w, route, 101);
	else if (!route->good[0])
		good(w, route, standard);
	for (size_t i = 0; i < sizeof(route->good) / sizeof(route->good[0]) && route->good[i]; i++)
		good(w, route, route->good[i]);
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (may_fail_with(route, errors[i]))
			error(w, errors[i]);
	jw_object_end(w);
}

/* ---- operations ---- */

static void security(struct jw *w, const struct api_route *route)
{
	static const char *const schemes[] = { "bearer", "apiKey", "token" };
	size_t n = route->route.flags & ROUTE_SOCKET ? 3 : 2;

	jw_key(w, "security");
	jw_array_begin(w);
	for (size_t i = 0; i < n && !(route->route.flags & ROUTE_PUBLIC); i++) {
		jw_object_begin(w);
		jw_key(w, schemes[i]);
		jw_array_begin(w);
		jw_array_end(w);
		jw_object_end(w);
	}
	jw_array_end(w);
}

static void operation(struct jw *w, const struct api_route *route)
{
	const char *scope = scope_name(route->route.scope);
	char name[NAME_SIZE];

	jw_object_begin(w);
	operation_id(&route->route, name);
	jw_str_field(w, "operationId", name);
	jw_str_field(w, "summary", route->summary);
	if (route->about)
		jw_str_field(w, "description", route->about);
	tag_of(route->route.pattern, name);
	jw_key(w, "tags");
	jw_array_begin(w);
	jw_string(w, name);
	jw_array_end(w);
	if (route->route.scope != SCOPE_NONE && scope)
		jw_str_field(w, "x-scope", scope);
	if (route->route.flags & ROUTE_SOCKET)
		jw_bool_field(w, "x-websocket", true);
	security(w, route);
	prefixes(w, route);
	parameters(w, route);
	request_body(w, route);
	responses(w, route);
	jw_object_end(w);
}

static bool is_first(const struct api_route *rows, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (strcmp(rows[i].route.pattern, rows[at].route.pattern) == 0)
			return false;
	return true;
}

static void paths(struct jw *w, const struct api_route *rows, size_t n)
{
	char name[NAME_SIZE];

	jw_key(w, "paths");
	jw_object_begin(w);
	for (size_t i = 0; i < n; i++) {
		if (!is_first(rows, i))
			continue;
		template_of(rows[i].route.pattern, name);
		jw_key(w, name);
		jw_object_begin(w);
		for (size_t k = i; k < n; k++) {
			if (strcmp(rows[k].route.pattern, rows[i].route.pattern) != 0)
				continue;
			for (size_t m = 0; m <= strlen(rows[k].route.method); m++)
				name[m] = (char)tolower((unsigned char)rows[k].route.method[m]);
			jw_key(w, name);
			operation(w, &rows[k]);
		}
		jw_object_end(w);
	}
	jw_object_end(w);
}

/* ---- the document ---- */

static void scheme(struct jw *w, const char *name, const char *in, const char *param)
{
	jw_key(w, name);
	jw_object_begin(w);
	jw_str_field(w, "type", in ? "apiKey" : "http");
	if (in) {
		jw_str_field(w, "in", in);
		jw_str_field(w, "name", param);
	} else {
		jw_str_field(w, "scheme", "bearer");
	}
	jw_object_end(w);
}

static bool is_first_body(const struct api_route *rows, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (rows[i].body == rows[at].body)
			return false;
	return rows[at].body != NULL;
}

static void components(struct jw *w, const struct api_route *rows, size_t n)
{
	const struct schema *s;

	jw_key(w, "components");
	jw_object_begin(w);
	jw_key(w, "securitySchemes");
	jw_object_begin(w);
	scheme(w, "bearer", NULL, NULL);
	scheme(w, "apiKey", "header", "X-API-Key");
	scheme(w, "token", "query", "token");
	jw_object_end(w);
	jw_key(w, "schemas");
	jw_object_begin(w);
	for (size_t i = 0; i < n; i++) {
		if (!is_first_body(rows, i))
			continue;
		jw_key(w, rows[i].body->name);
		schema_write_body(w, rows[i].body->fields, rows[i].body->count);
	}
	for (size_t i = 0; (s = schema_at(i)); i++) {
		jw_key(w, s->name);
		openapi_answer(w, s);
	}
	jw_object_end(w);
	jw_object_end(w);
}

/* Kinds of events: no schema has a place for them. */
static void events(struct jw *w)
{
	size_t n;
	const struct event_kind *kinds = event_kinds(&n);

	jw_key(w, "x-events");
	jw_object_begin(w);
	for (size_t i = 0; i < n; i++)
		jw_str_field(w, kinds[i].kind, kinds[i].about);
	jw_object_end(w);
}

int openapi_write(struct buf *b)
{
	struct jw w = jw_begin(b);
	size_t n;
	const struct api_route *rows = routes_table(&n);

	jw_object_begin(&w);
	jw_str_field(&w, "openapi", "3.1.0");
	jw_key(&w, "info");
	jw_object_begin(&w);
	jw_str_field(&w, "title", "Holt");
	jw_str_field(&w, "version", HOLT_VERSION);
	jw_str_field(
		&w, "description",
		"Sandboxes over HTTP. What each route means in full is in docs/api.md. A request "
		"that is no good HTTP can also be answered with 405, 408, 411, 417, 431, "
		"501 or 505, and the same shape of error.");
	jw_object_end(&w);
	paths(&w, rows, n);
	components(&w, rows, n);
	events(&w);
	jw_object_end(&w);
	return jw_end(&w);
}

void api_openapi(struct api_call *c)
{
	struct buf *kept = &c->api->openapi;

	if (kept->len == 0 && openapi_write(kept) < 0) {
		buf_done(kept);
		return problem_reply(c, &(struct err){ ENOMEM, "openapi" });
	}
	http_reply(c->http, 200, JSON, kept->data, kept->len);
}
