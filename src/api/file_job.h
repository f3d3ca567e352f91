/* File operations of a request: what they share. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "spec/guest.h"

struct api_call;
struct err;
struct file_op;
struct file_ops;
struct jw;

#define FILE_PATH_MAX 4096
#define FILE_HOME "/workspace" /* where paths begin that are not given */

/* A request's file operation. One at a time; one that is still under way when the client goes is
 * cancelled. Begins zeroed but for the call; lives in the request's arena. */
struct file_job {
	struct api_call *call;
	struct file_op *op;       /* owned; NULL: none under way */
	struct guest_entry entry; /* of file_job_run(): the last that came; texts in the arena */
	bool has_entry;
	uint64_t count; /* of file_job_run(): what the operation has handled */
	void (*then)(struct file_job *j, const struct err *err);
};

/* Starts an operation on the sandbox of the path. ENOENT: there is none; EBUSY, EAGAIN ... */
int file_job_try(struct file_job *j, const struct guest_file *f, const struct file_ops *ops,
		 void *user, struct err *err);
/* The same, but a failure is answered: false, and the job is gone with its request. */
bool file_job_start(struct file_job *j, const struct guest_file *f, const struct file_ops *ops,
		    void *user);
/* One that says an entry at the most: then() has it in j->entry, or the error. */
bool file_job_run(struct file_job *j, const struct guest_file *f,
		  void (*then)(struct file_job *j, const struct err *err));
void file_job_end(struct file_job *j); /* cancels what is under way */

/* Where something is that was found below dir; "" is dir itself. -E2BIG */
int file_join(char *dst, size_t size, const char *dir, const char *path);
/* An entry as clients see it. dir: what its path is relative to; NULL: it is whole. */
void file_entry_json(struct jw *w, const struct guest_entry *e, const char *dir);
void file_reply_entry(struct api_call *c, int status, const struct guest_entry *e,
		      const char *path);

/* Of the request; false: answered. */
bool file_path(struct api_call *c, const char **ret);       /* *path, as an absolute one */
bool file_query_path(struct api_call *c, const char **ret); /* ?path=, default FILE_HOME */
bool file_user(struct api_call *c, const char **ret);       /* ?user=, default "" */
/* "0644"; absent leaves *ret. */
bool file_mode(struct api_call *c, const char *field, const char *text, uint32_t *ret);
