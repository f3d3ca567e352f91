#include "launch/builds.h"

#include <errno.h>
#include <signal.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "launch/job.h"
#include "launch/launch.h"
#include "launch/process.h"
#include "launch/sysdirs.h"
#include "launch/zygote.h"

#define RETRY_MS 1000u /* from the first late one to the next attempt; doubles with each */
#define RETRY_MAX_MS 60000u
#define TICK_MS 1000

void builds_init(struct builds *s, uint32_t limit_ms)
{
	*s = (struct builds){ .limit_ms = limit_ms ? limit_ms : BUILDS_MS };
	list_init(&s->open);
}

static void tell_state(struct launch *l)
{
	char frame[64 + WHY_MAX];

	server_send(l, frame, launch_put_builds(frame, sizeof(frame), 0, &l->builds.state));
}

int builds_check(const struct launch *l, struct err *err)
{
	const struct builds *s = &l->builds;

	if (locks_are_lost(l))
		return err_set(err, EIO,
			       "no box can be built at present: file locks cannot be counted");
	if (s->state.late > 0)
		return err_set(err, EIO, "no box can be built at present: %s", s->state.why);
	if (s->state.stuck >= BUILDS_STUCK)
		return err_set(err, EIO,
			       "no box can be built at present: %u processes of boxes that were "
			       "given up have not ended",
			       s->state.stuck);
	/* What is under way may get stuck as well. */
	return s->count >= BUILDS_MAX || s->count + s->state.stuck >= BUILDS_STUCK ? BUILDS_AGAIN
										   : 0;
}

void builds_add(struct launch *l, struct box *b)
{
	list_push_back(&l->builds.open, &b->build_link);
	l->builds.count++;
}

void builds_remove(struct launch *l, struct box *b)
{
	if (list_is_empty(&b->build_link))
		return;
	list_remove(&b->build_link);
	l->builds.count--;
	l->builds.has_room = true;
	if (l->builds.retry_ms == UINT64_MAX) /* unless it worked, or was late */
		l->builds.retry_ms = clock_now_ms() + RETRY_MS;
}

/* Whether its time depends on nothing but the machine: not on the files or modules of a tenant. */
static bool is_plain(const struct template *t, bool has_own)
{
	return !t || (!has_own && !t->disk && !(t->spec.flags & TEMPLATE_OWN_PRELOAD));
}

void builds_worked(struct launch *l, const struct box *b)
{
	struct builds *s = &l->builds;

	if (s->retry_ms == 0 || !is_plain(b->tmpl, b->has_own))
		return;
	s->retry_ms = 0;
	if (s->state.late == 0)
		return; /* a tenant's own box was late, and others are not */
	log_info("launch", "boxes can be built again");
	s->state.late = 0;
	s->state.why[0] = '\0';
	for (unsigned i = 1; i <= TEMPLATE_MAX; i++)
		l->templates[i].failures = 0; /* those were no fault of theirs */
	tell_state(l);
}

/* What is the tenant's own may be slow for reasons of its own: then a plain box tells. */
void builds_failed(struct launch *l, const struct template *t, bool has_own, const struct err *err)
{
	struct builds *s = &l->builds;
	uint64_t delay = RETRY_MS;

	s->state.given_up++;
	if (is_plain(t, has_own)) {
		for (uint32_t i = 0; i < s->state.late && delay < RETRY_MAX_MS; i++)
			delay *= 2;
		s->state.late++;
		(void)str_format(s->state.why, sizeof(s->state.why), "%.*s", WHY_MAX, err->text);
		s->retry_ms = clock_now_ms() + (delay < RETRY_MAX_MS ? delay : RETRY_MAX_MS);
	} else if (s->retry_ms == 0) {
		s->retry_ms = clock_now_ms();
	}
	tell_state(l);
}

void builds_ended(struct launch *l)
{
	l->builds.state.stuck--;
	l->builds.has_room = true;
	if (l->builds.state.late > 0 && l->builds.state.stuck == 0)
		l->builds.retry_ms = clock_now_ms(); /* what held them may be over */
	if (!l->closing)
		tell_state(l);
}

static void set_count(struct launch *l, uint32_t *at, uint32_t n)
{
	if (*at == n)
		return;
	*at = n;
	if (!l->closing)
		tell_state(l);
}

void builds_ends_late(struct launch *l, uint32_t n)
{
	set_count(l, &l->builds.state.ends_late, n);
}

void builds_uncounted(struct launch *l, uint32_t n)
{
	set_count(l, &l->builds.state.uncounted, n);
}

/* ---- one that is late ---- */

