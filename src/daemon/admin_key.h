/* Admin keys that nobody asked the API for: the first one, and those made while no daemon runs. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "auth/api_key.h"
#include "store/store.h"

#define ADMIN_KEY_OWNER "admin"

struct err;

struct admin_key {
	char text[API_KEY_SIZE]; /* to be shown once */
	char id[ID_LEN + 1];
	struct key_row row; /* borrows the name and `id`: not to be copied */
};

/* A new key in memory. */
int admin_key_init(struct admin_key *k, const char *name, struct err *err);
/* Overwrites the text. */
void admin_key_done(struct admin_key *k);
/* Blocks until it is on disk: nothing else may use the store yet. */
int admin_key_put(const struct admin_key *k, const struct store *store, struct err *err);

/* A key for the daemon of that state directory, which must not run, made by root or the directory's
 * owner; root becomes the account that owns the data, for good. expires_ms: of the wall clock; 0:
 * never. -EBUSY while a daemon runs. */
int admin_key_make_offline(const char *state_dir, const char *name, int64_t expires_ms,
			   char ret[API_KEY_SIZE], struct err *err);
