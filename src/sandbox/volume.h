/* Volumes: file systems of a fixed size that outlive sandboxes. One sandbox at a time has one; a
 * stopped sandbox lets go of it and wants it back when it starts. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/id.h"
#include "sandbox/objects.h"
#include "spec/launch.h"
#include "json/jv.h"

struct jw;
struct sandbox;
struct sandboxes;

/* The state of its object. One that is not ready when the launcher comes is undone: nobody was told
 * that it is there, or somebody that it is gone. */
enum volume_state { VOLUME_MAKING, VOLUME_READY, VOLUME_LEAVING };

struct volume { /* the data of its object */
	uint64_t bytes;
};
extern const struct object_kind volume_kind;

/* Answers when it can be used. EINVAL, EEXIST, EOPNOTSUPP (this machine cannot), EDQUOT. */
void volume_create(struct sandboxes *all, const char *owner, const char *name, uint64_t bytes,
		   object_cb cb, void *user);
/* EBUSY: a sandbox has it. */
void volume_delete(struct sandboxes *all, const char *id, object_cb cb, void *user);
/* The sandbox that has it, but for our own (volume_box.h); NULL. */
const char *volume_holder(struct sandboxes *all, const char *id);

struct volume_mount { /* where a sandbox has one; in a request, name may be an id */
	char id[ID_LEN + 1];
	char name[OBJECT_NAME_MAX + 1];
	char path[VOLUME_PATH_MAX + 1];
	bool read_only;
};

struct volume_mounts {
	uint8_t n;
	struct volume_mount items[VOLUMES_MAX];
};

/* Where a sandbox has it; NULL: it has not. */
const char *volume_path(const struct sandbox *sb, const char *id);

/* ---- inside ---- */

/* Finds them for an owner: EINVAL (named), EBUSY (who has it). */
int volumes_resolve(struct sandboxes *all, const char *owner, struct volume_mounts *m,
		    struct err *err);
/* EBUSY: another than this sandbox has one of them. */
int volumes_check(struct sandbox *sb, struct err *err);
void volumes_fill_spec(const struct volume_mounts *m, struct launch_spec *spec); /* borrowed */
void volumes_write(const struct volume_mounts *m, struct jw *w);
int volumes_read(struct jv v, struct volume_mounts *ret); /* -EINVAL; absent: none */
void volumes_settle(struct sandboxes *all);               /* the launcher is there */
