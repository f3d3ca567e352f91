#include "sandbox/quota.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "sandbox/announce.h"
#include "sandbox/registry.h"

#define OWNERS_MAX (1u << 20)
#define DAY_MS 86400000
#define TELL_MS 60000 /* who goes on asking is not told of each refusal */

struct owner {
	struct quota used;
	int32_t day;     /* of the executions that are counted */
	int64_t told_ms; /* when an event said last that it was too much */
};

struct quota_book {
	struct map *owners; /* owned; so are the values */
};

struct quota_book *quota_book_create(void)
{
	struct quota_book *book = calloc(1, sizeof(*book));

	if (!book)
		return NULL;
	book->owners = map_create(OWNERS_MAX);
	return book->owners ? book : quota_book_free(book);
}

struct quota_book *quota_book_free(struct quota_book *book)
{
	if (!book)
		return NULL;
	if (book->owners)
		MAP_FOREACH (book->owners, it)
			free(it.value);
	(void)map_free(book->owners);
	free(book);
	return NULL;
}

static int32_t today(const struct sandboxes *all)
{
	return (int32_t)(wall_ms(all) / DAY_MS);
}

static bool is_empty(const struct owner *o, int32_t day)
{
	for (int i = 0; i < QUOTA_COUNT; i++)
		if (o->used.v[i] > 0 && (i != QUOTA_EXECUTIONS || o->day == day))
			return false;
	return true;
}

/* Of yesterday's guests nothing is left to remember. One at a time, because a map is not changed
 * while it is walked; a full book has many, and is walked this far only then. */
static void make_room(struct sandboxes *all)
{
	struct map *owners = all->quota->owners;

	MAP_FOREACH (owners, it)
		if (is_empty(it.value, today(all))) {
			free(map_remove(owners, it.key, it.key_len));
			return;
		}
}

static struct owner *find(const struct sandboxes *all, const char *name)
{
	struct owner *o = map_get(all->quota->owners, name, strlen(name));

	if (o && o->day != today(all)) {
		o->day = today(all);
		o->used.v[QUOTA_EXECUTIONS] = 0;
	}
	return o;
}

/* NULL without memory. */
static struct owner *find_or_add(struct sandboxes *all, const char *name)
{
	struct owner *o = find(all, name);

	if (o)
		return o;
	if (map_len(all->quota->owners) >= OWNERS_MAX)
		make_room(all);
	o = calloc(1, sizeof(*o));
	if (!o)
		return NULL;
	o->day = today(all);
	if (map_put(all->quota->owners, name, strlen(name), o, NULL) == 0)
		return o;
	free(o);
	return NULL;
}

static void limits_of(const struct sandboxes *all, const char *owner, struct quota *ret)
{
	*ret = all->settings.quota;
	if (all->quota_of)
		all->quota_of(all->quota_user, owner, ret);
}

void quota_of(struct sandboxes *all, const char *owner, struct quota *ret_limits,
	      struct quota *ret_used)
{
	const struct owner *o = find(all, owner);

	if (ret_limits)
		limits_of(all, owner, ret_limits);
	if (ret_used)
		*ret_used = o ? o->used : (struct quota){ 0 };
}

/* ---- counting ---- */

/* What a sandbox of these limits weighs in a state. */
static struct quota weight(const struct limits *l, enum sandbox_state state)
{
	struct quota q = { 0 };

	if (!state_is_live(state))
		return q;
	q.v[QUOTA_SANDBOXES] = 1;
	q.v[QUOTA_DISK] = l->disk_bytes;
	if (state == SANDBOX_SUSPENDED) /* nothing of it but its place and its files */
		return q;
	q.v[QUOTA_CPU] = state == SANDBOX_PAUSED ? 0 : l->cpu_milli;
	q.v[QUOTA_MEMORY] = l->memory_bytes;
	q.v[QUOTA_PIDS] = l->pids;
	return q;
}

