/* What the daemon itself was given by others (tokens, registrations), as objects of no owner: kept
 * in the store, listed and shown by no call. */
#pragma once

#include "sandbox/objects.h"

#define CREDENTIAL_OWNER ":daemon" /* no user is called so */
#define CREDENTIAL_MAX 256u
#define CREDENTIAL_BYTES_MAX (128u << 10)

extern const struct object_kind credential_kind;

/* Its text, borrowed for the turn of the loop; NULL: there is none. */
const char *credential_find(struct sandboxes *all, const char *name);
/* Puts text (JSON) in its place, or removes it (NULL). EBUSY: a change is on its way. */
void credential_put(struct sandboxes *all, const char *name, const char *text, object_cb cb,
		    void *user);
