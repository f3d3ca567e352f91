/* Sandboxes: the service that every door (REST, E2B, MCP, ...) stands in front of. Has never heard
 * of HTTP. Everything runs on one loop thread; nothing blocks; callbacks never come from inside the
 * call that asks for them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/id.h"
#include "provider/provider.h"
#include "sandbox/lifecycle.h"
#include "sandbox/quota.h"
#include "sandbox/state.h"
#include "spec/launch.h"

struct events;
struct layers;
struct loop;
struct machine_use; /* base/machine.h */
struct metrics;
struct store;
struct template_own;
struct trace_context;
struct tracer;
struct volume_mounts;
struct sandboxes; /* the registry: opaque */
struct sandbox;   /* one: opaque */

#define SANDBOX_NAME_MAX 63
#define SANDBOX_OWNER_MAX 63
#define SANDBOX_ENV_MAX 256
#define SANDBOX_METADATA_MAX 64

struct sandbox_settings { /* from the configuration */
	uint32_t max_sandboxes;
	uint64_t timeout_ms, timeout_max_ms; /* time to live: default and most */
	uint64_t idle_ms;                    /* 0: none */
	uint64_t exec_timeout_ms, exec_timeout_max_ms;
	size_t output_keep;    /* of one execution */
	uint64_t output_max;   /* of all that have not been recorded, together */
	uint64_t retention_ms; /* how long what has ended is remembered */
	uint64_t silence_ms;   /* of a box that is asked for files: then it is given up; 0: 30 s */
	struct limits limits;  /* of every template: what a sandbox gets that asks for nothing */
	struct limits limits_max; /* the most of one sandbox; 0: as much as can be said */
	struct quota commit;      /* capacity.h: memory, processors and processes; 0: no limit */
	uint64_t reserve_bytes;   /* memory that the machine keeps */
	uint32_t processes_max;   /* that all the machine may have; 0: no limit */
	uint32_t pool_min;        /* boxes that wait: of the default template, */
	uint32_t pool_max;        /* and at most of any without a pool of its own */
	uint32_t pool_quiet_ms;
	struct quota quota;      /* of every owner: 0 is no limit */
	uint32_t max_builds;     /* of templates, at once */
	int spool_fd;            /* borrowed: directory of output that outlives us */
	int files_fd;            /* borrowed: directory of archives for builds; -1: none */
	const char *images_dir;  /* borrowed: of root_import(); NULL: there is none */
	uint64_t image_bytes;    /* most that an image may unpack to */
	const char *agent_grant; /* borrowed: of sandboxes that are made for agents; NULL: none */
	/* Boxes have one user, who owns it all: what a build does as root, he does. */
	bool is_rootless;
};

struct sandbox_clock { /* milliseconds, monotonic and since 1970 */
	uint64_t (*now_ms)(void *user);
	int64_t (*wall_ms)(void *user);
	void *user;
};

struct sandboxes_deps { /* all borrowed, outlive the registry; who owns the store dispatches it */
	struct loop *loop;
	struct store *store;
	struct metrics *metrics; /* may be NULL */
	struct events *events;   /* may be NULL */
	struct tracer *tracer;   /* NULL: no traces */
	struct sandbox_settings settings;
	/* *ret holds settings.quota: changes what is another's for this owner. May be NULL. */
	void (*quota_of)(void *user, const char *owner, struct quota *ret);
	void *quota_user;
	/* What of the machine is in use; false: not known. NULL: nobody asks. */
	bool (*machine_use)(void *user, struct machine_use *ret);
	void *machine_user;
	const struct sandbox_clock *clock; /* copied; NULL: the machine's. Of tests */
};

/* The most that one sandbox may have. Borrowed. */
const struct limits *sandboxes_limits_max(const struct sandboxes *all);

int sandboxes_create(const struct sandboxes_deps *deps, struct sandboxes **ret, struct err *err);
/* Nothing is destroyed: boxes live on and are found again by the next start. */
struct sandboxes *sandboxes_free(struct sandboxes *all);
CLEANUP_FUNC(struct sandboxes *, sandboxes_free)

/* The launcher is there (again): makes the store's rows and the living boxes agree, then calls back
 * once. Before the first time nothing can be created; while it is lost, requests wait for it a few
 * seconds and then fail with EPIPE. */
void sandboxes_provider_ready(struct sandboxes *all, const struct provider *p,
			      void (*done)(void *user, const struct err *err), void *user);
