#include "base/map.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SLOTS_MIN ((size_t)8)

/* Open addressing, linear probing, at most three quarters full. Removal shifts the run back, so
 * there are no tombstones and a map that lives long does not slow down. */
struct slot {
	char *key; /* owned; NULL when the slot is empty */
	size_t key_len;
	uint64_t hash;
	void *value; /* borrowed */
};

struct map {
	struct slot *slots; /* owned; NULL until the first entry */
	size_t mask;        /* slots - 1; their number is a power of two */
	size_t len, max;
	uint64_t secret[2];
};

static uint64_t rotl(uint64_t x, unsigned bits)
{
	return (x << bits) | (x >> (64 - bits));
}

static void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = rotl(v[1], 13) ^ v[0];
	v[3] = rotl(v[3], 16) ^ v[2];
	v[0] = rotl(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = rotl(v[1], 17) ^ v[2];
	v[3] = rotl(v[3], 21) ^ v[0];
	v[2] = rotl(v[2], 32);
}

/* SipHash-1-3: what hash tables need. It guards bucket choice, it is no message authentication. */
static uint64_t sip_hash(const uint64_t secret[2], const char *key, size_t n)
{
	uint64_t v[4] = {
		secret[0] ^ 0x736f6d6570736575ull,
		secret[1] ^ 0x646f72616e646f6dull,
		secret[0] ^ 0x6c7967656e657261ull,
		secret[1] ^ 0x7465646279746573ull,
	};
	uint64_t word = 0;
	size_t i = 0;

	for (; n - i >= 8; i += 8) {
		memcpy(&word, key + i, 8);
		v[3] ^= word;
		sip_round(v);
		v[0] ^= word;
	}
	word = 0;
	if (n > i)
		memcpy(&word, key + i, n - i);
	word |= (uint64_t)n << 56;
	v[3] ^= word;
	sip_round(v);
	v[0] ^= word;
	v[2] ^= 0xff;
	for (int k = 0; k < 3; k++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

struct map *map_create(size_t max_entries)
{
	struct map *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->max = max_entries;
	if (getentropy(m->secret, sizeof(m->secret)) < 0)
		return map_free(m);
	return m;
}

struct map *map_free(struct map *m)
{
	if (!m)
		return NULL;
	for (size_t i = 0; m->slots && i <= m->mask; i++)
		free(m->slots[i].key);
	free(m->slots);
	free(m);
	return NULL;
}

size_t map_len(const struct map *m)
{
	return m->len;
}

static bool slot_is(const struct slot *s, uint64_t hash, const char *key, size_t n)
{
	return s->hash == hash && s->key_len == n && (n == 0 || memcmp(s->key, key, n) == 0);
}

/* The slot of the key, or the empty one where it would go. Slots must exist. */
static struct slot *find(const struct map *m, uint64_t hash, const char *key, size_t n)
{
	for (size_t i = hash & m->mask;; i = (i + 1) & m->mask) {
		struct slot *s = &m->slots[i];

		if (!s->key || slot_is(s, hash, key, n))
			return s;
	}
}

void *map_get(const struct map *m, const char *key, size_t key_len)
{
	if (m->len == 0)
		return NULL;
	return find(m, sip_hash(m->secret, key, key_len), key, key_len)->value;
}

static int make_room(struct map *m)
{
	size_t old = m->slots ? m->mask + 1 : 0;
	size_t count = old ? old * 2 : SLOTS_MIN;
	struct map bigger = *m;

	if (m->len + 1 <= old / 4 * 3)
		return 0;
	bigger.slots = calloc(count, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	bigger.mask = count - 1;
	for (size_t i = 0; i < old; i++) {
		struct slot *s = &m->slots[i];

		if (s->key)
			*find(&bigger, s->hash, s->key, s->key_len) = *s;
	}
	free(m->slots);
	*m = bigger;
	return 0;
}

static int insert(struct map *m, uint64_t hash, const char *key, size_t n, void *value)
{
	char *copy;

	if (m->len >= m->max)
		return -E2BIG;
	copy = malloc(n ? n : 1);
	if (!copy || make_room(m) < 0) {
		free(copy);
		return -ENOMEM;
	}
	if (n > 0)
		memcpy(copy, key, n);
	*find(m, hash, key, n) = (struct slot){ copy, n, hash, value };
	m->len++;
	return 0;
}

int map_put(struct map *m, const char *key, size_t key_len, void *value, void **ret_old)
{
	uint64_t hash = sip_hash(m->secret, key, key_len);
	struct slot *s = m->slots ? find(m, hash, key, key_len) : NULL;
	void *old = NULL;
	int r;

	if (s && s->key) {
		old = s->value;
		s->value = value;
	} else {
		r = insert(m, hash, key, key_len, value);
		if (r < 0)
			return r;
	}
	if (ret_old)
		*ret_old = old;
	return 0;
}

/* Closes the gap at `hole`: whatever of the run behind it may stand there moves up. */
static void close_gap(struct map *m, size_t hole)
{
	for (size_t i = (hole + 1) & m->mask; m->slots[i].key; i = (i + 1) & m->mask) {
		size_t home = m->slots[i].hash & m->mask;

		if (((i - home) & m->mask) < ((i - hole) & m->mask))
			continue; /* it would stand before its home */
		m->slots[hole] = m->slots[i];
		hole = i;
	}
	m->slots[hole] = (struct slot){ 0 };
}

void *map_remove(struct map *m, const char *key, size_t key_len)
{
	struct slot *s;
	void *value;

	if (m->len == 0)
		return NULL;
	s = find(m, sip_hash(m->secret, key, key_len), key, key_len);
	if (!s->key)
		return NULL;
	value = s->value;
	free(s->key);
	close_gap(m, (size_t)(s - m->slots));
	m->len--;
	return value;
}

bool map_next(const struct map *m, struct map_iter *it)
{
	for (; m->slots && it->pos <= m->mask; it->pos++) {
		const struct slot *s = &m->slots[it->pos];

		if (!s->key)
			continue;
		it->key = s->key;
		it->key_len = s->key_len;
		it->value = s->value;
		it->pos++;
		return true;
	}
	return false;
}
