/* Sessions of the legacy era. A session's id carries what the session is made of, sealed: it is
 * known again after the end of this process, and so is the sandbox that is its own, if it asked for
 * one. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth/principal.h"
#include "auth/scope.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/err.h"
#include "base/map.h"
#include "base/parse.h"
#include "base/str.h"
#include "crypto/hmac.h"
#include "crypto/secret.h"
#include "loop/loop.h"
#include "mcp/server_impl.h"

#define MAC_LEN 16
#define HOME_PREFIX "mcp-"
#define ENDED_MAX 65536u

#define ENDED_KEY "mcp-session-ended" /* metadata of a sandbox that is kept: when, in ms */
#define OF_KEY "-k"

/* "<id>-<version>-<client, hex>[-k]-<mac, hex>"; k: works in its key's sandbox, not in one of its
 * own */
static int seal(const struct mcp_server *s, const char *body, const char *owner, const char *box_id,
		char ret[2 * MAC_LEN + 1])
{
	uint8_t mac[HASH_LEN];
	char text[256];
	size_t n = 0;
	const char *key = secret_reveal(s->deps.secret, &n);
	int r = str_format(text, sizeof(text), "mcp.session:%s:%s:%s", body, owner, box_id);

	if (r == 0)
		r = key ? hmac_sha256(key, n, text, strlen(text), mac) : -EINVAL;
	if (r == 0)
		encode_hex(mac, MAC_LEN, ret);
	return r;
}

static int index_of(const char *version)
{
	for (int i = 0; mcp_versions[i]; i++)
		if (strcmp(mcp_versions[i], version) == 0)
			return i;
	return 0;
}

static size_t count_of(const struct mcp_server *s, const char *owner)
{
	size_t n = 0;

	LIST_FOREACH (&s->sessions, it, struct mcp_session, node)
		n += strcmp(it->owner, owner) == 0;
	return n;
}

/* The one of an owner that has not been used for the longest time gives way. */
static void make_room(struct mcp_server *s, const char *owner)
{
	struct mcp_session *oldest = NULL;

	if (s->n_sessions < MCP_SESSIONS_MAX && count_of(s, owner) < MCP_SESSIONS_OWNER_MAX)
		return;
	LIST_FOREACH (&s->sessions, it, struct mcp_session, node)
		if (strcmp(it->owner, owner) == 0 && it->refs == 1 &&
		    (!oldest || it->used_ms < oldest->used_ms))
			oldest = it;
	if (oldest)
		mcp_session_forget(oldest);
}

static int add(struct mcp_server *s, const char *id, const char *owner, const char *box_id,
	       struct mcp_session **ret)
{
	struct mcp_session *n;
	int r;

	make_room(s, owner);
	if (s->n_sessions >= MCP_SESSIONS_MAX || count_of(s, owner) >= MCP_SESSIONS_OWNER_MAX)
		return -EAGAIN;
	n = calloc(1, sizeof(*n));
	if (!n)
		return -ENOMEM;
	n->server = s;
	n->refs = 1;
	n->is_known = true;
	n->used_ms = clock_now_ms();
	n->log_level = mcp_level_from("info");
	list_init(&n->streams);
	(void)snprintf(n->id, sizeof(n->id), "%s", id);
	(void)snprintf(n->owner, sizeof(n->owner), "%s", owner);
	(void)snprintf(n->box_id, sizeof(n->box_id), "%s", box_id);
	(void)snprintf(n->home, sizeof(n->home), HOME_PREFIX "%.*s", ID_LEN, id);
	r = map_put(s->by_id, n->id, strlen(n->id), n, NULL);
	if (r < 0) {
		free(n);
		return r;
	}
	list_push_back(&s->sessions, &n->node);
	s->n_sessions++;
	*ret = n;
	return 0;
}

int mcp_session_create(struct mcp_server *s, const struct principal *who, const char *box_id,
		       const char *version, const struct mcp_session_wish *wish,
		       struct mcp_session **ret, struct err *err)
{
	char name[ID_LEN + 1], body[64], mac[2 * MAC_LEN + 1], id[MCP_SESSION_ID_MAX + 1];
	int r;

	id_make(name);
	r = str_format(body, sizeof(body), "%s-%d-%x%s", name, index_of(version), wish->client,
		       wish->has_own_box ? "" : OF_KEY);
	if (r == 0)
		r = seal(s, body, who->owner, box_id, mac);
	if (r == 0)
		r = str_format(id, sizeof(id), "%s-%s", body, mac);
	if (r == 0)
		r = add(s, id, who->owner, box_id, ret);
	if (r == -EAGAIN)
		return err_set(err, EAGAIN, "there are too many sessions");
	if (r < 0)
		return err_sys(err, r, "a session");
	(*ret)->version = mcp_versions[index_of(version)];
	(*ret)->client = wish->client;
	(*ret)->has_own_box = wish->has_own_box;
	return 0;
}