void sandboxes_provider_lost(struct sandboxes *all);
/* How the building of boxes goes, as the launcher tells it. */
void sandboxes_builds(struct sandboxes *all, const struct build_state *s);
/* Calls back whenever a sandbox with a grant runs and its box can be spoken to: at its creation,
 * before whoever asked for it hears of it, when it starts again, and when it is found again. */
void sandboxes_on_reach(struct sandboxes *all, void (*fn)(void *user, struct sandbox *sb),
			void *user);
/* A box has ended by itself: for the provider's death callback. */
void sandboxes_box_died(struct sandboxes *all, const char *box_id, int status,
			const struct box_usage *usage);

/* ---- making ---- */

struct sandbox_pair {
	const char *name, *value;
};

struct sandbox_request { /* borrowed for the call */
	const char *owner;
	const char *key_id;   /* whose key asked; NULL: none's */
	const char *name;     /* "": none; unique among the owner's live ones */
	bool get_or_create;   /* with a name: the live one of that name, if there is one */
	const char *template; /* "": the default */
	uint8_t profile;      /* enum profile_id */
	uint32_t strict;      /* of a custom one: enum template_flag */
	const char *snapshot; /* by id or name, instead of a template; NULL or "": none */
	const struct sandbox
		*parent;             /* what it is made of, instead of a template; NULL. Of forks */
	const struct layers *layers; /* with parent: all that lies on top */
	/* What it is made of, instead of a template's name, which is then for people; NULL. Of
	 * builds. */
	const struct template_own *model;
	const struct volume_mounts *volumes; /* without ids; NULL: none */
	struct limits limits;                /* 0: the template's */
	uint64_t timeout_ms;                 /* 0: the default */
	uint64_t idle_ms;                    /* 0: the default */
	struct lifecycle life;
	const char *note;  /* JSON that a door wants to have again; NULL: none */
	const char *grant; /* what its programs may call outside: grant.h; NULL: nothing */
	bool cold;         /* not from the pool */
	bool is_internal;  /* for a job of the service itself: it ends with it, and
			      with the daemon */
	const struct sandbox_pair *env, *metadata;
	size_t n_env, n_metadata;
	const struct trace_context *trace; /* what it is a part of; NULL: nothing */
};

/* err is NULL on success. sb is borrowed and may be gone by the next turn of the loop. */
typedef void (*sandbox_cb)(void *user, struct sandbox *sb, const struct err *err);

/* Answers when the sandbox is running and in the store. EINVAL (a bad value, named), EEXIST (name),
 * EDQUOT (max_sandboxes), EUSERS (the owner's quota: quota.h), ENOBUFS (capacity.h),
 * EAGAIN/ENOSPC/EROFS/EIO (the store), EPIPE (no launcher). */
void sandbox_create(struct sandboxes *all, const struct sandbox_request *req, sandbox_cb cb,
		    void *user);

/* ---- looking ---- */

struct sandbox_info { /* borrowed from the sandbox, or from the row of an ended one */
	const char *id, *owner, *key_id, *name, *template, *reason, *box_id;
	const char *runtime; /* the built-in template below template, or the same */
	enum sandbox_state state;
	uint8_t profile;        /* enum profile_id */
	uint32_t strict;        /* of a custom one: enum template_flag */
	bool warm, is_existing; /* was taken from the pool; get_or_create found it */
	bool is_internal;       /* see sandbox_request */
	uint64_t step_ns[STEP_COUNT];
	uint64_t claim_us, store_us, total_us; /* of its creation, by this process; 0 otherwise */
	struct limits limits;
	const struct sandbox_pair *env, *metadata;
	size_t n_env, n_metadata;
	const struct volume_mounts *volumes;
	int64_t created_ms, expires_ms, ended_ms; /* wall clock; 0: none. Paused: expires_ms is 0 */
	uint64_t timeout_ms, idle_ms, remaining_ms; /* remaining: of a paused one */
	struct lifecycle life;
	const char *note;    /* never NULL: "" is none */
	const char *grant;   /* never NULL: "" is none */
	size_t n_executions; /* running now */
};

/* Live ones only; NULL. owner NULL: anybody's. Another owner's is NULL too. id may be a name. */
struct sandbox *sandboxes_find(struct sandboxes *all, const char *id_or_name, const char *owner);
void sandbox_info(const struct sandbox *sb, struct sandbox_info *ret);
/* The first live one, oldest first, that `is` says yes to; NULL. */
struct sandbox *sandboxes_search(struct sandboxes *all,
				 bool (*is)(void *user, const struct sandbox *sb), void *user);
