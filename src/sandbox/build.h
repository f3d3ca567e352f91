/* Builds: a template made by steps from another one. Each step that changes files runs in a box of
 * its own, and what it has written is a layer; a step that was done before, on top of the very
 * same, takes the layers of then and needs no box (build_cache.h).
 *
 * A build goes on in the background and belongs to nobody's request. Its object is there from the
 * beginning, and its data is what it is like at the moment. What a restart finds under way has
 * failed; nothing of it is left but what is cached. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/list.h"
#include "sandbox/objects.h"
#include "sandbox/root_import.h"
#include "sandbox/template_own.h"
#include "json/jv_decode.h"

struct exec_request;
struct output;
struct sandbox;
struct sandboxes;
struct trace_context;

#define BUILD_STEPS_MAX 64
#define BUILD_ARGS_MAX 64
#define BUILD_ARG_MAX 8192 /* bytes of one */
#define BUILD_USER_MAX 32
#define BUILD_TAGS_MAX 16
#define BUILD_OUTPUT_KEEP (64u << 10) /* of a step, while it runs */

enum build_status {
	BUILD_WAITING,
	BUILD_BUILDING,
	BUILD_READY,
	BUILD_FAILED,
	BUILD_CANCELED,
	BUILD_STATUS_COUNT
};
extern const char *const build_status_names[BUILD_STATUS_COUNT + 1];
bool build_is_over(enum build_status s);

enum build_step_type {
	BUILD_RUN,     /* a shell's command; or a program and its arguments */
	BUILD_COPY,    /* what for people, and a directory: the archive is unpacked there */
	BUILD_ENV,     /* a name and a value, ... */
	BUILD_WORKDIR, /* of later steps, and of the template */
	BUILD_USER,    /* the same */
	BUILD_PIP,     /* packages */
	BUILD_NPM,
	BUILD_STEP_TYPE_COUNT
};
extern const char *const build_step_names[BUILD_STEP_TYPE_COUNT + 1];

enum build_step_state {
	BUILD_STEP_WAITING,
	BUILD_STEP_RUNNING,
	BUILD_STEP_DONE,
	BUILD_STEP_FAILED,
	BUILD_STEP_STATE_COUNT
};
extern const char *const build_step_states[BUILD_STEP_STATE_COUNT + 1];

struct build_step {
	int type; /* enum build_step_type */
	struct jv_strings args;
	const char *user;    /* of this one alone; NULL: as USER says */
	const char *files;   /* an archive: what COPY unpacks, RUN's standard input; NULL */
	bool force;          /* and all behind it: not from the cache */
	bool is_online;      /* RUN: with the way out that the operator allows, if any */
	uint64_t timeout_ms; /* 0: the usual */
	int state;           /* enum build_step_state */
	bool is_cached;
	uint64_t ms;           /* that it took */
	struct output *output; /* owned; NULL: none */
	uint64_t omitted;      /* bytes of it that are not kept any more, before those in output */
	uint64_t lines;        /* that it has written, kept or not */
	const char *tail;      /* of a record: what becomes output */
};
/* Rows for a table of struct build_step: what clients say of one. */
#define BUILD_STEP_FIELDS 6
extern const struct jv_field build_step_fields[BUILD_STEP_FIELDS];

struct build {      /* the data of its object */
	int status; /* enum build_status */
	const char *owner, *name;
	const char *from;              /* what it begins with, for people */
	char reason[240];              /* why it failed; "" */
	char template[128];            /* what came of it, with its version; "" */
	uint64_t started_ms, ended_ms; /* wall clock; 0: not yet */
	struct build_step *steps;
	size_t n_steps, at; /* at: the one under way, or n_steps */
	struct arena *arena;
	bool is_reserved;       /* nobody has said yet what it does */
	struct jv_strings tags; /* aliases that the new version gets */
	struct limits limits;   /* that its template is to have: of a reserved one */
};
extern const struct object_kind build_kind;