/* Whether it is one of ours, and what it says. */
static bool take_apart(const struct mcp_server *s, const char *id, const char *owner,
		       const char *box_id, int *ret_version, struct mcp_session_wish *ret)
{
	const char *end = strrchr(id, '-');
	char body[64], right[2 * MAC_LEN + 1];
	int used = 0, versions = 0;

	if (!end || (size_t)(end - id) >= sizeof(body))
		return false;
	(void)snprintf(body, sizeof(body), "%.*s", (int)(end - id), id);
	if (strlen(end + 1) != 2 * MAC_LEN || seal(s, body, owner, box_id, right) < 0 ||
	    !secret_bytes_equal(right, end + 1, 2 * MAC_LEN))
		return false;
	while (mcp_versions[versions])
		versions++;
	if (sscanf(body + ID_LEN, "-%d-%x%n", ret_version, &ret->client, &used) != 2 ||
	    *ret_version < 0 || *ret_version >= versions)
		return false;
	ret->has_own_box = strcmp(body + ID_LEN + used, OF_KEY) != 0;
	return true;
}

struct mcp_session *mcp_session_find(struct mcp_server *s, const char *id,
				     const struct principal *who, const char *box_id)
{
	struct mcp_session *n = map_get(s->by_id, id, strlen(id));
	struct mcp_session_wish wish = { 0 };
	int version = 0;

	if (n) {
		if (strcmp(n->owner, who->owner) != 0 || strcmp(n->box_id, box_id) != 0)
			return NULL;
		n->used_ms = clock_now_ms();
		return n;
	}
	if (map_get(s->ended, id, strlen(id)) ||
	    !take_apart(s, id, who->owner, box_id, &version, &wish) ||
	    add(s, id, who->owner, box_id, &n) < 0)
		return NULL;
	n->version = mcp_versions[version];
	n->client = wish.client;
	n->has_own_box = wish.has_own_box;
	return n;
}

struct mcp_session *mcp_session_ref(struct mcp_session *n)
{
	n->refs++;
	return n;
}

void mcp_session_unref(struct mcp_session *n)
{
	if (!n || --n->refs > 0)
		return;
	for (size_t i = 0; i < n->n_uris; i++)
		free(n->uris[i]);
	free(n->uris);
	free(n);
}

void mcp_session_forget(struct mcp_session *n)
{
	struct mcp_server *s = n->server;

	if (!n->is_known)
		return;
	n->is_known = false;
	(void)map_remove(s->by_id, n->id, strlen(n->id));
	list_remove(&n->node);
	s->n_sessions--;
	for (struct list *at = s->requests.next; at != &s->requests;) {
		struct mcp_request *q = LIST_ENTRY(at, struct mcp_request, node);

		at = at->next;
		if (q->session != n)
			continue;
		q->stream = NULL;
		mcp_cancel(q);
	}
	LIST_FOREACH (&n->streams, t, struct mcp_stream, node)
		mcp_stream_free(t);
	mcp_session_unref(n);
}

/* ---- sandboxes of sessions that have ended ---- */

static void nothing_more(void *user, struct sandbox *sb, const struct err *err)
{
	(void)user, (void)sb, (void)err; /* one that cannot be stopped ends when its time is over */
}

static void marked(void *user, struct sandbox *sb, const struct err *err)
{
	(void)user;
	if (!err)
		sandbox_suspend(sb, nothing_more, NULL);
}

/* Sets the mark, or takes it away (NULL); what else the sandbox is marked with stays. */
static void mark_box(struct sandbox *sb, const char *when, sandbox_cb cb)
{
	struct sandbox_pair all[SANDBOX_METADATA_MAX + 1];
	struct sandbox_patch patch = { .has_metadata = true, .metadata = all };
	struct sandbox_info info;

	sandbox_info(sb, &info);
	for (size_t i = 0; i < info.n_metadata && i < SANDBOX_METADATA_MAX; i++)
		if (strcmp(info.metadata[i].name, ENDED_KEY) != 0)
			all[patch.n_metadata++] = (struct sandbox_pair){ info.metadata[i].name,
									 info.metadata[i].value };
	if (when)
		all[patch.n_metadata++] = (struct sandbox_pair){ ENDED_KEY, when };
	sandbox_patch(sb, &patch, cb, NULL);
}

/* Stopped and kept for a while: who ends a session may still want its files. */
static void keep_box(struct sandbox *sb)
{
	char when[24];

	(void)snprintf(when, sizeof(when), "%" PRId64, clock_wall_ms());
	mark_box(sb, when, marked);
}

