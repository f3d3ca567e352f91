/* Speaks holt-launch's protocol. Non-blocking: call launcher_dispatch() when launcher_fd() is
 * readable (or writable while launcher_wants_write()). Knows no event loop; the *_sync forms poll
 * by themselves, for the command line, benchmarks and tests. One thread at a time. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "provider/reply.h"
#include "spec/launch.h"

struct err;
struct launcher; /* opaque */

struct launcher_options {
	const char *program; /* path of holt-launch; NULL: beside this executable, then libexec */
	const char *cgroup;  /* "auto", "v1", "v2", "none"; NULL is auto */
	unsigned spare_netns, spare_cgroups; /* stock kept ahead; 0: default */
	bool persistent; /* claimed boxes outlive the launcher and us, recorded in state_fd */
	int state_fd; /* borrowed: a directory of the launcher's user alone; only if persistent */
	uint64_t layers_bytes; /* boxes write to an image of this size; 0: to memory */
	uint32_t build_ms;     /* for a box to become ready, else it is given up; 0: 30 s */
};

/* Starts the program as our child; the other end of its socket is the caller's. */
int launcher_spawn(const struct launcher_options *o, int *ret_sock, pid_t *ret_pid,
		   struct err *err);
/* Greets the launcher behind a connected socket, which is taken in any case, and waits for its
 * answer: -ETIMEDOUT after a minute. pid: of the launcher, which is waited for at the end when it
 * is our child; 0: unknown. */
int launcher_connect(int sock, pid_t pid, struct launcher **ret, struct err *err);
/* The two in one. */
int launcher_start(const struct launcher_options *o, struct launcher **ret, struct err *err);
/* Closes the socket: the launcher destroys its boxes (those that are not persistent) and ends;
 * blocks until it has, if it is our child; one that has not after half a minute is killed. No
 * callback is called any more. Not from a callback.
 * Takes NULL. */
struct launcher *launcher_stop(struct launcher *l);
CLEANUP_FUNC(struct launcher *, launcher_stop)

int launcher_fd(const struct launcher *l);
pid_t launcher_pid(const struct launcher *l);
const struct launch_info *launcher_info(const struct launcher *l);
bool launcher_wants_write(const struct launcher *l);
/* Sends what waits, reads all that is there, calls back. 0, or, now and from then on: -EPIPE once
 * the launcher is gone, -EPROTO when it lied, its own errno when it could not start. Every request
 * has then got its failure. */
int launcher_dispatch(struct launcher *l);

/* Asks for a sign of life. True: not even one word has come since the call before. */
bool launcher_ping(struct launcher *l);
/* The requests that have waited too long for their answer fail with -ETIMEDOUT: several times
 * limit_ms, by their kind; the work of minutes on disks has half an hour more. A box that comes
 * after all is destroyed. Callbacks come from here; not from a callback. */
void launcher_expire(struct launcher *l, unsigned limit_ms);
/* It is given up: every request fails with -EPIPE, from here. One that is our child is killed;
 * another's is killed by its parent, when that is asked for the next. Not from a callback. */
void launcher_kill(struct launcher *l);

/* Requests. 0: the callback comes exactly once, from launcher_dispatch() and never from inside the
 * call; else a negative errno and no callback: -EPIPE once the launcher is gone, -EAGAIN with too
 * many on their way, -EINVAL, -ENOMEM. A callback may make requests. */
int launcher_claim(struct launcher *l, const struct launch_spec *spec, provider_cb cb, void *user,
		   struct err *err);
/* A new connection to a claimed box. */
int launcher_attach(struct launcher *l, const char *box_id, provider_cb cb, void *user,
		    struct err *err);
/* Every claimed box. */
int launcher_list(struct launcher *l, provider_cb cb, void *user, struct err *err);
/* Answered when nothing of the box is left, with what it used. */
int launcher_destroy(struct launcher *l, const char *box_id, provider_cb cb, void *user,
		     struct err *err);
int launcher_usage(struct launcher *l, const char *box_id, provider_cb cb, void *user,
		   struct err *err);
int launcher_freeze(struct launcher *l, const char *box_id, bool on, provider_cb cb, void *user,
		    struct err *err);
int launcher_limits(struct launcher *l, const char *box_id, const struct limits *limits,
		    provider_cb cb, void *user, struct err *err);
