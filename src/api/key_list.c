/* Which keys there are, as far as the caller may see them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "api/handlers.h"
#include "api/keys.h"
#include "api/problem.h"
#include "api/routes.h"
#include "auth/api_key.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "sandbox/sandbox.h"
#include "store/store.h"
#include "json/jw.h"

#define LIST_DEFAULT 100

void keys_write_scopes(struct jw *w, unsigned scopes)
{
	jw_key(w, "scopes");
	jw_array_begin(w);
	for (unsigned bit = 1; bit & SCOPE_ALL; bit <<= 1)
		if (scopes & bit)
			jw_string(w, scope_name((enum scope)bit));
	jw_array_end(w);
}

void keys_write(struct jw *w, const struct key_row *row)
{
	unsigned scopes = scope_of_role((enum role)row->role);

	jw_str_field(w, "id", row->id);
	jw_str_field(w, "name", row->name);
	jw_str_field(w, "role", role_name((enum role)row->role));
	jw_str_field(w, "owner", row->owner);
	keys_write_scopes(w, row->scopes ? scopes & row->scopes : scopes);
	jw_str_field(w, "sandboxId", row->sandbox_id[0] ? row->sandbox_id : NULL);
	jw_iso_field(w, "createdAt", row->created_ms);
	jw_iso_field(w, "expiresAt", row->expires_ms);
	jw_iso_field(w, "lastUsedAt", row->last_used_ms);
}

static bool is_of_sandbox(const struct api_call *c)
{
	return strncmp(c->route->route.pattern, ROUTES_BOX, strlen(ROUTES_BOX)) == 0;
}

bool keys_find_sandbox(struct api_call *c)
{
	return !is_of_sandbox(c) || call_sandbox(c);
}

bool keys_are_seen(struct api_call *c, const struct key_row *row)
{
	struct sandbox *sb;

	if (is_of_sandbox(c)) {
		sb = row->sandbox_id[0]
			     ? sandboxes_find(c->api->deps.sandboxes, row->sandbox_id, NULL)
			     : NULL;
		if (!sb || sb != call_find_sandbox(c))
			return false;
	}
	if (c->route->route.flags & ROUTE_OWN)
		return strcmp(row->owner, c->who->owner) == 0;
	return principal_owns(c->who, row->owner);
}

struct collect {
	struct api_call *call;
	struct cursor cursor;
	struct key_row *rows; /* owned; the texts are the table's */
	size_t n, cap;
	int failed;
};

/* Newest first. */
static int compare(const void *pa, const void *pb)
{
	const struct key_row *a = pa, *b = pb;

	if (a->created_ms != b->created_ms)
		return a->created_ms < b->created_ms ? 1 : -1;
	return -strcmp(a->id, b->id);
}

static void collect(void *user, const struct key_row *row)
{
	struct collect *all = user;
	const struct key_row after = {
		.created_ms = all->cursor.before_ms,
		.id = all->cursor.before_id,
	};

	if (row->revoked_ms || !keys_are_seen(all->call, row) ||
	    auth_keys_is_orphan(all->call->api->deps.keys, row->id))
		return;
	if (all->cursor.before_ms && compare(row, &after) <= 0)
		return;
	if (all->n == all->cap) {
		size_t cap = all->cap ? 2 * all->cap : 64;
		struct key_row *rows = reallocarray(all->rows, cap, sizeof(*rows));

		if (!rows) {
			all->failed = -ENOMEM;
			return;
		}
		all->rows = rows;
		all->cap = cap;
	}
	all->rows[all->n++] = *row;
}

static void reply_list(struct api_call *c, const struct collect *all, size_t limit)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	size_t n = all->n < limit ? all->n : limit;

	jw_object_begin(&w);
	jw_key(&w, "items");
	jw_array_begin(&w);
	for (size_t i = 0; i < n; i++) {
		jw_object_begin(&w);
		keys_write(&w, &all->rows[i]);
		jw_object_end(&w);
	}
	jw_array_end(&w);
	call_write_cursor(&w, n < all->n, n ? all->rows[n - 1].created_ms : 0,
			  n ? all->rows[n - 1].id : "");
	jw_object_end(&w);
	call_reply(c, 200, &w);
}

void api_key_list(struct api_call *c)
{
	struct collect all = { .call = c };
	uint64_t limit = LIST_DEFAULT;

	if (!call_query_u64(c, "limit", &limit) || !call_query_cursor(c, &all.cursor))
		return;
	if (!keys_find_sandbox(c))
		return;
	auth_keys_each(c->api->deps.keys, collect, &all);
	if (all.failed) {
		problem_reply(c, &(struct err){ -all.failed, "keys" });
	} else {
		if (all.n > 0)
			qsort(all.rows, all.n, sizeof(*all.rows), compare);
		reply_list(c, &all, limit);
	}
	free(all.rows);
}
