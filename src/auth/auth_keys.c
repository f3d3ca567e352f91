#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "auth/api_key.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "crypto/secret.h"
#include "store/store.h"

#define USED_STEP_MS 60000 /* uses nearer to each other than this are one note */
_Static_assert(STORE_HASH_LEN == HASH_LEN, "rows keep what is computed here");

#define MAKERS_MAX 64u   /* keys that made keys that made keys ... */
#define KEY_TEXT_MAX 128 /* of what was sent; a key is far shorter */

struct entry {
	struct key_row row; /* its texts are ours: below */
	struct principal who;
	struct list used; /* in auth_keys.used while a note waits, else self-linked */
	char name[STORE_NAME_MAX + 1], parent_id[ID_LEN + 1];
};

struct auth_keys {
	struct map *by_hash, *by_id; /* owned; the entries are by_id's */
	struct list used;
};

struct auth_keys *auth_keys_create(size_t max)
{
	_cleanup_(auth_keys_free_p) struct auth_keys *keys = calloc(1, sizeof(*keys));

	if (!keys)
		return NULL;
	list_init(&keys->used);
	keys->by_hash =
		map_create(max + 1); /* a key that is replaced is there twice for a moment */
	keys->by_id = map_create(max);
	if (!keys->by_hash || !keys->by_id)
		return NULL;
	return TAKE(keys);
}

struct auth_keys *auth_keys_free(struct auth_keys *keys)
{
	if (!keys)
		return NULL;
	if (keys->by_id)
		MAP_FOREACH (keys->by_id, it)
			free(it.value);
	map_free(keys->by_id);
	map_free(keys->by_hash);
	free(keys);
	return NULL;
}

size_t auth_keys_len(const struct auth_keys *keys)
{
	return map_len(keys->by_id);
}

static struct entry *find(const struct auth_keys *keys, const char *id)
{
	return map_get(keys->by_id, id, strlen(id));
}

static struct entry *find_hash(const struct auth_keys *keys, const uint8_t hash[HASH_LEN])
{
	return map_get(keys->by_hash, (const char *)hash, HASH_LEN);
}

static int check_row(const struct key_row *row, struct err *err)
{
	if (!row->id || !id_is_valid(row->id))
		return err_set(err, EINVAL, "key: its id is none");
	if (row->role >= ROLE_COUNT)
		return err_set(err, EINVAL, "key %s: role %u is not known", row->id, row->role);
	if (!row->owner || !*row->owner || strlen(row->owner) > OWNER_MAX)
		return err_set(err, EINVAL, "key %s: want an owner of 1 to %d bytes", row->id,
			       OWNER_MAX);
	if (row->name && strlen(row->name) > STORE_NAME_MAX)
		return err_set(err, EINVAL, "key %s: its name is longer than %d bytes", row->id,
			       STORE_NAME_MAX);
	if (row->sandbox_id && *row->sandbox_id && !id_is_valid(row->sandbox_id))
		return err_set(err, EINVAL, "key %s: its sandbox's id is none", row->id);
	if (row->parent_id && *row->parent_id && !id_is_valid(row->parent_id))
		return err_set(err, EINVAL, "key %s: its maker's id is none", row->id);
	return 0;
}

/* None named is all that the role gives; more than that is never given. */
static unsigned scopes_of(const struct key_row *row)
{
	unsigned all = scope_of_role((enum role)row->role);

	return row->scopes ? all & row->scopes : all;
}

static int entry_create(const struct key_row *row, struct entry **ret, struct err *err)
{
	_free_ struct entry *e = NULL;
	int r = check_row(row, err);

	if (r < 0)
		return r;
	e = calloc(1, sizeof(*e));
	if (!e)
		return err_sys(err, ENOMEM, "key %s", row->id);
	/* All of these fit: see above. */
	memcpy(e->who.key_id, row->id, sizeof(e->who.key_id));
	(void)str_copy(e->who.owner, sizeof(e->who.owner), row->owner);
	(void)str_copy(e->name, sizeof(e->name), row->name ? row->name : "");
	e->who.role = (enum role)row->role;
	e->who.scopes = scopes_of(row);
	(void)str_copy(e->who.sandbox_id, sizeof(e->who.sandbox_id),
		       row->sandbox_id ? row->sandbox_id : "");
	(void)str_copy(e->parent_id, sizeof(e->parent_id), row->parent_id ? row->parent_id : "");
	e->who.expires_ms = row->expires_ms;
	e->row = *row;
	e->row.id = e->who.key_id;
	e->row.owner = e->who.owner;
	e->row.name = e->name;
	e->row.sandbox_id = e->who.sandbox_id;
	e->row.parent_id = e->parent_id;
	list_init(&e->used);
	*ret = TAKE(e);
	return 0;
}

