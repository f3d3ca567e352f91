/* What a handler asks of a request. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "net/exchange.h"
#include "net/http1.h"
#include "net/percent.h"
#include "net/server.h"

#define CLIENT_ID_MAX 128

const char *http_method(const struct http_request *r)
{
	return r->head->method;
}

const char *http_path(const struct http_request *r)
{
	return r->head->path;
}

const char *http_query_string(const struct http_request *r)
{
	return r->head->query;
}

static int decode(struct http_request *r, struct str s, const char **ret)
{
	char *text = arena_alloc(r->arena, s.len + 1);
	ssize_t n;

	if (!text)
		return -ENOMEM;
	n = percent_decode(s, true, text);
	if (n < 0)
		return (int)n;
	*ret = text;
	return 1;
}

/* Cuts "key=value" off *rest, still encoded. */
static bool next_pair(struct str *rest, struct str *ret_key, struct str *ret_value)
{
	struct str pair;

	do
		if (!str_split(rest, '&', &pair))
			return false;
	while (pair.len == 0);
	*ret_key = *ret_value = (struct str){ pair.data, 0 };
	while (ret_key->len < pair.len && pair.data[ret_key->len] != '=')
		ret_key->len++;
	if (ret_key->len < pair.len)
		*ret_value =
			(struct str){ pair.data + ret_key->len + 1, pair.len - ret_key->len - 1 };
	return true;
}

int http_query_next(struct http_request *r, struct str *rest, const char **ret_name,
		    const char **ret_value)
{
	const char *name = "", *value = "";
	struct str raw_name, raw_value;
	int n;

	if (!next_pair(rest, &raw_name, &raw_value))
		return 0;
	n = decode(r, raw_name, &name);
	if (n > 0)
		n = decode(r, raw_value, &value);
	if (n <= 0)
		return n;
	*ret_name = name;
	*ret_value = value;
	return 1;
}

/* 1 when the encoded key says name. Nearly all keys are plain and cost the arena nothing. */
static int is_key(struct http_request *r, struct str key, const char *name)
{
	const char *text = "";
	int n;

	if (!memchr(key.data, '%', key.len) && !memchr(key.data, '+', key.len))
		return str_is(key, name);
	n = decode(r, key, &text);
	return n < 0 ? n : strcmp(text, name) == 0;
}

int http_query(struct http_request *r, const char *name, const char **ret)
{
	struct str rest = str_of(r->head->query), key, value;

	while (next_pair(&rest, &key, &value)) {
		int n = is_key(r, key, name);

		if (n != 0)
			return n < 0 ? n : decode(r, value, ret);
	}
	return 0;
}

const char *http_header(const struct http_request *r, const char *name)
{
	return http1_header(r->head, name);
}

const char *http_header_at(const struct http_request *r, unsigned index, const char **ret_name)
{
	if (index >= r->head->count)
		return NULL;
	*ret_name = r->head->fields[index].name;
	return r->head->fields[index].value;
}

struct arena *http_arena(struct http_request *r)
{
	return r->arena;
}

const char *http_peer(const struct http_request *r)
{
	return r->c.peer;
}

bool http_is_tls(const struct http_request *r)
{
	return r->c.tls != NULL;
}

const char *http_request_id(const struct http_request *r)
{
	return r->id;
}

const char *http_client_request_id(const struct http_request *r)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._:-";
	const char *id = http1_header(r->head, "x-request-id");
	size_t n = id ? strspn(id, allowed) : 0;

	return n > 0 && n <= CLIENT_ID_MAX && id[n] == '\0' ? id : NULL;
}

void *http_user(const struct http_request *r, unsigned slot)
{
	assert(slot < HTTP_USER_SLOTS);
	return r->user[slot];
}

void http_user_set(struct http_request *r, unsigned slot, void *p)
{
	assert(slot < HTTP_USER_SLOTS);
	r->user[slot] = p;
}

struct loop *http_loop(const struct http_request *r)
{
	return r->c.loop;
}

unsigned http_connections(const struct http_request *r)
{
	return http_server_connections(r->c.server);
}

void http_on_gone(struct http_request *r, void (*gone)(void *user, struct http_request *r),
		  void *user)
{
	r->gone = gone;
	r->gone_user = user;
	if (gone && r->c.state == CONN_CLOSED)
		server_rebury(r->c.server, &r->c); /* left before: told at the end of the turn */
}
