/* Snapshots: what a sandbox has written, kept under a name; forks: new sandboxes from what another
 * has written until now. Both begin with a layer that is taken while the sandbox stands still. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "sandbox/kit.h"
#include "sandbox/layers.h"
#include "sandbox/objects.h"
#include "sandbox/pairs.h"
#include "sandbox/sandbox.h"

#define FORK_MAX 64 /* sandboxes by one request */

struct snapshot { /* the data of its object */
	char sandbox_id[ID_LEN + 1];
	char template[SANDBOX_NAME_MAX * 2 + 2]; /* as its sandbox had it */
	struct kit kit;                          /* owned */
	struct limits limits;
	struct pairs env, metadata; /* owned */
	struct layers layers;       /* on top of the kit's */
	uint64_t bytes;             /* of its own layer */
	uint32_t inodes, skipped;
};
extern const struct object_kind snapshot_kind;

/* Answers when it is in the store. EBUSY (the state; another is being taken), EEXIST (the name),
 * EOPNOTSUPP (this machine cannot), and the launcher's. */
void snapshot_create(struct sandbox *sb, const char *name, object_cb cb, void *user);
/* The same, but one of that name becomes this: its id stays. */
void snapshot_replace(struct sandbox *sb, const char *name, object_cb cb, void *user);

struct fork_request { /* borrowed for the call */
	uint32_t count;
	const char *name;                  /* "": none. Of several: name-1, name-2, ... */
	const char *owner;                 /* of the new ones */
	const char *key_id;                /* who makes them */
	uint64_t timeout_ms;               /* 0: as the first one's */
	const struct trace_context *trace; /* what it is a part of; NULL: nothing */
};
/* All of them are running, or err says why none is. They are borrowed for the call. */
typedef void (*fork_cb)(void *user, struct sandbox *const *made, size_t n, const struct err *err);
void sandbox_fork(struct sandbox *sb, const struct fork_request *req, fork_cb cb, void *user);

/* ---- inside ---- */

struct layer_info;

/* chain: what a new sandbox of the same template needs to have the same files; held for the
 * callback, which holds it itself if it wants it for longer. info: of the layer that was taken;
 * NULL when none had to be. err: why there is none. */
typedef void (*layer_cb)(void *user, const struct layers *chain, const struct layer_info *info,
			 const struct err *err);
/* flags: enum snapshot_flag. The sandbox is running, paused, being suspended or suspended. */
void layer_take(struct sandbox *sb, uint32_t flags, layer_cb cb, void *user);
