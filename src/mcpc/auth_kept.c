#include "mcpc/auth_kept.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/encode.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "crypto/hash.h"
#include "sandbox/credential.h"

#define KEY_BYTES 16

struct auth_kept {
	struct sandboxes *all; /* borrowed */
	char name[sizeof("mcp-") + 2 * KEY_BYTES];
	bool is_writing, is_unwanted;
	bool has_next; /* what came while it was being written */
	char *next;    /* owned; NULL: to be forgotten */
};

static void wipe(struct auth_kept *k)
{
	if (k->next)
		explicit_bzero(k->next, strlen(k->next));
	free(k->next);
	k->next = NULL;
	k->has_next = false;
}

struct auth_kept *auth_kept_create(struct sandboxes *all, const char *server, const char *url)
{
	struct auth_kept *k = calloc(1, sizeof(*k));
	struct hash *h = hash_create();
	uint8_t sum[HASH_LEN];

	/* the NUL between them: so that one cannot run into the other */
	if (!k || !h || hash_update(h, server, strlen(server) + 1) < 0 ||
	    hash_update(h, url, strlen(url)) < 0 || hash_final(h, sum) < 0) {
		free(k);
		(void)hash_free(h);
		return NULL;
	}
	(void)hash_free(h);
	k->all = all;
	memcpy(k->name, "mcp-", 4);
	encode_hex(sum, KEY_BYTES, k->name + 4);
	return k;
}

struct auth_kept *auth_kept_free(struct auth_kept *k)
{
	if (!k)
		return NULL;
	if (k->is_writing) {
		k->is_unwanted = true;
		return NULL;
	}
	wipe(k);
	free(k);
	return NULL;
}

const char *auth_kept_find(struct auth_kept *k)
{
	return credential_find(k->all, k->name);
}

static void put(struct auth_kept *k, const char *json);

static void written(void *user, struct object *o, const struct err *err)
{
	struct auth_kept *k = user;

	(void)o;
	k->is_writing = false;
	if (err)
		log_warn("mcp", "a server's tokens are not kept: %s", err->text);
	if (k->has_next) {
		char *next = k->next;

		k->next = NULL;
		k->has_next = false;
		put(k, next);
		if (next)
			explicit_bzero(next, strlen(next));
		free(next);
	} else if (k->is_unwanted) {
		k->is_unwanted = false;
		(void)auth_kept_free(k);
	}
}

static void put(struct auth_kept *k, const char *json)
{
	k->is_writing = true;
	credential_put(k->all, k->name, json, written, k); /* the last thing: it may be over */
}

void auth_kept_put(struct auth_kept *k, const char *json)
{
	if (!k->is_writing) {
		put(k, json);
		return;
	}
	wipe(k);
	k->next = json ? str_dup(str_of(json)) : NULL;
	k->has_next = !json || k->next;
}