/* The process that should have made it ready; the interpreter while it has none of its own. */
static pid_t find_process(const struct box *b)
{
	return b->pid > 0 ? b->pid : zygote_pid(b->zygote);
}

static void give_up(struct launch *l, struct box *b)
{
	struct template *t = b->tmpl;
	char detail[PROCESS_DETAIL_MAX];
	pid_t pid = find_process(b);

	process_describe(l->proc_fd, pid, detail, sizeof(detail));
	log_error("launch",
		  "box %s of template %u is given up: not ready after %u ms, in step '%s' of its "
		  "build; process %d: %s",
		  b->id, (unsigned)(t - l->templates), l->builds.limit_ms,
		  b->pid > 0 ? "ready" : "clone", (int)pid, detail);
	(void)err_set(&b->err, ETIMEDOUT, "a box was not ready after %u ms (step '%s')",
		      l->builds.limit_ms, b->pid > 0 ? "ready" : "clone");
	t->failures++;
	t->given_up++;
	t->stuck++;
	l->builds.state.stuck++;
	b->is_given_up = true;
	boxes_give_up(l, b);
	builds_failed(l, t, b->has_own, &b->err);
}

static struct box *oldest(const struct launch *l)
{
	return list_is_empty(&l->builds.open)
		       ? NULL
		       : LIST_ENTRY(l->builds.open.next, struct box, build_link);
}

/* It has said something that we have not read yet: we may have stood still ourselves. Once: the end
 * of a socket that nobody watches any more would be news for ever. */
static bool has_news(struct box *b)
{
	if (b->is_excused || process_hear(b->sock, 0) < 0)
		return false;
	b->is_excused = true;
	return true;
}

static uint64_t due_ms(const struct launch *l, const struct box *b)
{
	return b->began_ns / 1000000 + l->builds.limit_ms;
}

/* ---- trying again ---- */

static struct template *find_plain(struct launch *l)
{
	for (unsigned i = 1; i <= TEMPLATE_MAX; i++) {
		struct template *t = &l->templates[i];

		if (t->mount_ns >= 0 && is_plain(t, false))
			return t;
	}
	return NULL;
}

/* Made as for the pool, which it joins if it is wanted there. */
static void try_again(struct launch *l)
{
	struct builds *s = &l->builds;
	struct template *t = find_plain(l);
	struct err err = { 0 };

	/* Until it has ended: then one of the two, success or failure, says when the next is due.
	 */
	s->retry_ms = UINT64_MAX;
	if (!t) {
		s->retry_ms = 0;
		s->state.late = 0;
		tell_state(l);
	} else if (sysdirs_are_coming(l, t) ||
		   boxes_create(l, t, &t->spec.limits, NULL, &err) < 0) {
		if (s->retry_ms == UINT64_MAX) /* refused, not late */
			s->retry_ms = clock_now_ms() + RETRY_MS;
	}
}

void builds_turn(struct launch *l)
{
	struct builds *s = &l->builds;
	uint64_t now = clock_now_ms();
	struct box *b;

	while ((b = oldest(l)) && due_ms(l, b) <= now && !has_news(b))
		give_up(l, b);
	zygotes_expire(l, s->limit_ms);
	jobs_expire(l);
	server_expire(l);
	if (s->retry_ms > 0 && s->retry_ms <= now && s->count == 0 && s->state.stuck < BUILDS_STUCK)
		try_again(l);
	if (s->has_room && l->later_count > 0)
		server_again(l);
	s->has_room = false;
}

static int shorter(int wait_ms, uint64_t at_ms)
{
	uint64_t now = clock_now_ms();
	uint64_t left = at_ms > now ? at_ms - now : 0;

	return wait_ms >= 0 && (uint64_t)wait_ms <= left ? wait_ms
	       : left > 3600000                          ? 3600000
							 : (int)left;
}

int builds_wait_ms(const struct launch *l, int wait_ms)
{
	const struct box *b = oldest(l);
	const struct builds *s = &l->builds;

	if (b)
		wait_ms = shorter(wait_ms, due_ms(l, b));
	if (s->retry_ms > 0 && s->retry_ms != UINT64_MAX && s->count == 0 &&
	    s->state.stuck < BUILDS_STUCK)
		wait_ms = shorter(wait_ms, s->retry_ms);
	/* These have long times and need not end to the millisecond. */
	if (l->later_count > 0 || l->job_count > 0 || zygotes_are_coming(l))
		wait_ms = wait_ms < 0 || wait_ms > TICK_MS ? TICK_MS : wait_ms;
	return wait_ms;
}
