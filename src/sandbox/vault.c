#include "sandbox/vault.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "json/jv.h"
#include "json/jw.h"

#define SECRETS_MAX 4096u
#define ARENA_MAX (64u << 10)

/* ---- as it is kept ---- */

static const struct jv_field kept[] = {
	JV_FIELD("version", U64, struct vault_secret, version, .flags = JV_REQUIRED, .min = 1,
		 .max = INT64_MAX),
	JV_FIELD("metadata", PAIRS, struct vault_secret, metadata, .max = VAULT_METADATA_MAX,
		 .text_max = VAULT_METADATA_VALUE_MAX),
};

static void secret_done(void *data)
{
	struct vault_secret *s = data;

	(void)arena_free(s->arena);
	free(s);
}

static int secret_parse(const char *text, void **ret)
{
	struct vault_secret *s = calloc(1, sizeof(*s));
	struct jv_doc *doc = NULL;
	int r = s && (s->arena = arena_create(ARENA_MAX)) ? 0 : -ENOMEM;

	if (r == 0)
		r = jv_parse(text, strlen(text), OBJECT_TEXT_MAX, &doc, NULL);
	if (r == 0)
		r = jv_decode_known(jv_root(doc), kept, sizeof(kept) / sizeof(kept[0]), s->arena, s,
				    NULL);
	if (r == 0 && !jv_text(jv_get(jv_root(doc), "value")))
		r = -EINVAL;
	(void)jv_free(doc);
	if (r == 0) {
		s->bytes = strlen(text);
		*ret = s;
	} else if (s) {
		secret_done(s);
	}
	return r == 0 || r == -ENOMEM ? r : -EINVAL;
}

static uint64_t secret_bytes(const void *data)
{
	return ((const struct vault_secret *)data)->bytes;
}

const struct object_kind vault_kind = {
	.name = "secret",
	.noun = "secret",
	.max = SECRETS_MAX,
	.owner_max = VAULT_OWNER_MAX,
	.parse = secret_parse,
	.free = secret_done,
	.bytes = secret_bytes,
};

static int write_text(const char *value, const struct jv_pairs *metadata, uint64_t version,
		      struct buf *b)
{
	struct jw w = jw_begin(b);

	jw_object_begin(&w);
	jw_uint_field(&w, "version", version);
	jw_key(&w, "metadata");
	jw_object_begin(&w);
	for (size_t i = 0; metadata->len != VAULT_UNSAID && i < metadata->len; i++)
		jw_str_field(&w, metadata->items[i].name, metadata->items[i].value);
	jw_object_end(&w);
	jw_str_field(&w, "value", value);
	jw_object_end(&w);
	return jw_end(&w);
}

static void forget(struct buf *b)
{
	if (b->data)
		explicit_bzero(b->data, b->len);
	buf_done(b);
}

/* ---- what may be asked for ---- */

/* In lower case; -EINVAL. */
static int fold_name(const char *name, char ret[OBJECT_NAME_MAX + 1])
{
	size_t n = strlen(name);

	if (n == 0 || n > OBJECT_NAME_MAX)
		return -EINVAL;
	for (size_t i = 0; i <= n; i++) {
		char c = name[i];

		if (c != '\0' && !isalnum((unsigned char)c) && c != '_' && c != '-')
			return -EINVAL;
		ret[i] = (char)tolower((unsigned char)c);
	}
	return 0;
}

static int check_name(const char *name, char ret[OBJECT_NAME_MAX + 1], struct err *err)
{
	if (fold_name(name, ret) < 0)
		return err_set(err, EINVAL, "name: want 1 to %d letters, digits, '_' and '-'",
			       OBJECT_NAME_MAX);
	if (strncmp(ret, VAULT_ID_PREFIX, strlen(VAULT_ID_PREFIX)) == 0)
		return err_set(err, EINVAL, "name: '%s' begins ids", VAULT_ID_PREFIX);
	return 0;
}

static int check_metadata(const struct jv_pairs *m, struct err *err)
{
	size_t sum = 0;

	if (m->len == VAULT_UNSAID)
		return 0;
	for (size_t i = 0; i < m->len; i++) {
		size_t n = strlen(m->items[i].name);

		if (n > VAULT_METADATA_KEY_MAX)
			return err_set(err, EINVAL, "metadata: want names of at most %d bytes",
				       VAULT_METADATA_KEY_MAX);
		sum += n + strlen(m->items[i].value);
	}
	if (sum > VAULT_METADATA_BYTES_MAX)
		return err_set(err, EINVAL, "metadata: %zu bytes, limit %u", sum,
			       VAULT_METADATA_BYTES_MAX);
	return 0;
}

/* ---- the calls ---- */

static struct objects *table(struct sandboxes *all)
{
	return sandboxes_objects(all, OBJECTS_SECRET);
}

struct object *vault_find(struct sandboxes *all, const char *owner, const char *id_or_name)
{
	const size_t skip = strlen(VAULT_ID_PREFIX);
	char name[OBJECT_NAME_MAX + 1];
	struct object *o;

	if (strncmp(id_or_name, VAULT_ID_PREFIX, skip) != 0)
		return fold_name(id_or_name, name) < 0 ? NULL
						       : objects_by_name(table(all), owner, name);
	o = objects_find(table(all), id_or_name + skip, NULL);
	return o && strcmp(o->owner, owner) == 0 ? o : NULL;
}

void vault_add(struct sandboxes *all, const char *owner, const struct vault_wish *wish,
	       object_cb cb, void *user)
{
	char name[OBJECT_NAME_MAX + 1];
	struct err err = { 0 };
	struct buf b = { 0 };
	int r = check_name(wish->name, name, &err);

	if (r == 0)
		r = check_metadata(&wish->metadata, &err);
	if (r == 0 && (r = write_text(wish->value, &wish->metadata, 1, &b)) < 0)
		(void)err_sys(&err, r, "secret");
	if (r < 0)
		cb(user, NULL, &err);
	else
		objects_add(
			table(all),
			&(struct object_put){ .owner = owner, .name = name, .text = buf_str(&b) },
			cb, user);
	forget(&b);
}

void vault_change(struct sandboxes *all, const char *id, const struct vault_wish *wish,
		  object_cb cb, void *user)
{
	const struct object *o = objects_find(table(all), id, NULL);
	const struct vault_secret *s = o ? o->data : NULL;
	struct err err = { 0 };
	struct buf b = { 0 };
	int r = s ? check_metadata(&wish->metadata, &err)
		  : err_set(&err, ENOENT, "there is no secret '%.64s'", id);

	if (r == 0 && s) {
		r = write_text(wish->value,
			       wish->metadata.len == VAULT_UNSAID ? &s->metadata : &wish->metadata,
			       s->version + 1, &b);
		if (r < 0)
			(void)err_sys(&err, r, "secret");
	}
	if (r < 0)
		cb(user, NULL, &err);
	else
		objects_change(table(all), id, 0, buf_str(&b), cb, user);
	forget(&b);
}

void vault_remove(struct sandboxes *all, const char *id, object_cb cb, void *user)
{
	objects_remove(table(all), id, cb, user);
}

void vault_end_owner(struct sandboxes *all, const char *owner)
{
	objects_end_owner(table(all), owner);
}
