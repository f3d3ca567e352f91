#include "auth/users.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "store/store.h"
#include "json/jv.h"
#include "json/jw.h"

#define TEXT_MAX (16u << 10)

struct users {
	struct map *by_name; /* owned; so are the users in it */
};

bool user_name_is_valid(const char *name)
{
	size_t space = strspn(name, "0123456789abcdef"), n;

	if (strlen(name) > OWNER_MAX)
		return false;
	if (name[space] == OWNER_SPACE_MARK && space == OWNER_SPACE_LEN)
		name += space + 1;
	n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
			 "._@:|+-");
	return n > 0 && name[n] == '\0';
}

bool user_is_owner(const char *name)
{
	if (strchr(name, OWNER_SPACE_MARK))
		return user_name_is_valid(name);
	for (const char *p = name; *p != '\0'; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return false;
	return name[0] != '\0' && strlen(name) <= OWNER_MAX;
}

/* ---- the row's text ---- */

int user_write(const struct user *u, struct buf *text)
{
	struct jw w = jw_begin(text);
	char rate[RATE_TEXT_SIZE];

	jw_object_begin(&w);
	jw_str_field(&w, "role", role_name(u->role));
	jw_bool_field(&w, "disabled", u->is_disabled);
	jw_key(&w, "quota");
	jw_object_begin(&w);
	for (int i = 0; i < QUOTA_COUNT; i++)
		if (u->own_quota & 1u << i)
			jw_uint_field(&w, quota_name((enum quota_kind)i), u->quota.v[i]);
	jw_object_end(&w);
	jw_key(&w, "rates");
	jw_object_begin(&w);
	for (int i = 0; i < RATE_CLASS_COUNT; i++) {
		if (!(u->own_rates & 1u << i))
			continue;
		rate_format(u->rates[i], rate);
		jw_str_field(&w, rate_class_name((enum rate_class)i), rate);
	}
	jw_object_end(&w);
	jw_object_end(&w);
	return jw_end(&w);
}

static int read_limits(struct jv root, struct user *u)
{
	struct jv quota = jv_get(root, "quota"), rates = jv_get(root, "rates"), v;

	for (int i = 0; i < QUOTA_COUNT; i++) {
		v = jv_get(quota, quota_name((enum quota_kind)i));
		if (jv_kind(v) == JV_ABSENT)
			continue;
		if (jv_u64(v, &u->quota.v[i]) < 0)
			return -EINVAL;
		u->own_quota |= 1u << i;
	}
	for (int i = 0; i < RATE_CLASS_COUNT; i++) {
		v = jv_get(rates, rate_class_name((enum rate_class)i));
		if (jv_kind(v) == JV_ABSENT)
			continue;
		if (rate_parse(jv_text(v), &u->rates[i]) < 0)
			return -EINVAL;
		u->own_rates |= 1u << i;
	}
	return 0;
}

int user_read(const struct object_row *row, struct user *ret, struct err *err)
{
	struct user u = { .created_ms = row->created_ms, .updated_ms = row->updated_ms };
	struct jv_doc *doc = NULL;
	int r;

	if (!user_name_is_valid(row->id))
		return err_set(err, EINVAL, "user '%.63s': its name is none", row->id);
	(void)str_copy(u.name, sizeof(u.name), row->id); /* fits: see above */
	r = jv_parse(row->text, strlen(row->text), TEXT_MAX, &doc, err);
	if (r < 0)
		return r;
	r = role_from(jv_text(jv_get(jv_root(doc), "role")), &u.role);
	if (r == 0)
		r = jv_bool(jv_get(jv_root(doc), "disabled"), &u.is_disabled);
	if (r == 0)
		r = read_limits(jv_root(doc), &u);
	(void)jv_free(doc);
	if (r < 0)
		return err_set(err, EINVAL, "user '%s': its record is damaged", u.name);
	*ret = u;
	return 0;
}

/* ---- the table ---- */

struct users *users_create(size_t max)
{
	struct users *users = calloc(1, sizeof(*users));

	if (!users)
		return NULL;
	users->by_name = map_create(max);
	return users->by_name ? users : users_free(users);
}

struct users *users_free(struct users *users)
{
	if (!users)
		return NULL;
	if (users->by_name)
		MAP_FOREACH (users->by_name, it)
			free(it.value);
	(void)map_free(users->by_name);
	free(users);
	return NULL;
}

int users_put(struct users *users, const struct user *u)
{
	struct user *copy = malloc(sizeof(*copy));
	void *old = NULL;
	int r;

	if (!copy)
		return -ENOMEM;
	*copy = *u;
	r = map_put(users->by_name, copy->name, strlen(copy->name), copy, &old);
	free(r < 0 ? copy : old);
	return r;
}

void users_remove(struct users *users, const char *name)
{
	free(map_remove(users->by_name, name, strlen(name)));
}

const struct user *users_find(const struct users *users, const char *name)
{
	return users ? map_get(users->by_name, name, strlen(name)) : NULL;
}

/* ---- asking ---- */

bool users_is_good(const struct users *users, const char *owner)
{
	const struct user *u = users_find(users, owner);

	return !u || !u->is_disabled;
}

int users_admit(const struct users *users, struct principal *p, struct err *err)
{
	const struct user *u = users_find(users, p->owner);

	if (!u)
		return 0;
	if (u->is_disabled)
		return err_set(err, EACCES, "the user is disabled");
	if (u->role < p->role) {
		p->role = u->role;
		p->scopes &= scope_of_role(u->role);
	}
	return 0;
}

void users_quota(const struct users *users, const char *owner, struct quota *ret)
{
	const struct user *u = users_find(users, owner);

	for (int i = 0; u && i < QUOTA_COUNT; i++)
		if (u->own_quota & 1u << i)
			ret->v[i] = u->quota.v[i];
}

void users_rate(const struct users *users, const char *owner, enum rate_class class,
		struct rate *ret)
{
	const struct user *u = users_find(users, owner);

	if (u && u->own_rates & 1u << class)
		*ret = u->rates[class];
}
