/* One operation on the files of a call's sandbox; the call ends with it. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "spec/guest.h"
#include "json/jw.h"

struct err;
struct file_op;
struct file_ops;
struct tool_call;

struct file_work { /* arena; first in the struct of whoever needs more */
	struct tool_call *call;
	struct file_op *op; /* owned; NULL: none is under way */
	struct buf data;    /* owned: what is read, told or still to be written */
	size_t sent;        /* of what is written */
	const char *path;   /* arena */
};

const char *file_type_name(uint8_t type); /* enum guest_entry_type: "file" */
/* NULL after tool_fail(). path as the caller gave it. */
void *file_work_create(struct tool_call *t, size_t size, const char *path);
/* Starts it; f->path is filled in here. */
int file_work_try(struct file_work *j, struct guest_file *f, const struct file_ops *ops,
		  struct err *err);
/* The same; false after tool_fail(). */
bool file_work_start(struct file_work *j, struct guest_file *f, const struct file_ops *ops);
/* The operation is over, or is ended: nothing of it is left. */
void file_work_end(struct file_work *j);
/* The same, and the call has failed by it. */
void file_work_fail(struct file_work *j, const struct err *err);
void file_work_failed(void *user, const struct err *err); /* for file_ops.failed */
void file_work_room(void *user);                          /* for file_ops.room: sends on */
