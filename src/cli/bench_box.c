#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/bench.h"
#include "cli/box_args.h"
#include "provider/guest_client.h"

#define POOL_WAIT_MS 60000
#define QUIET_MS 600000u /* a pool does not shrink while it is measured */

/* With what `holt exec` gives every command. */
void box_exec_true(struct guest_exec *e)
{
	*e = (struct guest_exec){ .kind = EXEC_COMMAND,
				  .flags = EXEC_LOGIN,
				  .timeout_ms = 30000,
				  .user = "",
				  .cwd = "",
				  .code = "",
				  .argc = 1,
				  .argv = { "/bin/true" },
				  .envc = 2,
				  .envp = { BOX_DEFAULT_PATH, BOX_DEFAULT_LANG } };
}

void box_exec_code(struct guest_exec *e, uint8_t kind, const char *code)
{
	box_exec_true(e);
	e->kind = kind;
	e->code = code;
	e->argc = 0;
	e->argv[0] = NULL;
}

int box_wait_pool(struct launcher *l, uint32_t template_id, uint32_t ready, struct err *err)
{
	const struct timespec nap = { .tv_nsec = 500000 };
	uint64_t deadline = clock_now_ms() + POOL_WAIT_MS;
	struct pool_state s;

	for (;;) {
		int r = launcher_pool_state_sync(l, template_id, &s, err);

		if (r < 0)
			return r;
		if (s.ready >= ready && s.building == 0)
			return 0;
		if (clock_now_ms() > deadline)
			return err_set(err, ETIMEDOUT, "the pool has %u of %u boxes after %d s",
				       s.ready, ready, POOL_WAIT_MS / 1000);
		(void)nanosleep(&nap, NULL);
	}
}

int box_launcher(const struct template_spec *t, uint32_t pool, struct launcher **ret,
		 struct err *err)
{
	_cleanup_(launcher_stop_p) struct launcher *l = NULL;
	const struct launcher_options o = { 0 };
	struct pool_spec p = { t->id, pool, pool, QUIET_MS, 0 };
	int r = launcher_start(&o, &l, err);

	if (r == 0)
		r = launcher_template_sync(l, t, -1, err);
	if (r == 0 && pool)
		r = launcher_pool_sync(l, &p, err);
	if (r == 0 && pool)
		r = box_wait_pool(l, t->id, pool, err);
	if (r < 0)
		return r;
	*ret = TAKE(l);
	return 0;
}

/* The run did what was asked: a benchmark of failures would be quick. */
static int check(const struct box_probe *p, const struct guest_result *r, struct err *err)
{
	if (r->exit.code != 0 || r->exit.flags)
		return err_set(err, EIO, "the command ended with code %u, flags %#x: %.100s",
			       r->exit.code, r->exit.flags, buf_str(&r->err));
	if (p->output && strcmp(buf_str(&r->out), p->output) != 0)
		return err_set(err, EIO, "the command printed '%.60s'", buf_str(&r->out));
	if (p->pool && p->exec.kind != EXEC_COMMAND && !r->warm)
		return err_set(err, EIO, "no interpreter was waiting in the box");
	return 0;
}

static int run(const struct box_probe *p, struct guest_client *g, uint64_t *ret_end,
	       struct err *err)
{
	struct guest_result result = { 0 };
	int r = guest_exec_sync(g, &p->exec, NULL, 0, &result, err);

	*ret_end = clock_now_ns();
	if (r == 0)
		r = check(p, &result, err);
	guest_result_done(&result);
	return r;
}

/* Claims, runs and removes; *ret_ns is from the claim to the result, or to the box's end. */
static int run_fresh(const struct box_probe *p, uint64_t *ret_ns, struct err *err)
{
	_cleanup_(guest_free_p) struct guest_client *g = NULL;
	struct launch_spec spec = { .template_id = p->template_id, .flags = p->claim_flags };
	struct launcher_box box;
	uint64_t began = clock_now_ns(), end = 0;
	int r, gone;

	r = launcher_claim_sync(p->launcher, &spec, &box, err);
	if (r < 0)
		return r;
	if (p->pool && !(box.flags & BOX_WARM))
		r = err_set(err, EIO, "no box was waiting");
	if (r == 0)
		r = guest_create(TAKE_FD(box.sock), &g, err);
	if (r == 0)
		r = run(p, g, &end, err);
	gone = launcher_destroy_sync(p->launcher, box.id, NULL, r < 0 ? NULL : err);
	if (p->until_gone)
		end = clock_now_ns();
	launcher_box_done(&box);
	*ret_ns = end - began;
	return r < 0 ? r : gone;
}

int box_once(void *self, uint64_t *ret_ns, struct err *err)
{
	const struct box_probe *p = self;
	uint64_t began, end = 0;
	int r;

	if (p->live) {
		began = clock_now_ns();
		r = run(p, p->live, &end, err);
		*ret_ns = end - began;
		return r;
	}
	if (p->pool) { /* full again, so that its refill is not measured */
		r = box_wait_pool(p->launcher, p->template_id, p->pool, err);
		if (r < 0)
			return r;
	}
	return run_fresh(p, ret_ns, err);
}
