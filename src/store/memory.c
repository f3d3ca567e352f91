#include "store/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "store/batch.h"
#include "store/db.h"
#include "store/job.h"
#include "store/migrate.h"
#include "store/read.h"

struct memory {
	struct batch batch;
	struct store_faults none;
	struct store_faults *faults; /* borrowed, or &none */
	struct list done;            /* owned jobs that wait for store_dispatch() */
	bool is_closing;
	int event_fd; /* owned */
};

/* Counts down; true when this is the one. */
static bool is_due(unsigned *in)
{
	return *in > 0 && --*in == 0;
}

static int fault(struct store_faults *f)
{
	if (!is_due(&f->fail_in))
		return 0;
	if (f->fail_on)
		f->fail_in = 1;
	return -f->fail_with;
}

static void write_now(struct memory *m, struct store_job *job)
{
	struct list jobs;
	int r = fault(m->faults);

	m->faults->writes++;
	list_init(&jobs);
	list_push_back(&jobs, &job->node);
	if (r == 0)
		batch_run(&m->batch, &jobs, 1);
	else
		job->result = r;
	list_remove(&job->node);
}

static int memory_submit(void *self, struct store_job *job)
{
	struct memory *m = self;

	if (m->is_closing)
		return -ECANCELED;
	if (is_due(&m->faults->refuse_in))
		return -EAGAIN;
	job->queued_ns = clock_now_ns();
	if (job_type(job)->class == JOB_WRITE) {
		write_now(m, job);
	} else {
		m->faults->queries++;
		job->result = read_query(m->batch.conn, job);
	}
	list_push_back(&m->done, &job->node);
	(void)eventfd_write(m->event_fd, 1);
	return 0;
}

static int memory_load(void *self, struct store_job *job, struct err *err)
{
	struct memory *m = self;
	int r = read_load(m->batch.conn, job);

	return r < 0 ? err_sys(err, r, "load") : 0;
}

static int memory_fd(void *self)
{
	struct memory *m = self;

	return m->event_fd;
}

/* Those that callbacks ask for wait for the next time, as they would on a disk. */
static void memory_dispatch(void *self)
{
	struct memory *m = self;
	struct list jobs;
	eventfd_t count;

	if (m->faults->is_held)
		return;
	(void)eventfd_read(m->event_fd, &count);
	list_init(&jobs);
	LIST_FOREACH (&m->done, job, struct store_job, node) {
		list_remove(&job->node);
		list_push_back(&jobs, &job->node);
	}
	while (!list_is_empty(&jobs)) {
		struct store_job *job = LIST_ENTRY(jobs.next, struct store_job, node);

		list_remove(&job->node);
		job_call_back(job);
		job_free(job);
	}
}

static int memory_flush(void *self)
{
	(void)self;
	return 0;
}

static void memory_close(void *self)
{
	struct memory *m = self;

	m->is_closing = true;
	m->faults->is_held = false;
	memory_dispatch(m);
	db_close(m->batch.conn);
	m->event_fd = fd_close(m->event_fd);
	free(m);
}

static const struct store_ops ops = {
	.name = "memory",
	.submit = memory_submit,
	.load = memory_load,
	.fd = memory_fd,
	.dispatch = memory_dispatch,
	.flush = memory_flush,
	.close = memory_close,
};

int store_open_memory(struct store_faults *faults, struct store *ret, struct err *err)
{
	struct memory *m = calloc(1, sizeof(*m));
	const struct migration *list;
	size_t n;
	int r;

	if (!m)
		return err_sys(err, ENOMEM, "store");
	m->faults = faults ? faults : &m->none;
	list_init(&m->done);
	m->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = m->event_fd < 0 ? err_sys(err, errno, "store") : 0;
	if (r == 0)
		r = db_open(NULL, CONN_MEMORY, &m->batch.conn, err);
	list = migrate_list(&n);
	if (r == 0)
		r = migrate_run(m->batch.conn, list, n, err);
	if (r < 0) {
		memory_close(m);
		return r;
	}
	*ret = (struct store){ &ops, m };
	return 0;
}
