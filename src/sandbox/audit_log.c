#include "sandbox/audit_log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/encode.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "loop/loop.h"
#include "sandbox/audit_open.h"
#include "sandbox/journal.h"
#include "store/store.h"

#define NEXT_FILE AUDIT_HEAD_FILE ".next"

struct probe; /* a look at the line that the head names */
struct cut;   /* of old lines */

struct audit_log {
	struct audit_log_options o;
	struct journal *journal;
	struct audit_open *open;
	struct journal_listener listener;
	struct loop_timer *timer, *trim;
	struct audit_chain sealed; /* the last line that was made */
	struct audit_chain head;   /* the last line that is in the store */
	bool is_timed;
	bool is_tampered;
	struct probe *probe;
	struct cut *cut; /* NULL: none is under way */
};

struct cut {
	struct audit_log *log; /* NULL: it is gone */
	int64_t before_ms;
	uint32_t n;
	uint64_t seq; /* of the line that says so */
};

struct probe {
	struct audit_log *log; /* NULL: it is gone */
	struct audit_chain want;
};

/* ---- the file ---- */

/* Written beside and moved over: it is never half of one. A write into memory of the kernel's, and
 * a name: too short to be worth a thread. */
static int write_head(const struct audit_log *a)
{
	_close_ int fd = openat(a->o.dir_fd, NEXT_FILE,
				O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	char text[AUDIT_HEAD_SIZE];
	int r;

	if (fd < 0)
		return -errno;
	audit_head_format(&a->head, text);
	r = fd_write_all(fd, text, strlen(text));
	if (r < 0)
		return r;
	return renameat(a->o.dir_fd, NEXT_FILE, a->o.dir_fd, AUDIT_HEAD_FILE) < 0 ? -errno : 0;
}

static void on_timer(void *user)
{
	struct audit_log *a = user;
	int r = write_head(a);

	a->is_timed = false;
	if (r < 0)
		log_warn("audit", "the head cannot be written: %s", strerror(-r));
}

/* -ENOENT: there is none. */
static int read_head(const struct audit_log *a, struct audit_chain *ret)
{
	char text[AUDIT_HEAD_SIZE];
	int n = fd_read_file_at(a->o.dir_fd, AUDIT_HEAD_FILE, text, sizeof(text));

	return n < 0 ? n : audit_head_parse(text, ret);
}

/* ---- lines ---- */

static void seal(void *user, struct journal_row *row)
{
	struct audit_log *a = user;
	struct audit_record rec = { .seq = row->seq,
				    .at_ms = row->at_ms,
				    .owner = row->owner,
				    .kind = row->kind,
				    .text = row->text };

	/* A hash that could not be made (no memory) shows as a line that does not fit. */
	(void)audit_hash(a->sealed.hash, &rec, row->hash);
	a->sealed.seq = row->seq;
	memcpy(a->sealed.hash, row->hash, HASH_LEN);
}

static void cut_said(struct cut *cut);

static void committed(void *user, const struct journal_row *row)
{
	struct audit_log *a = user;

	audit_open_committed(a->open, row->seq);

	a->head.seq = row->seq;
	a->head.at_ms = row->at_ms;
	memcpy(a->head.hash, row->hash, HASH_LEN);
	if (!a->is_timed)
		loop_timer_start(a->timer, AUDIT_HEAD_MS, 0);
	a->is_timed = true;
	if (a->cut && a->cut->seq == row->seq)
		cut_said(a->cut);
}

void audit_log_append(struct audit_log *a, const char *owner, const char *kind, const char *text)
{
	(void)journal_append(a->journal, owner, kind, text); /* what is lost is counted there */
}

int audit_log_begin(struct audit_log *a, const char *owner, const char *text)
{
	int place = audit_open_take(a->open, owner, text);

	if (place < 0)
		audit_log_append(a, owner, "began", text);
	return place;
}

void audit_log_end(struct audit_log *a, int place, const char *owner, const char *kind,
		   const char *text)
{
	int64_t seq = journal_append(a->journal, owner, kind, text);

	/* A line that is lost leaves its place taken: the next start finds it. */
	if (seq > 0 && place >= 0)
		audit_open_settle(a->open, place, (uint64_t)seq, kind, text);
}

bool audit_log_is_writable(const struct audit_log *a)
{
	return journal_has_room(a->journal) &&
	       (!journal_is_stuck(a->journal) || audit_open_has_room(a->open));
}

/* ---- what is old ---- */

static void cut_free(struct cut *cut)
{
	if (cut->log)
		cut->log->cut = NULL;
	free(cut);
}

static void trimmed(void *user, int r)
{
	struct cut *cut = user;
	struct audit_log *a = cut->log;

	bool is_full = cut->n == AUDIT_TRIM_LINES;

	cut_free(cut);
	if (a && r > 0 && is_full)
		audit_log_trim(a); /* there may be more */
}

/* The line that says so is in the store: now they go, in one commit. */
static void cut_said(struct cut *cut)
{
	cut->seq = 0;
	if (store_trim_journal(cut->log->o.store, AUDIT_STREAM, cut->before_ms, cut->n, trimmed,
			       cut) < 0)
		cut_free(cut);
}

static void found_old(void *user, int r, const struct journal_row *rows, size_t n, bool more)
{
	struct cut *cut = user;
	char hex[2 * HASH_LEN + 1], text[160];
	int64_t seq = -ENOENT;

	(void)more;
	if (cut->log && r == 0 && n > 0) {
		encode_hex(rows[n - 1].hash, HASH_LEN, hex);
		(void)str_format(text, sizeof(text), AUDIT_CUT_FORMAT, rows[n - 1].seq, hex);
		cut->n = (uint32_t)n;
		seq = journal_append(cut->log->journal, "", AUDIT_CUT_KIND, text);
	}
	if (seq > 0)
		cut->seq = (uint64_t)seq;
	else
		cut_free(cut);
}

void audit_log_trim(struct audit_log *a)
{
	struct store_journal_filter f = { .to_ms = clock_wall_ms() - (int64_t)a->o.retention_ms };
	struct cut *cut;

	/* The last line stays, whatever its age: the head names it. */
	f.before_seq = a->head.seq;
	if (a->o.retention_ms == 0 || a->cut || a->is_tampered || f.before_seq < 2 || f.to_ms <= 0)
		return;
	cut = calloc(1, sizeof(*cut));
	if (!cut)
		return;
	*cut = (struct cut){ .log = a, .before_ms = f.to_ms };
	if (store_list_journal(a->o.store, AUDIT_STREAM, &f, AUDIT_TRIM_LINES, found_old, cut) < 0)
		free(cut);
	else
		a->cut = cut;
}

static void on_trim(void *user)
{
	audit_log_trim(user);
}

void audit_log_head(const struct audit_log *a, struct audit_chain *ret)
{
	*ret = a->head;
}

bool audit_log_is_intact(const struct audit_log *a)
{
	return !a->is_tampered;
}

/* ---- the start ---- */

static void found_last(void *user, const struct journal_row *row)
{
	struct audit_log *a = user;

	a->head.seq = row->seq;
	a->head.at_ms = row->at_ms;
	memcpy(a->head.hash, row->hash, HASH_LEN);
}

static void tell_tampered(struct audit_log *a, const char *what)
{
	a->is_tampered = true;
	log_error("audit", "the log is not what was written: %s", what);
	if (a->o.tampered)
		a->o.tampered(a->o.user, what);
}

static void probed(void *user, int r, const struct journal_row *rows, size_t n, bool more)
{
	struct probe *p = user;
	struct audit_log *a = p->log;

	(void)more;
	if (a) {
		a->probe = NULL;
		if (r == 0 && (n != 1 || rows[0].seq != p->want.seq))
			tell_tampered(a, "the line that its head names is not there");
		else if (r == 0 && memcmp(rows[0].hash, p->want.hash, HASH_LEN) != 0)
			tell_tampered(a, "the line that its head names is another");
	}
	free(p);
}

/* The head is behind the log, as it is after a kill: its line must still be the same. */
static void probe(struct audit_log *a, const struct audit_chain *kept)
{
	struct store_journal_filter filter = { .after_seq = kept->seq - 1,
					       .before_seq = kept->seq + 1 };
	struct probe *p = calloc(1, sizeof(*p));

	if (!p)
		return;
	p->log = a;
	p->want = *kept;
	if (store_list_journal(a->o.store, AUDIT_STREAM, &filter, 1, probed, p) < 0)
		free(p);
	else
		a->probe = p;
}

static void compare(struct audit_log *a)
{
	struct audit_chain kept = { 0 };
	int r = read_head(a, &kept);

	if (r == -ENOENT && a->head.seq == 0) { /* the first start; from now on there is one */
		(void)write_head(a);
		return;
	}
	if (r < 0) {
		tell_tampered(a, "its head is not there or cannot be read");
		return;
	}
	if (kept.seq > a->head.seq) {
		tell_tampered(a, "its end is missing");
		journal_skip(a->journal, kept.seq);
		a->head = kept;
	} else if (kept.seq == a->head.seq) {
		if (memcmp(kept.hash, a->head.hash, HASH_LEN) != 0)
			tell_tampered(a, "its last line is another");
	} else if (kept.seq > 0) {
		probe(a, &kept);
	}
}

/* What a process that was killed has not written. */
static int write_left(struct audit_log *a, uint64_t in_store)
{
	_free_ struct audit_left *left = calloc(AUDIT_OPEN_SLOTS, sizeof(*left));
	size_t n, interrupted = 0;

	if (!left)
		return -ENOMEM;
	n = audit_open_left(a->open, left);
	for (size_t i = 0; i < n; i++) {
		const struct audit_left *l = &left[i];
		const char *kind = l->kind[0] ? l->kind : "interrupted";
		char text[AUDIT_OPEN_TEXT_MAX + 1]; /* it is copied to where it lies */

		(void)str_copy(text, sizeof(text), l->text);
		interrupted += l->kind[0] == '\0';
		if (l->seq > 0 && l->seq <= in_store)
			audit_open_settle(a->open, l->place, l->seq, kind, text);
		else
			audit_log_end(a, l->place, l->owner, kind, text);
	}
	audit_open_committed(a->open, in_store);
	if (interrupted > 0)
		log_warn("audit", "%zu calls were under way when the daemon ended", interrupted);
	return 0;
}

int audit_log_open(const struct audit_log_options *o, struct audit_log **ret, struct err *err)
{
	_cleanup_(audit_log_free_p) struct audit_log *a = calloc(1, sizeof(*a));
	uint64_t in_store;
	int r;

	if (!a)
		return err_sys(err, ENOMEM, "audit");
	a->o = *o;
	list_init(&a->listener.node);
	r = loop_timer_create(o->loop, on_timer, a, &a->timer);
	if (r == 0)
		r = loop_timer_create(o->loop, on_trim, a, &a->trim);
	if (r < 0)
		return err_sys(err, r, "audit");
	r = audit_open_create(o->dir_fd, &a->open, err);
	if (r < 0)
		return r;
	r = journal_open(&(struct journal_options){ .loop = o->loop,
						    .store = o->store,
						    .stream = AUDIT_STREAM,
						    .seal = seal,
						    .last = found_last,
						    .user = a },
			 &a->journal, err);
	if (r < 0)
		return r;
	in_store = a->head.seq;
	compare(a);
	a->sealed = a->head;
	a->listener.committed = committed;
	a->listener.user = a;
	journal_listen(a->journal, &a->listener);
	r = write_left(a, in_store);
	if (r < 0)
		return err_sys(err, r, "audit");
	if (o->retention_ms > 0)
		loop_timer_start(a->trim, 0, AUDIT_TRIM_MS);
	*ret = TAKE(a);
	return 0;
}

struct audit_log *audit_log_free(struct audit_log *a)
{
	if (!a)
		return NULL;
	if (a->is_timed)
		(void)write_head(a);
	if (a->probe)
		a->probe->log = NULL;
	if (a->cut && a->cut->seq > 0) /* its line may be written; the next start cuts anew */
		cut_free(a->cut);
	else if (a->cut)
		a->cut->log = NULL;
	journal_unlisten(&a->listener);
	a->journal = journal_free(a->journal);
	a->timer = loop_timer_free(a->timer);
	a->trim = loop_timer_free(a->trim);
	a->open = audit_open_free(a->open);
	free(a);
	return NULL;
}