/* dir_fd: the root of a ROOT_DIR template, borrowed for the call; else -1. */
int launcher_template(struct launcher *l, const struct template_spec *t, int dir_fd, provider_cb cb,
		      void *user, struct err *err);
int launcher_pool(struct launcher *l, const struct pool_spec *p, provider_cb cb, void *user,
		  struct err *err);
int launcher_pool_state(struct launcher *l, uint32_t template_id, provider_cb cb, void *user,
			struct err *err);
/* As in provider.h. */
int launcher_template_drop(struct launcher *l, uint32_t template_id, provider_cb cb, void *user,
			   struct err *err);
int launcher_snapshot(struct launcher *l, const struct snapshot_spec *s, provider_cb cb, void *user,
		      struct err *err);
int launcher_layer_drop(struct launcher *l, const char *layer_id, provider_cb cb, void *user,
			struct err *err);
int launcher_layers(struct launcher *l, provider_cb cb, void *user, struct err *err);
int launcher_volume_make(struct launcher *l, const struct volume_spec *v, provider_cb cb,
			 void *user, struct err *err);
int launcher_volume_drop(struct launcher *l, const char *volume_id, provider_cb cb, void *user,
			 struct err *err);
int launcher_volumes(struct launcher *l, provider_cb cb, void *user, struct err *err);
/* Deaths go to cb from now on, first those that were kept: from launcher_dispatch(). */
void launcher_on_death(struct launcher *l, provider_death_cb cb, void *user);
/* How building goes goes to cb, at once if it is known and whenever it changes. */
void launcher_on_builds(struct launcher *l, provider_builds_cb cb, void *user);
const struct build_state *launcher_builds(const struct launcher *l);

/* How long each of the blocking forms waits before launcher_kill(); 0, as it begins: for ever. */
void launcher_set_patience(struct launcher *l, unsigned ms);
/* Blocking forms. Callbacks of other requests may come meanwhile. Not from a callback. */
int launcher_template_sync(struct launcher *l, const struct template_spec *t, int dir_fd,
			   struct err *err);
int launcher_pool_sync(struct launcher *l, const struct pool_spec *p, struct err *err);
int launcher_pool_state_sync(struct launcher *l, uint32_t template_id, struct pool_state *ret,
			     struct err *err);
int launcher_claim_sync(struct launcher *l, const struct launch_spec *s, struct launcher_box *ret,
			struct err *err);
int launcher_attach_sync(struct launcher *l, const char *box_id, struct launcher_box *ret,
			 struct err *err);
/* Calls each() once for every claimed box; what it is given is borrowed. */
int launcher_list_sync(struct launcher *l,
		       void (*each)(void *user, const struct launch_box_info *box), void *user,
		       struct err *err);
/* The box and all it held are gone when this returns; ret may be NULL. */
int launcher_destroy_sync(struct launcher *l, const char *box_id, struct box_usage *ret,
			  struct err *err);
int launcher_usage_sync(struct launcher *l, const char *box_id, struct box_usage *ret,
			struct err *err);
int launcher_freeze_sync(struct launcher *l, const char *box_id, bool on, struct err *err);
int launcher_limits_sync(struct launcher *l, const char *box_id, const struct limits *limits,
			 struct err *err);
int launcher_template_drop_sync(struct launcher *l, uint32_t template_id, struct err *err);
/* ret->id is not valid behind the call; ret may be NULL. */
int launcher_snapshot_sync(struct launcher *l, const struct snapshot_spec *s,
			   struct layer_info *ret, struct err *err);
int launcher_layer_drop_sync(struct launcher *l, const char *layer_id, struct err *err);
int launcher_layers_sync(struct launcher *l,
			 void (*each)(void *user, const struct layer_info *layer), void *user,
			 struct err *err);
int launcher_volume_make_sync(struct launcher *l, const struct volume_spec *v, struct err *err);
int launcher_volume_drop_sync(struct launcher *l, const char *volume_id, struct err *err);
int launcher_volumes_sync(struct launcher *l,
			  void (*each)(void *user, const struct volume_info *volume), void *user,
			  struct err *err);
/* A box that ended by itself, while no launcher_on_death() is set; false when none is waiting.
 * ret_usage may be NULL. */
bool launcher_next_death(struct launcher *l, char ret_id[ID_LEN + 1], int *ret_status,
			 struct box_usage *ret_usage);
