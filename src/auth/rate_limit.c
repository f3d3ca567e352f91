#include "auth/rate_limit.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/map.h"
#include "base/str.h"

#define KEY_MAX 64

struct window {
	struct list by_age; /* in rate_limit.windows, oldest first */
	uint64_t begin_ms;
	uint32_t failures;
	size_t key_len;
	char key[KEY_MAX];
};

struct rate_limit {
	struct map *peers; /* owned; so are the windows in it */
	struct list windows;
	size_t max_peers;
	uint32_t limit;
	uint64_t window_ms;
};

struct rate_limit *rate_limit_create(size_t max_peers, uint32_t limit, uint64_t window_ms)
{
	struct rate_limit *rl = calloc(1, sizeof(*rl));

	if (!rl)
		return NULL;
	list_init(&rl->windows);
	rl->max_peers = max_peers;
	rl->limit = limit;
	rl->window_ms = window_ms;
	rl->peers = map_create(max_peers);
	return rl->peers ? rl : rate_limit_free(rl);
}

struct rate_limit *rate_limit_free(struct rate_limit *rl)
{
	if (!rl)
		return NULL;
	LIST_FOREACH (&rl->windows, w, struct window, by_age)
		free(w);
	map_free(rl->peers);
	free(rl);
	return NULL;
}

/* The host of "host", "host:port" or "[host]:port". A bare IPv6 address has more than one colon. */
static struct str host_of(const char *peer)
{
	const char *colon = strrchr(peer, ':');
	const char *end = strchr(peer, ']');

	if (*peer == '[' && end)
		return (struct str){ peer + 1, (size_t)(end - peer - 1) };
	if (colon && strchr(peer, ':') == colon)
		return (struct str){ peer, (size_t)(colon - peer) };
	return str_of(peer);
}

/* What a peer is counted under: a letter for the kind, and an IPv4 address, an IPv6 network or the
 * text itself. */
static size_t key_of(const char *peer, char key[KEY_MAX])
{
	struct str host = host_of(peer);
	char text[KEY_MAX];
	struct in6_addr v6;
	struct in_addr v4;

	if (host.len >= sizeof(text))
		host.len = sizeof(text) - 1;
	memcpy(text, host.data, host.len);
	text[host.len] = '\0';
	text[strcspn(text, "%")] = '\0'; /* a zone */
	if (inet_pton(AF_INET, text, &v4) == 1) {
		key[0] = '4';
		memcpy(key + 1, &v4, 4);
		return 5;
	}
	if (inet_pton(AF_INET6, text, &v6) != 1) {
		key[0] = 't';
		memcpy(key + 1, host.data, host.len);
		return 1 + host.len;
	}
	if (IN6_IS_ADDR_V4MAPPED(&v6)) {
		key[0] = '4';
		memcpy(key + 1, v6.s6_addr + 12, 4);
		return 5;
	}
	key[0] = '6';
	memcpy(key + 1, v6.s6_addr, 8);
	return 9;
}

static bool is_over(const struct rate_limit *rl, const struct window *w, uint64_t now_ms)
{
	return now_ms - w->begin_ms >= rl->window_ms;
}

uint64_t rate_limit_wait_ms(const struct rate_limit *rl, const char *peer, uint64_t now_ms)
{
	char key[KEY_MAX];
	const struct window *w = map_get(rl->peers, key, key_of(peer, key));

	if (!w || w->failures < rl->limit || is_over(rl, w, now_ms))
		return 0;
	return w->begin_ms + rl->window_ms - now_ms;
}

static void drop(struct rate_limit *rl, struct window *w)
{
	(void)map_remove(rl->peers, w->key, w->key_len);
	list_remove(&w->by_age);
	free(w);
}

/* Room for one more: windows that are over go, and the oldest one when that is not enough. */
static void make_room(struct rate_limit *rl, uint64_t now_ms)
{
	LIST_FOREACH (&rl->windows, w, struct window, by_age) {
		if (!is_over(rl, w, now_ms) && map_len(rl->peers) < rl->max_peers)
			return;
		drop(rl, w);
	}
}

static struct window *add(struct rate_limit *rl, const char *key, size_t n)
{
	struct window *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	memcpy(w->key, key, n);
	w->key_len = n;
	list_init(&w->by_age);
	if (map_put(rl->peers, key, n, w, NULL) < 0) {
		free(w);
		return NULL;
	}
	return w;
}

bool rate_limit_fail(struct rate_limit *rl, const char *peer, uint64_t now_ms)
{
	char key[KEY_MAX];
	size_t n = key_of(peer, key);
	struct window *w = map_get(rl->peers, key, n);

	if (!w) {
		make_room(rl, now_ms);
		w = add(rl, key, n);
	}
	if (!w)
		return false; /* without memory nobody is shut out: the key was refused all the same
			       */
	if (w->failures == 0 || is_over(rl, w, now_ms)) {
		w->begin_ms = now_ms;
		w->failures = 0;
		list_remove(&w->by_age);
		list_push_back(&rl->windows, &w->by_age);
	}
	if (w->failures < rl->limit)
		w->failures++;
	else
		return false;
	return w->failures == rl->limit;
}