static void entry_drop(struct auth_keys *keys, struct entry *e)
{
	if (find_hash(keys, e->row.hash) == e)
		(void)map_remove(keys->by_hash, (const char *)e->row.hash, HASH_LEN);
	list_remove(&e->used);
	free(e);
}

int auth_keys_put(struct auth_keys *keys, const struct key_row *row, struct err *err)
{
	_free_ struct entry *e = NULL;
	struct entry *old = NULL, *same = NULL;
	int r = entry_create(row, &e, err);

	if (r < 0)
		return r;
	old = find(keys, row->id);
	same = find_hash(keys, row->hash);
	if (same && same != old)
		return err_set(err, EEXIST, "key %s: another key has its secret", row->id);
	/* Replacing needs no memory, so a failure leaves the old key as it was. */
	r = map_put(keys->by_hash, (const char *)e->row.hash, HASH_LEN, e, NULL);
	if (r == -E2BIG)
		return err_set(err, E2BIG, "there are too many keys");
	if (r < 0)
		return err_sys(err, r, "key %s", row->id);
	r = map_put(keys->by_id, row->id, ID_LEN, e, NULL);
	if (r < 0) {
		(void)map_remove(keys->by_hash, (const char *)e->row.hash, HASH_LEN);
		return err_sys(err, r, "key %s", row->id);
	}
	if (old)
		entry_drop(keys, old);
	e = NULL; /* the table's */
	return 0;
}

int auth_keys_revoke(struct auth_keys *keys, const char *id, int64_t revoked_ms)
{
	struct entry *e = find(keys, id);

	if (!e)
		return -ENOENT;
	e->row.revoked_ms = revoked_ms;
	return 0;
}

int auth_keys_remove(struct auth_keys *keys, const char *id)
{
	struct entry *e = map_remove(keys->by_id, id, strlen(id));

	if (!e)
		return -ENOENT;
	entry_drop(keys, e);
	return 0;
}

void auth_keys_each(const struct auth_keys *keys,
		    void (*each)(void *user, const struct key_row *row), void *user)
{
	MAP_FOREACH (keys->by_id, it)
		each(user, &((const struct entry *)it.value)->row);
}

static void note_use(struct auth_keys *keys, struct entry *e, int64_t now_ms)
{
	if (now_ms - e->row.last_used_ms < USED_STEP_MS && now_ms >= e->row.last_used_ms)
		return;
	e->row.last_used_ms = now_ms;
	list_remove(&e->used);
	list_push_back(&keys->used, &e->used);
}

static bool has_expired(const struct entry *e, int64_t now_ms)
{
	return e->row.expires_ms != 0 && e->row.expires_ms <= now_ms;
}

static bool has_ended(const struct entry *e, int64_t now_ms)
{
	return e->row.revoked_ms != 0 || has_expired(e, now_ms);
}

/* Up from maker to maker; a chain that is longer than anybody makes one is as good as broken. */
static bool has_lost_maker(const struct auth_keys *keys, const struct entry *e, int64_t now_ms)
{
	for (unsigned i = 0; e->parent_id[0] != '\0'; i++) {
		e = find(keys, e->parent_id);
		if (!e || has_ended(e, now_ms) || i == MAKERS_MAX)
			return true;
	}
	return false;
}

bool auth_keys_is_good(const struct auth_keys *keys, const char *id)
{
	const struct entry *e = find(keys, id);
	int64_t now_ms = clock_wall_ms();

	return e && !has_ended(e, now_ms) && !has_lost_maker(keys, e, now_ms);
}