/* A chunk of a step's output at or behind position `from`: as output_read(), but also of records.
 */
struct output_chunk;
bool build_step_read(const struct build_step *s, uint64_t from, struct output_chunk *ret,
		     uint64_t *ret_omitted);

struct build_wish {     /* borrowed for the call */
	const char *id; /* of one that was reserved; NULL: a new one */
	const char *owner, *name;
	struct jv_strings tags;      /* aliases of the version that comes of it */
	const char *key_id;          /* whose key asks; NULL: none's */
	const char *from, *snapshot; /* of template_begin() */
	const char *root;            /* an image's path instead of files; NULL or "": none */
	enum root_source root_kind;
	struct template_traits said;
	const struct build_step *steps;
	size_t n_steps;
	const struct trace_context *trace; /* what it is a part of; NULL: nothing */
};
/* Answers when its record is in the store. EINVAL (named), EEXIST (the name is a built-in one's),
 * EDQUOT (too many wait already). */
void build_create(struct sandboxes *all, const struct build_wish *wish, object_cb cb, void *user);
/* A record that waits for somebody to say what it does: build_create() with its id. It is gone with
 * this process, and an owner's oldest gives way. EINVAL (name, tags). */
struct build_reservation { /* borrowed for the call */
	const char *owner, *name;
	struct jv_strings tags;
	struct limits limits; /* 0: as before */
};
void build_reserve(struct sandboxes *all, const struct build_reservation *r, object_cb cb,
		   void *user);
/* Cancels one that is under way; its end is told as any other. Forgets one that is over. EBUSY: it
 * is being written. */
void build_delete(struct sandboxes *all, const char *id, object_cb cb, void *user);

/* Tells when something of a build has changed. */
struct build_follower {
	struct list node;
	void (*changed)(void *user);
	void *user;
};
/* False: it is over, and nothing will change any more. */
bool build_follow(struct sandboxes *all, const char *id, struct build_follower *f);
void build_unfollow(struct build_follower *f);

/* The way out for steps that install packages: who knows the registries opens it. */
struct build_way; /* opaque: one */
struct package_want {
	int manager;                /* pip, npm, cargo, go: 0 to 3 */
	struct jv_strings packages; /* names and versions, */
	const char *file;           /* or a file of the box that has them: absolute; NULL */
};
struct build_network {
	/* ready() comes later, once: with the command to run while the way is open; borrowed for
	 * the call. Of RUN: with variables for the step's own. */
	int (*open)(void *user, struct sandbox *sb, int type, const struct jv_strings *packages,
		    void (*ready)(void *arg, const struct exec_request *req, const struct err *err),
		    void *arg, struct build_way **ret, struct err *err);
	void (*close)(struct build_way *way); /* no call comes any more; takes NULL */
	/* The same for packages that no step asks for, checked as check() does; *want outlives the
	 * way. */
	int (*open_packages)(void *user, struct sandbox *sb, const struct package_want *want,
			     void (*ready)(void *arg, const struct exec_request *req,
					   const struct err *err),
			     void *arg, struct build_way **ret, struct err *err);
	/* EINVAL: no such packages; EOPNOTSUPP: no registry is configured. */
	int (*check)(void *user, int type, const struct jv_strings *packages, struct err *err);
	void *user;
};
/* Borrowed; NULL: there is none (any more). */
void builds_set_network(struct sandboxes *all, const struct build_network *network);
const struct build_network *builds_network(const struct sandboxes *all); /* NULL */

/* ---- inside ---- */

struct builds; /* opaque */
int builds_create(struct sandboxes *all, struct builds **ret);
void builds_stop(struct sandboxes *all); /* the registry goes: before sandboxes do */
struct builds *builds_free(struct builds *b);
/* The launcher is there and all was loaded: what a restart has cut off has failed. */
void builds_settle(struct sandboxes *all);