const char *sandbox_id(const struct sandbox *sb);
/* Also finds ended ones, in the store. ENOENT. */
void sandbox_get(struct sandboxes *all, const char *id_or_name, const char *owner,
		 void (*cb)(void *user, const struct sandbox_info *info, const struct err *err),
		 void *user);

/* What its box takes now, with disk as part of the memory. EBUSY: it has no box. */
struct box_usage;
void sandbox_usage(struct sandbox *sb,
		   void (*cb)(void *user, const struct box_usage *usage, const struct err *err),
		   void *user);

struct sandbox_filter {
	const char *owner;    /* NULL: anybody's */
	unsigned states;      /* bits 1 << enum sandbox_state; 0: the live ones */
	const char *template; /* NULL: any */
	const char *name;     /* NULL: any */
	const struct sandbox_pair *metadata;
	size_t n_metadata;
	int64_t before_ms; /* cursor: created before this, or then with a smaller id; 0: from the
			      newest */
	const char *before_id;
	size_t limit;
	/* Of live ones only: EINVAL together with ended ones. */
	bool oldest_first;     /* the cursor is then what the page begins behind */
	int64_t created_after; /* at this time or later; 0: whenever */
	bool (*also)(void *user, const struct sandbox *sb); /* whether it is wanted; NULL: it is */
	void *also_user;
};
/* Newest first unless said; n <= limit, more says whether there are others behind the last. */
void sandbox_list(struct sandboxes *all, const struct sandbox_filter *f,
		  void (*cb)(void *user, const struct sandbox_info *infos, size_t n, bool more,
			     const struct err *err),
		  void *user);

/* ---- changing ---- */

struct sandbox_patch {
	bool has_timeout, has_metadata, has_on_timeout, has_auto_resume;
	uint64_t timeout_ms;                 /* from now on */
	const struct sandbox_pair *metadata; /* replaces all of it */
	size_t n_metadata;
	struct lifecycle life;
	const char *note; /* replaces the other; NULL: stays */
};
void sandbox_patch(struct sandbox *sb, const struct sandbox_patch *p, sandbox_cb cb, void *user);
/* Its time to live begins anew when less than half of it is left: for those that live as long as
 * they are used. What comes of it is told to nobody: the next use tries again. */
void sandbox_prolong(struct sandbox *sb);
/* EBUSY in a state that does not allow it, EUSERS, ENOBUFS. Already there: success. */
void sandbox_pause(struct sandbox *sb, sandbox_cb cb, void *user);
void sandbox_resume(struct sandbox *sb, sandbox_cb cb, void *user);
/* Ends the box and keeps the files; then a box again, with the same files. What ran is interrupted.
 * EBUSY, EOPNOTSUPP. */
void sandbox_suspend(struct sandbox *sb, sandbox_cb cb, void *user);
void sandbox_start(struct sandbox *sb, sandbox_cb cb, void *user);
/* Resumes or starts it, whichever it needs, also one that is still on its way to stand still. */
void sandbox_wake(struct sandbox *sb, sandbox_cb cb, void *user);
/* Whether it stands still and whoever wants something of it is to wake it. */
bool sandbox_wakes(const struct sandbox *sb);
/* Answers when nothing of the box is left and the store knows. Several callers share one end. */
void sandbox_delete(struct sandbox *sb, const char *reason, sandbox_cb cb, void *user);
/* Ends all of an owner's that live, and forgets their secrets. */
void sandboxes_end_owner(struct sandboxes *all, const char *owner, const char *reason);
/* Somebody uses it: the idle clock starts again. */
void sandbox_touch(struct sandbox *sb);

struct sandboxes_stats {
	size_t by_state[SANDBOX_STATE_COUNT];
	size_t executions;
	bool is_ready;                    /* the launcher is there and recovery is over */
	bool is_metered;                  /* boxes say what processor time they have used */
	const struct build_state *builds; /* borrowed: whether new boxes can be built */
};
void sandboxes_stats(const struct sandboxes *all, struct sandboxes_stats *ret);
/* ENOENT for no such template. */
typedef void (*pool_state_cb)(void *user, const struct pool_state *s, const struct err *err);
void sandboxes_pool_state(struct sandboxes *all, const char *template, pool_state_cb cb,
			  void *user);
