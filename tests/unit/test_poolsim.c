/* The size of a warm pool under loads of hours, in no time: the clock is a number. The same claims
 * are given to an oracle that knows the future. It holds what the claims to come will need at the
 * rate at which boxes can be made, and no box beyond that; as the pool, it keeps a box that it has
 * for the scale-down delay before it lets one go. Nobody who does not know the future can do with
 * fewer and serve them all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "launch/poolsize.h"

#define TICK_MS 10u
#define QUIET_MS 60000u
#define POOL_MIN 1u
#define POOL_MAX 200u
#define HOURS(n) ((n)*3600u * 1000u / TICK_MS)
#define DRAWS 10 /* of a chance, in a tick: more than one claim may come */

#define HIT_RATE 0.99
#define MORE_THAN_ORACLE 1.5

struct load {
	const char *name;
	double (*rate)(uint64_t ms);            /* claims in a second, at random */
	unsigned burst_min, burst_max, gap_sec; /* and bursts, so far apart on average */
	double scale;                           /* of the rate, so that boxes can be made so fast */
	unsigned make_ms;
};

static double draw(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return (double)(*seed >> 11) / 9007199254740992.0;
}

/* --- loads --- */

static double steps(uint64_t ms)
{
	uint64_t sec = ms / 1000 % 1200;

	return sec < 400 ? 2 : sec < 800 ? 25 : 5;
}

/* A day of two hours: what comes and goes there within minutes takes an hour elsewhere. */
static double day(uint64_t ms)
{
	double x = (double)(ms % 7200000) / 7200000.0, y = 4 * x * (1 - x);

	return 0.5 + 24.5 * y * y;
}

static double little(uint64_t ms)
{
	(void)ms;
	return 0.5;
}

static unsigned burst_part(unsigned left, uint64_t *seed)
{
	unsigned n = 2 + (unsigned)(draw(seed) * 4);

	return n < left ? n : left;
}

static void make_claims(const struct load *l, unsigned ticks, unsigned short *claims)
{
	uint64_t seed = 88172645463325252ull;
	double next = l->gap_sec;
	unsigned left = 0;

	for (unsigned t = 0; t < ticks; t++) {
		double chance = l->rate((uint64_t)t * TICK_MS) * l->scale * TICK_MS / 1000 / DRAWS;
		unsigned n = 0;

		for (int i = 0; i < DRAWS; i++)
			n += draw(&seed) < chance;
		if (left > 0) {
			unsigned part = burst_part(left, &seed);

			left -= part;
			n += part;
		} else if (l->gap_sec && (double)t * TICK_MS / 1000 >= next) {
			left = l->burst_min +
			       (unsigned)(draw(&seed) * (l->burst_max - l->burst_min + 1));
			next = (double)t * TICK_MS / 1000 + l->gap_sec * (0.5 + draw(&seed));
		}
		claims[t] = (unsigned short)n;
	}
}

/* --- the pool --- */

struct pool {
	struct poolsize size;
	unsigned ready, building;
	uint64_t done_ms[POOLSIZE_BUILDERS]; /* 0: idle */
	uint64_t hits, misses, held;         /* held: box ticks */
};

static void finish(struct pool *p, uint64_t now_ms, unsigned make_ms)
{
	for (unsigned i = 0; i < POOLSIZE_BUILDERS; i++) {
		if (p->done_ms[i] == 0 || p->done_ms[i] > now_ms)
			continue;
		p->done_ms[i] = 0;
		p->building--;
		p->ready++;
		poolsize_made(&p->size, make_ms * 1000000ull);
	}
}

/* As pool.c does it: while claims come in, only a pool that is half empty is filled. */
static void refill(struct pool *p, uint64_t now_ms, unsigned make_ms, bool quiet)
{
	uint32_t target = poolsize_target(&p->size, now_ms);

	if (!quiet && p->ready * 2 > target)
		return;
	if (p->ready > target)
		p->ready--;
	for (unsigned i = 0; i < POOLSIZE_BUILDERS; i++) {
		if (p->done_ms[i] || p->ready + p->building >= target)
			continue;
		p->done_ms[i] = now_ms + make_ms;
		p->building++;
	}
}

