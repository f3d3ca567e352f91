#include "auth/buckets.h"

#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/map.h"
#include "base/str.h"

#define WHO_MAX 64
#define PS_PER_MS 1000000000ull

struct bucket {
	struct list by_use; /* in buckets.used, longest ago first */
	uint64_t level_ps;  /* how much is taken out, as the time that it takes to come back */
	uint64_t at_ns;     /* when that was so */
	size_t key_len;
	char key[WHO_MAX + 2];
};

struct buckets {
	struct map *by_key; /* owned; so are the buckets in it */
	struct list used;
	size_t max;
};

const char *rate_class_name(enum rate_class class)
{
	static const char *const names[RATE_CLASS_COUNT] = {
		[RATE_READ] = "read",
		[RATE_WRITE] = "write",
		[RATE_EXEC] = "exec",
		[RATE_CREATE] = "create",
	};

	return names[class];
}

struct buckets *buckets_create(size_t max)
{
	struct buckets *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	list_init(&b->used);
	b->max = max;
	b->by_key = map_create(max);
	return b->by_key ? b : buckets_free(b);
}

struct buckets *buckets_free(struct buckets *b)
{
	if (!b)
		return NULL;
	LIST_FOREACH (&b->used, one, struct bucket, by_use)
		free(one);
	(void)map_free(b->by_key);
	free(b);
	return NULL;
}

static void drop_oldest(struct buckets *b)
{
	struct bucket *one = LIST_ENTRY(b->used.next, struct bucket, by_use);

	(void)map_remove(b->by_key, one->key, one->key_len);
	list_remove(&one->by_use);
	free(one);
}

/* NULL without memory. */
static struct bucket *find(struct buckets *b, const char *who, enum rate_class class,
			   uint64_t now_ns)
{
	char key[WHO_MAX + 2];
	size_t n = strnlen(who, WHO_MAX);
	struct bucket *one;

	key[0] = (char)('0' + (int)class);
	memcpy(key + 1, who, n);
	n++;
	one = map_get(b->by_key, key, n);
	if (one)
		return one;
	if (map_len(b->by_key) >= b->max)
		drop_oldest(b);
	one = calloc(1, sizeof(*one));
	if (!one)
		return NULL;
	memcpy(one->key, key, n);
	one->key_len = n;
	one->at_ns = now_ns;
	list_init(&one->by_use);
	if (map_put(b->by_key, key, n, one, NULL) == 0)
		return one;
	free(one);
	return NULL;
}

static void refill(struct bucket *one, uint64_t full_ps, uint64_t now_ns)
{
	uint64_t passed_ns = now_ns > one->at_ns ? now_ns - one->at_ns : 0;

	one->at_ns = now_ns;
	if (passed_ns >= full_ps / 1000 || passed_ns * 1000 >= one->level_ps)
		one->level_ps = 0;
	else
		one->level_ps -= passed_ns * 1000;
}

static uint64_t ms_up(uint64_t ps)
{
	return (ps + PS_PER_MS - 1) / PS_PER_MS;
}

bool buckets_take(struct buckets *b, const char *who, enum rate_class class, struct rate rate,
		  uint64_t now_ns, struct bucket_state *ret)
{
	struct bucket *one = find(b, who, class, now_ns);
	uint64_t full_ps = (uint64_t)rate.per_ms * PS_PER_MS;
	uint64_t cost_ps = full_ps / rate.count;
	bool is_let_in;

	*ret = (struct bucket_state){ .remaining = rate.count };
	if (!one)
		return true;
	list_remove(&one->by_use);
	list_push_back(&b->used, &one->by_use);
	refill(one, full_ps, now_ns);
	is_let_in = one->level_ps + cost_ps <= full_ps;
	if (is_let_in)
		one->level_ps += cost_ps;
	else
		ret->wait_ms = ms_up(one->level_ps + cost_ps - full_ps);
	ret->remaining =
		one->level_ps < full_ps ? (uint32_t)((full_ps - one->level_ps) / cost_ps) : 0;
	ret->full_ms = ms_up(one->level_ps);
	return is_let_in;
}