/* When its session ended; 0: it is no such sandbox. */
static uint64_t ended_ms(const struct sandbox_info *info)
{
	uint64_t ms = 0;

	if (!str_starts(str_of(info->name), HOME_PREFIX))
		return 0;
	for (size_t i = 0; i < info->n_metadata; i++)
		if (strcmp(info->metadata[i].name, ENDED_KEY) == 0 &&
		    parse_u64(info->metadata[i].value, 1, INT64_MAX, &ms) == 0)
			return ms;
	return 0;
}

static bool is_kept_too_long(void *user, const struct sandbox *sb)
{
	const int64_t *now = user;
	struct sandbox_info info;
	uint64_t ms;

	sandbox_info(sb, &info);
	ms = state_stands_still(info.state) ? ended_ms(&info) : 0;
	return ms > 0 && (uint64_t)*now >= ms + MCP_BOX_KEEP_MS;
}

/* Somebody has started it again: it is theirs now. */
static bool is_taken_up(void *user, const struct sandbox *sb)
{
	struct sandbox_info info;

	(void)user;
	sandbox_info(sb, &info);
	return info.state == SANDBOX_RUNNING && ended_ms(&info) > 0;
}

void mcp_session_boxes_tick(struct mcp_server *s, int64_t wall_ms)
{
	struct sandbox *sb = sandboxes_search(s->deps.sandboxes, is_kept_too_long, &wall_ms);

	if (sb) /* one at a time: the next comes with the next tick */
		sandbox_delete(sb, "its MCP session has ended", nothing_more, NULL);
	sb = sandboxes_search(s->deps.sandboxes, is_taken_up, NULL);
	if (sb)
		mark_box(sb, NULL, nothing_more);
}

void mcp_session_end(struct mcp_session *n, const struct principal *by)
{
	struct mcp_server *s = n->server;
	struct sandbox *sb = NULL;

	/* A key that may only look ends what it has looked through, and no more. */
	if (n->has_own_box && n->box_id[0] == '\0' &&
	    principal_check(by, SCOPE_SANDBOX_WRITE, NULL) == 0)
		sb = sandboxes_find(s->deps.sandboxes, n->home, n->owner);
	/* More have ended than are remembered: they would be new ones, and empty. */
	if (map_put(s->ended, n->id, strlen(n->id), s, NULL) == -E2BIG) {
		(void)map_free(s->ended);
		s->ended = map_create(ENDED_MAX);
	}
	if (sb)
		keep_box(sb);
	mcp_session_forget(n);
}

void mcp_sessions_tick(struct mcp_server *s, uint64_t now_ms)
{
	for (struct list *at = s->sessions.next; at != &s->sessions;) {
		struct mcp_session *n = LIST_ENTRY(at, struct mcp_session, node);

		at = at->next;
		mcp_streams_tick(s, &n->streams, now_ms);
		if (n->common && n->common->http)
			n->used_ms = now_ms;
		if (n->refs == 1 && now_ms - n->used_ms >= MCP_SESSION_IDLE_MS)
			mcp_session_forget(n);
	}
}

struct mcp_stream *mcp_session_stream(struct mcp_session *n, const char *event_id,
				      uint64_t *ret_seen)
{
	uint32_t number;
	int used = 0;

	if (sscanf(event_id, "%" SCNu32 "-%" SCNu64 "%n", &number, ret_seen, &used) != 2 ||
	    event_id[used] != '\0')
		return NULL;
	LIST_FOREACH (&n->streams, t, struct mcp_stream, node)
		if (t->number == number)
			return t;
	return NULL;
}

bool mcp_session_has(const struct mcp_session *n, const char *uri)
{
	for (size_t i = 0; i < n->n_uris; i++)
		if (strcmp(n->uris[i], uri) == 0)
			return true;
	return false;
}

static void unsubscribe(struct mcp_session *n, const char *uri)
{
	for (size_t i = 0; i < n->n_uris; i++) {
		if (strcmp(n->uris[i], uri) != 0)
			continue;
		free(n->uris[i]);
		n->uris[i] = n->uris[--n->n_uris];
		return;
	}
}

int mcp_session_subscribe(struct mcp_session *n, const char *uri, bool on)
{
	char **more, *copy;

	if (!on) {
		unsubscribe(n, uri);
		return 0;
	}
	if (mcp_session_has(n, uri))
		return 0;
	if (n->n_uris >= MCP_SUBSCRIPTIONS_MAX)
		return -EAGAIN;
	more = realloc(n->uris, (n->n_uris + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	n->uris = more;
	copy = strdup(uri);
	if (!copy)
		return -ENOMEM;
	n->uris[n->n_uris++] = copy;
	return 0;
}
