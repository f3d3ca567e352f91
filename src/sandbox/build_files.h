/* Files that builds copy into their boxes: tar archives that clients have sent, kept by the SHA-256
 * of their bytes below the state directory, or by a label: a sum that its sender has made of
 * something else. An archive is its owner's: another learns nothing of
 * it, not even by its sum. It counts as their disk, and goes when no build has needed it for a day.
 *
 * Nothing half-made is ever found: an archive has a record from the moment it is whole. What lies
 * there is checked against its sum again when it is used. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "sandbox/objects.h"

struct sandboxes;

#define BUILD_HASH_LEN 64 /* characters: lower-case hex */
#define BUILD_FILE_DAYS_MS (24ull * 3600 * 1000)

#define BUILD_LABEL "label-" /* in front of such a sum */
#define BUILD_FILE_NAME_MAX (BUILD_HASH_LEN + sizeof(BUILD_LABEL) - 1)

struct build_file { /* the data of its object; its name is the sum, or a label */
	uint64_t bytes;
	char sum[BUILD_HASH_LEN + 1]; /* "": its name */
	int64_t used_ms;              /* by this process; 0: not yet */
};
extern const struct object_kind build_file_kind;

bool build_hash_is_valid(const char *hash);
bool build_file_name_is_valid(const char *name); /* a sum or a label */

struct build_upload; /* opaque: one on its way in */
/* EINVAL (no such sum), EDQUOT (too many at once), EOPNOTSUPP (no place for files). */
int build_upload_begin(struct sandboxes *all, const char *owner, const char *name,
		       struct build_upload **ret, struct err *err);
/* QUOTA_ERRNO (the owner's disk), ENOSPC, EIO: abort it. */
int build_upload_write(struct build_upload *u, const void *data, size_t n, struct err *err);
/* EINVAL: it is not what its sum says. One that is there already is as good. Frees it. */
void build_upload_finish(struct build_upload *u, object_cb cb, void *user);
void build_upload_abort(struct build_upload *u); /* takes NULL */

/* NULL: the owner has none. It stays for another day. */
struct object *build_file_find(struct sandboxes *all, const char *owner, const char *name);
const char *build_file_sum(const struct object *o); /* what its bytes must be */
/* A descriptor to read it by, which is the caller's; -errno. */
int build_file_open(struct sandboxes *all, const struct object *o, struct err *err);
/* It is not what it should be: it goes, and can be sent again. */
void build_file_drop(struct sandboxes *all, const char *id);

/* ---- inside ---- */

/* Once, behind all that was loaded: what has no record goes. */
void build_files_settle(struct sandboxes *all);
/* Removes what nobody has needed for a day. */
void build_files_sweep(struct sandboxes *all);
