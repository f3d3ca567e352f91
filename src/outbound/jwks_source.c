#include "outbound/jwks_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "auth/jwks.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "loop/loop.h"
#include "outbound/courier.h"

#define FILE_EVERY_MS 5000u
#define TIMEOUT_MS 10000u

struct read; /* one look at the file, on a thread */

struct jwks_source {
	struct loop *loop;       /* borrowed */
	struct courier *courier; /* borrowed */
	const char *where;       /* borrowed */
	uint64_t ask_ms;
	bool is_url;
	struct loop_timer *timer;
	struct jwks *keys; /* NULL: none yet */
	bool is_asking;
	uint64_t asked_ms; /* 0: never */
	struct list waits;
	size_t n_waits;
	struct timespec changed; /* of the file that was read last */
	off_t size;
	struct read *read; /* under way; it frees itself */
};

struct read {
	struct jwks_source *source; /* NULL: it is gone */
	char *path;                 /* owned */
	struct timespec changed;
	off_t size;
	bool is_same; /* nothing to be read */
	struct buf text;
	int r;
};

static void ask(struct jwks_source *s);

/* ---- an answer ---- */

static void tell(struct jwks_source *s)
{
	struct list waits = LIST_INIT(waits);

	LIST_FOREACH (&s->waits, w, struct jwks_wait, node) {
		list_remove(&w->node);
		list_push_back(&waits, &w->node);
	}
	s->n_waits = 0;
	while (!list_is_empty(&waits)) {
		struct jwks_wait *w = LIST_ENTRY(waits.next, struct jwks_wait, node);

		list_remove(&w->node);
		w->done(w->user);
	}
}

static int take(struct jwks_source *s, const struct buf *text, struct err *err)
{
	struct jwks *keys = NULL;
	int r = jwks_parse(buf_str(text), text->len, &keys, err);

	if (r < 0)
		return r;
	(void)jwks_free(s->keys);
	s->keys = keys;
	return 0;
}

static void over(struct jwks_source *s, const struct err *err, uint64_t again_ms)
{
	s->is_asking = false;
	if (err->code)
		log_warn("jwt", "the keys stay as they were: %s", err->text);
	loop_timer_start(s->timer, again_ms, 0);
	tell(s);
}

/* ---- a URL ---- */

static uint64_t age_ms(int64_t max_age_s)
{
	uint64_t ms = max_age_s < 0 ? JWKS_AGE_MS : (uint64_t)max_age_s * 1000;

	return ms < JWKS_AGE_MIN_MS ? JWKS_AGE_MIN_MS : ms > JWKS_AGE_MAX_MS ? JWKS_AGE_MAX_MS : ms;
}

static void fetched(void *user, const struct courier_answer *a)
{
	struct jwks_source *s = user;
	struct err err = a->err;

	if (a->r == 0)
		(void)take(s, &a->body, &err);
	over(s, &err, err.code ? s->ask_ms : age_ms(a->max_age_s));
}

static int fetch(struct jwks_source *s)
{
	struct courier_request req = {
		.method = "GET", .url = s->where, .max = JWKS_BYTES_MAX, .timeout_ms = TIMEOUT_MS
	};

	return courier_send(s->courier, &req, fetched, s);
}

/* ---- a file ---- */

static void read_run(void *user)
{
	struct read *x = user;
	_close_ int fd = open(x->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		x->r = -errno;
		return;
	}
	if (!S_ISREG(st.st_mode)) {
		x->r = -EINVAL;
		return;
	}
	x->is_same = st.st_size == x->size && st.st_mtim.tv_sec == x->changed.tv_sec &&
		     st.st_mtim.tv_nsec == x->changed.tv_nsec;
	x->size = st.st_size;
	x->changed = st.st_mtim;
	buf_init(&x->text, JWKS_BYTES_MAX);
	if (!x->is_same)
		x->r = fd_slurp(fd, &x->text);
}

static void read_free(struct read *x)
{
	free(x->path);
	buf_done(&x->text);
	free(x);
}

static void read_done(void *user)
{
	struct read *x = user;
	struct jwks_source *s = x->source;
	struct err err = { 0 };

	if (s) {
		s->read = NULL;
		if (x->r < 0)
			(void)err_sys(&err, x->r, "'%s'", x->path);
		else if (!x->is_same)
			(void)take(s, &x->text, &err);
		if (x->r == 0) { /* a bad one is not complained of again before it changes */
			s->size = x->size;
			s->changed = x->changed;
		}
		over(s, &err, FILE_EVERY_MS);
	}
	read_free(x);
}

static int read_file(struct jwks_source *s)
{
	struct read *x = calloc(1, sizeof(*x));
	int r = -ENOMEM;

	if (!x)
		return r;
	x->path = str_dup(str_of(s->where));
	x->changed = s->changed;
	x->size = s->size;
	if (x->path)
		r = loop_work_alone(s->loop, read_run, read_done, x);
	if (r < 0) {
		read_free(x);
		return r;
	}
	x->source = s;
	s->read = x;
	return 0;
}

/* ---- asking ---- */

static void ask(struct jwks_source *s)
{
	struct err err = { 0 };
	int r;

	if (s->is_asking)
		return;
	s->is_asking = true;
	s->asked_ms = clock_now_ms();
	r = s->is_url ? fetch(s) : read_file(s);
	if (r == 0)
		return;
	(void)err_sys(&err, r, "'%s'", s->where);
	over(s, &err, s->ask_ms);
}

static void aged(void *user)
{
	ask(user);
}

bool jwks_source_refresh(struct jwks_source *s, struct jwks_wait *wait)
{
	uint64_t least = s->is_url ? s->ask_ms : JWKS_LOOK_MS;

	if (!s->is_asking && s->asked_ms && clock_now_ms() - s->asked_ms < least)
		return false;
	if (s->n_waits >= JWKS_WAITS_MAX)
		return false;
	list_push_back(&s->waits, &wait->node);
	s->n_waits++;
	if (!s->is_asking) /* from the loop's next turn: nobody is called back from in here */
		loop_timer_start(s->timer, 0, 0);
	return true;
}

const struct jwks *jwks_source_keys(const struct jwks_source *s)
{
	return s->keys;
}

int jwks_source_create(struct loop *loop, struct courier *courier, const char *where,
		       uint64_t ask_ms, struct jwks_source **ret, struct err *err)
{
	_cleanup_(jwks_source_free_p) struct jwks_source *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return err_sys(err, ENOMEM, "jwt_jwks");
	list_init(&s->waits);
	s->loop = loop;
	s->courier = courier;
	s->where = where;
	s->ask_ms = ask_ms;
	s->is_url = strncmp(where, "http://", 7) == 0 || strncmp(where, "https://", 8) == 0;
	r = s->is_url ? courier_check_url(where, err) : 0;
	if (r < 0)
		return r;
	r = loop_timer_create(loop, aged, s, &s->timer);
	if (r < 0)
		return err_sys(err, r, "jwt_jwks");
	loop_timer_start(s->timer, 0, 0);
	*ret = TAKE(s);
	return 0;
}

struct jwks_source *jwks_source_free(struct jwks_source *s)
{
	if (!s)
		return NULL;
	LIST_FOREACH (&s->waits, w, struct jwks_wait, node)
		list_remove(&w->node);
	if (s->read)
		s->read->source = NULL;
	s->timer = loop_timer_free(s->timer);
	(void)jwks_free(s->keys);
	free(s);
	return NULL;
}
