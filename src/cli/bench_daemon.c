#include "cli/bench_daemon.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/machine.h"
#include "base/str.h"
#include "json/jv.h"

#define POOL_MS 60000
#define ANSWER_MAX (8u << 20)

CLEANUP_FUNC(struct jv_doc *, jv_free)

/* ---- what asks the daemon ---- */

void bench_target(char dst[BENCH_TARGET], const char *id, const char *rest)
{
	(void)snprintf(dst, BENCH_TARGET, "/api/v1/sandboxes/%s%s", id, rest);
}

void bench_box(char dst[BENCH_BOX], uint32_t cores, const char *more)
{
	struct machine m;

	machine_read(&m);
	if (cores == 0)
		(void)str_copy(dst, BENCH_BOX, "{}");
	else
		(void)snprintf(dst, BENCH_BOX, "{\"resources\":{\"cpu\":%u%s}}",
			       cores < m.cpus ? cores : m.cpus, more);
}

int bench_sandbox_create(struct own_daemon *d, const char *body, struct bench_sandbox *ret,
			 struct err *err)
{
	_cleanup_(buf_done) struct buf answer = { 0 };
	_cleanup_(jv_free_p) struct jv_doc *doc = NULL;
	int r = fetch_want(&d->conn, 201, "POST", "/api/v1/sandboxes", body, &answer, err);
	const char *id, *start;

	if (r == 0)
		r = jv_parse(answer.data, answer.len, ANSWER_MAX, &doc, err);
	if (r < 0)
		return r;
	id = jv_text(jv_get(jv_root(doc), "id"));
	start = jv_text(jv_get(jv_root(doc), "start"));
	if (!id || !start || str_copy(ret->id, sizeof(ret->id), id) < 0)
		return err_set(err, EPROTO, "a sandbox is %.150s", buf_str(&answer));
	ret->is_warm = strcmp(start, "warm") == 0;
	return 0;
}

int bench_sandbox_delete(struct own_daemon *d, const char *id, struct err *err)
{
	char target[BENCH_TARGET];

	bench_target(target, id, "");
	return fetch_want(&d->conn, 204, "DELETE", target, NULL, NULL, err);
}

static bool is_full(const struct buf *answer, const char *name)
{
	_cleanup_(jv_free_p) struct jv_doc *doc = NULL;
	uint64_t ready, building, target;

	if (jv_parse(answer->data, answer->len, ANSWER_MAX, &doc, NULL) < 0)
		return false;
	JV_FOREACH (jv_get(jv_root(doc), "items"), it) {
		const char *is = jv_text(jv_get(it.value, "template"));

		if (!is || strcmp(is, name) != 0)
			continue;
		return jv_u64(jv_get(it.value, "ready"), &ready) == 0 &&
		       jv_u64(jv_get(it.value, "building"), &building) == 0 &&
		       jv_u64(jv_get(it.value, "target"), &target) == 0 && building == 0 &&
		       ready > 0 && ready >= target;
	}
	return false;
}

int bench_pool_wait(struct own_daemon *d, const char *name, struct err *err)
{
	_cleanup_(buf_done) struct buf answer = { 0 };
	uint64_t deadline = clock_now_ms() + POOL_MS;

	for (;;) {
		int r = fetch_want(&d->conn, 200, "GET", "/api/v1/pool", NULL, &answer, err);

		if (r < 0 || is_full(&answer, name))
			return r;
		if (clock_now_ms() > deadline)
			return err_set(err, ETIMEDOUT, "the pool is not full after %d s: %.120s",
				       POOL_MS / 1000, buf_str(&answer));
		bench_nap_ms(1);
	}
}

int bench_daemon_start(struct own_daemon *d, struct err *err)
{
	static const char *const kept[] = { BENCH_SETTING, NULL };

	return own_daemon_start(d, "bench", kept, err);
}