static int refuse(struct sandboxes *all, const char *owner, struct owner *o,
		  const struct quota_refusal *q, struct err *err)
{
	int64_t now = wall_ms(all);

	if (o->told_ms == 0 || now - o->told_ms >= TELL_MS) {
		o->told_ms = now;
		announce_quota(all, owner, q);
	}
	return quota_refuse(err, owner, q->kind, q->limit, q->used);
}

/* What becomes no more than it was is never refused, however little is allowed by now. */
static int check(struct sandboxes *all, const char *owner, struct owner *o,
		 const struct quota *from, const struct quota *to, struct err *err)
{
	struct quota limits;

	limits_of(all, owner, &limits);
	for (int i = 0; i < QUOTA_COUNT; i++) {
		uint64_t used = o->used.v[i], more = to->v[i] - from->v[i];

		if (to->v[i] <= from->v[i] || limits.v[i] == 0)
			continue;
		if (used > limits.v[i] || more > limits.v[i] - used)
			return refuse(all, owner, o,
				      &(struct quota_refusal){ i, limits.v[i], used }, err);
	}
	return 0;
}

int quota_admit(struct sandbox *sb, unsigned state, struct err *err)
{
	struct owner *o = find_or_add(sb->all, sb->owner);
	struct quota to = weight(&sb->limits, (enum sandbox_state)state);
	int r;

	if (!o)
		return err_sys(err, ENOMEM, "sandbox");
	r = check(sb->all, sb->owner, o, &sb->charged, &to, err);
	return r < 0 ? r : capacity_admit(sb->all, &sb->charged, &to, err);
}

static void charge(struct sandbox *sb, const struct quota *to)
{
	struct owner *o = find(sb->all, sb->owner);

	if (!o) /* without memory at a start: what is not counted costs nothing */
		return;
	for (int i = 0; i < QUOTA_COUNT; i++) {
		o->used.v[i] += to->v[i] - sb->charged.v[i];
		sb->all->capacity.promised.v[i] += to->v[i] - sb->charged.v[i];
	}
	sb->charged = *to;
	if (is_empty(o, o->day))
		free(map_remove(sb->all->quota->owners, sb->owner, strlen(sb->owner)));
}

void quota_settle(struct sandbox *sb)
{
	struct quota to = weight(&sb->limits, sb->state);

	if (sb->owner[0] == '\0') /* not filled in yet */
		return;
	(void)find_or_add(sb->all, sb->owner);
	charge(sb, &to);
}

void quota_leave(struct sandbox *sb)
{
	if (sb->owner[0] != '\0')
		charge(sb, &(struct quota){ 0 });
}

int quota_take(struct sandboxes *all, const char *owner, enum quota_kind kind, uint64_t n,
	       struct err *err)
{
	struct quota from = { 0 }, to = { 0 };
	struct owner *o = find_or_add(all, owner);
	int r;

	if (!o)
		return err_sys(err, ENOMEM, "quota");
	to.v[kind] = n;
	r = check(all, owner, o, &from, &to, err);
	if (r == 0)
		o->used.v[kind] += n;
	return r;
}

void quota_charge(struct sandboxes *all, const char *owner, enum quota_kind kind, uint64_t n)
{
	struct owner *o = find_or_add(all, owner);

	if (o)
		o->used.v[kind] += n;
}

void quota_give(struct sandboxes *all, const char *owner, enum quota_kind kind, uint64_t n)
{
	struct owner *o = find(all, owner);

	if (o)
		o->used.v[kind] -= n < o->used.v[kind] ? n : o->used.v[kind];
}

/* ---- the start ---- */

static void on_usage(void *user, const struct usage_row *row)
{
	struct sandboxes *all = user;
	struct owner *o;

	if (row->day != today(all) || row->executions == 0)
		return;
	o = find_or_add(all, row->owner);
	if (o)
		o->used.v[QUOTA_EXECUTIONS] += row->executions;
}

int quota_load(struct sandboxes *all, struct err *err)
{
	return store_load_usage(all->store, today(all), on_usage, all, err);
}
