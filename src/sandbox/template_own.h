/* Templates of users: a built-in one with variables, limits, files and more of their own. They have
 * versions, name:1, name:2 and so on; the name alone, and name:latest where that is no alias, is
 * the newest. Other names for versions are aliases: template_alias.h. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "sandbox/layers.h"
#include "sandbox/makeup.h"
#include "sandbox/objects.h"
#include "sandbox/pairs.h"

#define TEMPLATE_NAME_MAX 63
#define TEMPLATE_ABOUT_MAX 200
#define TEMPLATE_SOURCE_MAX 200

struct template_own { /* the data of its object */
	char about[TEMPLATE_ABOUT_MAX + 1];
	char source[TEMPLATE_SOURCE_MAX + 1]; /* of its files, for people; "": its base's */
	char base[32];                        /* the built-in one */
	struct limits limits;                 /* all of them */
	struct pairs env;                     /* owned */
	struct layers layers;                 /* its files; with ROOT_LAYERS the whole root */
	uint64_t bytes; /* of the layers that go when it does, for its owner */
	struct makeup make;
	struct arena *arena; /* owned: the texts of make; NULL: they are borrowed */
};
extern const struct object_kind template_kind;

/* What somebody says of a new one; all of it is borrowed. */
struct template_traits {
	const char *about;              /* NULL: nothing */
	struct limits limits;           /* 0: as before */
	const struct sandbox_pair *env; /* before those that there are */
	size_t n_env;
	struct makeup make; /* what is not said stays as before; a root is never said here */
};
/* What a new one begins with: a built-in template or one of the owner's ("": the default), or,
 * unless that is "", a snapshot: its files, and what it was made of. Texts of make are borrowed for
 * this turn of the loop, env is the caller's. EINVAL. */
int template_begin(struct sandboxes *all, const char *owner, const char *from, const char *snapshot,
		   struct template_own *ret, struct err *err);
/* Says the traits of it; texts of make are borrowed. EINVAL. */
int template_apply(struct template_own *t, const struct template_traits *said, struct err *err);

struct template_wish { /* borrowed for the call */
	const char *owner, *name;
	const char *from, *snapshot; /* of template_begin() */
	struct template_traits said;
};
/* A new version. EINVAL, EEXIST (the name of a built-in one), EDQUOT. */
void template_create(struct sandboxes *all, const struct template_wish *wish, object_cb cb,
		     void *user);
/* The same of a complete model, of builds: all of it is borrowed for the call. Its layers are held
 * by the caller until the callback. */
void template_put(struct sandboxes *all, const char *owner, const char *name,
		  const struct template_own *t, object_cb cb, void *user);
/* EINVAL, EEXIST: whether a template may be called so. */
int template_check_name(const char *name, struct err *err);
/* One that an alias stands for stays: EBUSY. */
void template_delete(struct sandboxes *all, const char *id, object_cb cb, void *user);
/* By name, name:version, name:alias or id; NULL. Borrowed for this turn of the loop. */
struct object *template_own_find(struct sandboxes *all, const char *owner, const char *name);
