/* Secrets of owners as objects: a name, what is said of it, and a value that goes in and never
 * comes out by any call. It is in the store and in the object's text, and nowhere else. */
#pragma once

#include <stdint.h>

#include "sandbox/objects.h"
#include "json/jv_decode.h"

struct arena;

#define VAULT_ID_PREFIX "sec_" /* before the object's id; no name begins so */
#define VAULT_VALUE_MAX (16u << 10)
#define VAULT_METADATA_MAX 32
#define VAULT_METADATA_KEY_MAX 128
#define VAULT_METADATA_VALUE_MAX 1024
#define VAULT_METADATA_BYTES_MAX 8192u /* names and values of all */
#define VAULT_OWNER_MAX 100u

struct vault_secret {        /* the data of its object: all but the value */
	struct arena *arena; /* owned: its texts */
	uint64_t version;    /* 1, then one more with each change */
	struct jv_pairs metadata;
	uint64_t bytes; /* as it is kept */
};
extern const struct object_kind vault_kind;

struct vault_wish { /* as clients write it; borrowed for the call */
	const char *name, *value;
	struct jv_pairs metadata; /* len VAULT_UNSAID: none, or as it was */
};
#define VAULT_UNSAID SIZE_MAX

/* By its name, in whatever case, or by its id with the prefix; NULL. Another owner's is never
 * found. */
struct object *vault_find(struct sandboxes *all, const char *owner, const char *id_or_name);
/* Names are kept in lower case. EINVAL ("field: why"), EEXIST, EDQUOT. */
void vault_add(struct sandboxes *all, const char *owner, const struct vault_wish *wish,
	       object_cb cb, void *user);
/* Another value, and other metadata if it is said: the next version. EINVAL, ENOENT, EBUSY. */
void vault_change(struct sandboxes *all, const char *id, const struct vault_wish *wish,
		  object_cb cb, void *user);
void vault_remove(struct sandboxes *all, const char *id, object_cb cb, void *user);
void vault_end_owner(struct sandboxes *all, const char *owner); /* all of theirs */
