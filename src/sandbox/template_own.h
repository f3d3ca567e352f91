/* Templates of users: a built-in one with variables, limits and files of their own. They have
 * versions, name:1, name:2 and so on; the name alone, and name:latest, is the newest. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "sandbox/layers.h"
#include "sandbox/makeup.h"
#include "sandbox/objects.h"
#include "sandbox/pairs.h"

#define TEMPLATE_NAME_MAX 40
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

struct template_wish { /* borrowed for the call */
	const char *owner, *name, *about;
	const char *from;     /* a built-in template or one of the owner's; "": the default */
	const char *snapshot; /* its files, and what it was made of, instead of from; "": none */
	struct limits limits; /* 0: as from has them */
	const struct sandbox_pair *env; /* before those of from */
	size_t n_env;
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
/* By name, name:version or id; NULL. Borrowed for this turn of the loop. */
struct object *template_own_find(struct sandboxes *all, const char *owner, const char *name);
