/* The inside of builds: what build.c (the queue), build_run.c (one build) and build_box.c (one step
 * in its box) know of each other. */
#pragma once

#include "base/id.h"
#include "base/list.h"
#include "crypto/hash.h"
#include "sandbox/build.h"
#include "sandbox/build_files.h"
#include "sandbox/registry.h"
#include "sandbox/root_import.h"
#include "sandbox/template_own.h"

struct buf;
struct exec_reader;
struct execution;
struct file_op;

#define BUILD_STEP_DEFAULT_MS 600000u /* of a step that names no time, if that much is allowed */
#define BUILD_STEP_GRACE_MS 60000u    /* beyond it, before the build itself gives up */

struct builds {
	struct list jobs;                    /* struct build_job: waiting and under way, in order */
	const struct build_network *network; /* borrowed; NULL */
	struct loop_timer *again;            /* owned: writes what the store has not taken */
	bool is_settled;
};

/* What goes on in the box of the step under way. */
struct build_box {
	struct sandbox *sb;         /* owned reference; NULL: none */
	struct execution *x;        /* owned reference */
	struct exec_reader *reader; /* owned */
	struct file_op *op;         /* owned */
	struct build_way *way;      /* owned: see builds.network */
	struct hash *sum;           /* owned: of what was read of the archive */
	int fd;                     /* owned: the archive; -1 */
	char file_id[ID_LEN + 1], file_sum[BUILD_HASH_LEN + 1];
	char chunk[16u << 10]; /* of the archive: what the box has not taken yet */
	size_t len, sent;
	bool is_sent;     /* all of it */
	bool is_last_try; /* to make the working directory */
};

struct build_job {
	struct list node; /* of builds.jobs */
	struct sandboxes *all;
	struct build *b; /* borrowed: of the object, until the last record is written */
	char id[ID_LEN + 1], key_id[ID_LEN + 1], owner[OBJECT_OWNER_MAX + 1];
	struct template_own model; /* what is being made; env owned, texts in arena, layers held */
	struct arena *arena;       /* owned */
	char user[BUILD_USER_MAX + 1], workdir[MAKEUP_PATH_MAX + 1]; /* of steps; "": the box's */
	uint8_t key[HASH_LEN]; /* of all that was done until now */
	bool is_forced;        /* from here on nothing is taken from the cache */
	bool is_started, is_canceled;
	enum build_status result; /* when it is over */
	bool is_unsaved;          /* it is over, and the store has not taken that */
	bool is_saving;
	bool is_acting;           /* something in the box can be stopped */
	uint64_t began_ms;        /* the step */
	struct loop_timer *timer; /* owned: of the step */
	struct err err;           /* why it has failed; code 0: it has not */
	struct build_box box;
	char root_path[ROOT_PATH_MAX + 1]; /* what it begins with; "": no image */
	enum root_source root_kind;
	struct root_import *import;    /* borrowed while that is under way; NULL */
	struct span *span, *step_span; /* NULL: in no trace. See tracing.h */
	struct list followers;         /* struct build_follower */
	size_t tag;                    /* the next of its tags */
	object_cb cb;                  /* who waits for its record */
	void *user_of_cb;
};

/* build.c. The owner's oldest record that `is` says yes to, if there are more than max of them. */
void build_forget_oldest(struct sandboxes *all, const char *owner,
			 bool (*is)(const struct build *b), size_t max);
/* build_record.c */
int build_write(const struct build *b, struct buf *ret); /* -ENOMEM, -E2BIG */
int build_step_say(struct build_step *s, int stream, const void *data, size_t n);

/* build_reserve.c: its record, when it is the owner's and reserved. ENOENT, EBUSY. */
int build_reserved(struct sandboxes *all, const char *owner, const char *id, struct err *err);

/* build.c */
void builds_next(struct sandboxes *all); /* lets those begin that may */
void build_job_free(struct build_job *j);
void build_tell(struct build_job *j); /* followers: something has changed */

/* build_run.c */
void build_begin(struct build_job *j);
void build_go(struct build_job *j);        /* with its steps: what it begins with is there */
void build_step_over(struct build_job *j); /* err in the job; its box is gone */
void build_end(struct build_job *j);       /* with what the job says */
void build_save(struct build_job *j);
static inline struct build_step *build_step_now(struct build_job *j)
{
	return &j->b->steps[j->b->at];
}

/* Whom it means: "" is the box's own user. */
const char *build_user(const struct build_job *j, const char *said);

/* What the template has grown to: now is held by the caller, and the job's from here on. bytes: of
 * the layer that is new. */
void build_take_layers(struct build_job *j, const struct layers *now, uint64_t bytes);
/* build_box.c: calls build_step_over() at the end. */
void build_box_begin(struct build_job *j);
void build_box_stop(struct build_job *j);    /* what it does is given up; err in the job says why */
void build_box_release(struct build_job *j); /* lets go of all but the box; no call comes */

/* build_archive.c: the archive that a step names. Its error is for people. */
int build_archive_open(struct build_job *j, const struct build_step *s, struct err *err);
/* 1: there is more in the box's chunk; 0: all was read; -EBADMSG: it is not what its sum says;
 * -errno. */
int build_archive_read(struct build_job *j);

/* build_root.c: calls build_go() or build_end(). */
void build_root_begin(struct build_job *j);
bool build_root_stop(struct build_job *j); /* false: it is not at it */
