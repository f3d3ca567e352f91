#include "sandbox/audit_log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "loop/loop.h"
#include "sandbox/journal.h"
#include "store/store.h"

#define NEXT_FILE AUDIT_HEAD_FILE ".next"

struct probe; /* a look at the line that the head names */

struct audit_log {
	struct audit_log_options o;
	struct journal *journal;
	struct journal_listener listener;
	struct loop_timer *timer;
	struct audit_chain sealed; /* the last line that was made */
	struct audit_chain head;   /* the last line that is in the store */
	bool is_timed;
	bool is_tampered;
	struct probe *probe;
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

static void committed(void *user, const struct journal_row *row)
{
	struct audit_log *a = user;

	a->head.seq = row->seq;
	a->head.at_ms = row->at_ms;
	memcpy(a->head.hash, row->hash, HASH_LEN);
	if (!a->is_timed)
		loop_timer_start(a->timer, AUDIT_HEAD_MS, 0);
	a->is_timed = true;
}

void audit_log_append(struct audit_log *a, const char *owner, const char *kind, const char *text)
{
	(void)journal_append(a->journal, owner, kind, text); /* what is lost is counted there */
}

bool audit_log_is_writable(const struct audit_log *a)
{
	return journal_has_room(a->journal);
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

int audit_log_open(const struct audit_log_options *o, struct audit_log **ret, struct err *err)
{
	_cleanup_(audit_log_free_p) struct audit_log *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return err_sys(err, ENOMEM, "audit");
	a->o = *o;
	list_init(&a->listener.node);
	r = loop_timer_create(o->loop, on_timer, a, &a->timer);
	if (r < 0)
		return err_sys(err, r, "audit");
	r = journal_open(&(struct journal_options){ .loop = o->loop,
						    .store = o->store,
						    .stream = AUDIT_STREAM,
						    .seal = seal,
						    .last = found_last,
						    .user = a },
			 &a->journal, err);
	if (r < 0)
		return r;
	compare(a);
	a->sealed = a->head;
	a->listener.committed = committed;
	a->listener.user = a;
	journal_listen(a->journal, &a->listener);
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
	journal_unlisten(&a->listener);
	a->journal = journal_free(a->journal);
	a->timer = loop_timer_free(a->timer);
	free(a);
	return NULL;
}