int auth_keys_get(const struct auth_keys *keys, const char *id, struct principal *ret)
{
	if (!auth_keys_is_good(keys, id))
		return -EACCES;
	*ret = find(keys, id)->who;
	return 0;
}

bool auth_keys_is_orphan(const struct auth_keys *keys, const char *id)
{
	const struct entry *e = find(keys, id);

	return e && has_lost_maker(keys, e, clock_wall_ms());
}

/* A key's own state is told to whoever has its secret; anybody else learns nothing. */
static int check_hash(struct auth_keys *keys, const uint8_t hash[HASH_LEN], struct principal *ret,
		      struct err *err)
{
	struct entry *e = find_hash(keys, hash);
	int64_t now_ms = clock_wall_ms();

	if (!e)
		return err_set(err, EACCES, "the API key is not known");
	if (e->row.revoked_ms != 0)
		return err_set(err, EACCES, "the API key was revoked");
	if (has_expired(e, now_ms))
		return err_set(err, EACCES, "the API key has expired");
	if (has_lost_maker(keys, e, now_ms))
		return err_set(err, EACCES, "the key that made this API key has ended");
	note_use(keys, e, now_ms);
	*ret = e->who;
	return 0;
}

static int hash_given(const char *key, uint8_t hash[HASH_LEN], struct err *err)
{
	int r = api_key_hash(key, hash);

	if (r == -EACCES)
		return err_set(err, EACCES,
			       "the API key is malformed: want holt_ and 40 hex digits");
	return r < 0 ? err_sys(err, r, "API key") : 0;
}

/* The key of "Bearer <key>", blanks around it gone. */
static int bearer(const char *header, char key[KEY_TEXT_MAX], struct err *err)
{
	struct str s = str_trim(str_of(header));

	if (s.len <= 7 || strncasecmp(s.data, "Bearer ", 7) != 0)
		return err_set(err, EACCES, "Authorization: want Bearer and an API key");
	s = str_trim((struct str){ s.data + 7, s.len - 7 });
	if (str_format(key, KEY_TEXT_MAX, "%.*s", (int)s.len, s.data) < 0)
		return err_set(err, EACCES, "Authorization: that is too long for an API key");
	return 0;
}

static int bearer_hash(const char *header, uint8_t hash[HASH_LEN], struct err *err)
{
	char key[KEY_TEXT_MAX];
	int r = bearer(header, key, err);

	if (r == 0)
		r = hash_given(key, hash, err);
	explicit_bzero(key, sizeof(key));
	return r;
}

int auth_check(struct auth_keys *keys, const char *authorization, const char *x_api_key,
	       struct principal *ret, struct err *err)
{
	uint8_t hash[HASH_LEN], other[HASH_LEN];
	int r;

	if (!authorization && !x_api_key)
		return err_set(err, EACCES,
			       "an API key is needed: Authorization: Bearer, or X-API-Key");
	r = authorization ? bearer_hash(authorization, hash, err)
			  : hash_given(x_api_key, hash, err);
	if (r < 0)
		return r;
	if (authorization && x_api_key) {
		r = hash_given(x_api_key, other, err);
		if (r < 0)
			return r;
		if (!secret_bytes_equal(hash, other, HASH_LEN))
			return err_set(err, EACCES, "two different API keys were given");
	}
	return check_hash(keys, hash, ret, err);
}

int auth_check_token(struct auth_keys *keys, const char *token, struct principal *ret,
		     struct err *err)
{
	uint8_t hash[HASH_LEN];
	int r;

	if (!token)
		return err_set(err, EACCES, "an API key is needed: ?token=");
	r = hash_given(token, hash, err);
	return r < 0 ? r : check_hash(keys, hash, ret, err);
}

size_t auth_keys_take_used(struct auth_keys *keys, struct auth_used *ret, size_t max)
{
	size_t n = 0;

	LIST_FOREACH (&keys->used, e, struct entry, used) {
		if (n == max)
			break;
		memcpy(ret[n].key_id, e->who.key_id, sizeof(ret[n].key_id));
		ret[n++].last_used_ms = e->row.last_used_ms;
		list_remove(&e->used);
	}
	return n;
}