static void run_pool(const unsigned short *claims, unsigned ticks, unsigned make_ms, struct pool *p)
{
	memset(p, 0, sizeof(*p));
	poolsize_init(&p->size, POOL_MIN, POOL_MAX, QUIET_MS);
	p->ready = POOL_MIN;
	for (unsigned t = 0; t < ticks; t++) {
		uint64_t now_ms = 1000 + (uint64_t)t * TICK_MS;

		finish(p, now_ms, make_ms);
		for (unsigned i = 0; i < claims[t]; i++) {
			poolsize_claimed(&p->size, now_ms);
			if (p->ready > 0) {
				p->ready--;
				p->hits++;
			} else {
				p->misses++;
			}
		}
		refill(p, now_ms, make_ms, claims[t] == 0);
		p->held += p->ready + p->building;
	}
}

/* --- the oracle --- */

/* What must be there at each tick: what is claimed in it, and what is needed at the next less what
 * can be made until then. */
static void needs(const unsigned short *claims, unsigned ticks, unsigned make_ms, double *need)
{
	double made = (double)POOLSIZE_BUILDERS * TICK_MS / make_ms, after = 0;

	for (unsigned t = ticks; t-- > 0;) {
		need[t] = claims[t] + (after > made ? after - made : 0);
		after = need[t];
	}
}

/* Box ticks, with as many boxes at each as will be needed within the scale-down delay. */
static uint64_t run_oracle(const double *need, unsigned ticks, unsigned *queue)
{
	unsigned head = 0, tail = 0, whole;
	uint64_t held = 0;

	for (unsigned t = ticks; t-- > 0;) {
		while (tail > head && need[queue[tail - 1]] <= need[t])
			tail--;
		queue[tail++] = t;
		while (queue[head] > t + QUIET_MS / TICK_MS)
			head++;
		whole = (unsigned)(need[queue[head]] + 0.999999);
		held += whole > POOL_MIN ? whole : POOL_MIN;
	}
	return held;
}

static void check_load(const struct load *l, unsigned ticks)
{
	unsigned short *claims = calloc(ticks, sizeof(*claims));
	double *need = calloc(ticks, sizeof(*need)), rate, more;
	unsigned *queue = calloc(ticks, sizeof(*queue));
	uint64_t oracle;
	struct pool p;

	assert_true(claims && need && queue);
	make_claims(l, ticks, claims);
	run_pool(claims, ticks, l->make_ms, &p);
	needs(claims, ticks, l->make_ms, need);
	oracle = run_oracle(need, ticks, queue);
	rate = (double)p.hits / (double)(p.hits + p.misses);
	more = (double)p.held / (double)oracle;
	print_message("%s, %u ms to make a box: %.2f %% of %.0f claims were served at once, "
		      "with %.2f times the oracle's %.1f boxes\n",
		      l->name, l->make_ms, 100 * rate, (double)p.hits + (double)p.misses, more,
		      (double)oracle / ticks);
	assert_true(p.hits > 1000);
	assert_true(rate >= HIT_RATE);
	assert_true(more <= MORE_THAN_ORACLE);
	free(claims);
	free(need);
	free(queue);
}

static void run_loads(const struct load *loads, size_t n, unsigned ticks)
{
	for (size_t i = 0; i < n; i++)
		check_load(&loads[i], ticks);
}

static void steps_are_followed(void **state)
{
	static const struct load loads[] = {
		{ "steps", steps, 0, 0, 0, 1, 20 },
		{ "steps", steps, 0, 0, 0, 1, 60 },
		{ "steps", steps, 0, 0, 0, 0.4, 150 },
		{ "steps", steps, 0, 0, 0, 0.1, 400 },
	};

	(void)state;
	run_loads(loads, 4, HOURS(2));
}

static void a_day_is_followed(void **state)
{
	static const struct load loads[] = {
		{ "day", day, 0, 0, 0, 1, 20 },
		{ "day", day, 0, 0, 0, 1, 60 },
		{ "day", day, 0, 0, 0, 0.4, 150 },
		{ "day", day, 0, 0, 0, 0.1, 400 },
	};

	(void)state;
	run_loads(loads, 4, HOURS(4));
}

/* As long as they come more often than the pool forgets, and are not of any size at all. */
static void bursts_are_waited_for(void **state)
{
	static const struct load loads[] = {
		{ "bursts", little, 20, 30, 30, 1, 20 },
		{ "bursts", little, 20, 30, 30, 1, 60 },
		{ "bursts", little, 20, 30, 30, 1, 150 },
		{ "bursts", little, 20, 30, 30, 1, 400 },
	};

	(void)state;
	run_loads(loads, 4, HOURS(4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_are_followed),
		cmocka_unit_test(a_day_is_followed),
		cmocka_unit_test(bursts_are_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
