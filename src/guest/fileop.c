#include "guest/fileop.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "guest/ops.h"

struct row {
	int (*run)(struct fileop *op, struct err *err);
	bool takes_data; /* the client sends G_DATA */
};

static const struct row rows[FILE_OP_COUNT] = {
	/* files.c */
	[FILE_STAT] = { files_stat, false },
	[FILE_LIST] = { files_list, false },
	[FILE_READ] = { files_read, false },
	[FILE_MKDIR] = { files_mkdir, false },
	[FILE_CHMOD] = { files_chmod, false },
	/* write.c, remove.c */
	[FILE_WRITE] = { files_write, true },
	[FILE_RENAME] = { files_rename, false },
	[FILE_REMOVE] = { files_remove, false },
	/* tar_get.c, tar_put.c */
	[FILE_TAR_GET] = { files_tar_get, false },
	[FILE_TAR_PUT] = { files_tar_put, true },
	/* watch.c; ends by an error, always */
	[FILE_WATCH] = { files_watch, false },
	/* find.c, grep.c, replace.c */
	[FILE_FIND] = { files_find, false },
	[FILE_GREP] = { files_grep, false },
	[FILE_REPLACE] = { files_replace, false },
	/* listeners.c */
	[FILE_PORTS] = { files_ports, false },
	/* compose.c */
	[FILE_COMPOSE] = { files_compose, false },
};

static int run(struct fileop *op, struct err *err)
{
	const struct guest_file *f = op->f;
	int r;

	if (f->op >= FILE_OP_COUNT || !rows[f->op].run)
		return err_set(err, EINVAL, "no file operation has the number %u", f->op);
	r = rows[f->op].run(op, err);
	return r < 0 ? r : chan_u64(&op->chan, G_DONE, op->count);
}

int fileop_run(int sock, uint32_t id, const struct guest_file *f, int root_fd, int lock_fd)
{
	_free_ struct fileop *op = calloc(1, sizeof(*op));
	struct err err = { 0 };
	int r;

	if (!op)
		return 1; /* the socket's end tells the client */
	/* This process is ours alone. Modes are given exactly; a file size limit is an error to
	 * report, not a death. */
	(void)umask(0);
	(void)signal(SIGXFSZ, SIG_IGN);
	chan_init(&op->chan, sock, id, f->op < FILE_OP_COUNT && rows[f->op].takes_data);
	op->f = f;
	op->root_fd = root_fd;
	op->lock_fd = lock_fd;
	r = run(op, &err);
	if (r == -ECANCELED)
		(void)err_set(&err, ECANCELED, "the operation was cancelled");
	else if (r < 0 && err.code == 0)
		(void)err_sys(&err, r, "file operation");
	/* What was half done is undone by now: whoever reads the error finds it so. */
	if (r < 0)
		chan_error(&op->chan, err.code, err.text);
	chan_close(&op->chan);
	details_done(&op->details);
	return r < 0 ? 1 : 0;
}
