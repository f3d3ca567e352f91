/* Names that stand for one version of a template: "web:prod" is "web:3" until somebody moves it. An
 * alias never points to nothing: a version that has one cannot be removed. */
#pragma once

#include <stdint.h>

#include "sandbox/objects.h"

struct err;
struct sandboxes;

struct template_alias {                     /* the data of its object, which is called "web:prod" */
	char template[OBJECT_NAME_MAX + 1]; /* "web:3" */
};
extern const struct object_kind alias_kind;

/* EINVAL: whether an alias may be called so. */
int alias_check_name(const char *alias, struct err *err);
/* name: of the template, without a version. A new one, or one that is moved. EINVAL, ENOENT (there
 * is no such version), EBUSY. */
void alias_put(struct sandboxes *all, const char *owner, const char *name, const char *alias,
	       uint64_t version, object_cb cb, void *user);
/* "web:prod"; NULL. */
struct object *alias_find(struct sandboxes *all, const char *owner, const char *full);
/* The first that points to it; NULL. */
struct object *alias_of(struct sandboxes *all, const struct object *template);
/* Whether a template may go: EBUSY names the alias. */
int alias_check_removal(struct sandboxes *all, const struct object *template, struct err *err);
