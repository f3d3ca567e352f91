/* What boxes are made of: the built-in templates, as data. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "spec/launch.h"

struct err;
struct recipe;
struct sandboxes;

struct template_row {
	const char *name;
	const char *about;
	uint32_t id;    /* the launcher's number of it */
	uint32_t flags; /* enum template_flag */
};

#define TEMPLATE_DEFAULT "python"

const struct template_row *template_rows(size_t *ret_n);
/* By name, or by a runtime's name as others write it ("python:3.11", "nodejs"); NULL. "": the
 * default. */
const struct template_row *template_find(const char *name);

/* What boxes of a template are made of. EINVAL: there is none of that name. */
int template_recipe(struct sandboxes *all, const char *name, struct recipe *ret, struct err *err);
/* The launcher's number for boxes of it, held for the caller (slot.h): that of its warm pool when
 * it has one. strict: enum template_flag beyond the template's own. */
int template_slot(struct sandboxes *all, const char *name, uint32_t strict, uint32_t *ret,
		  struct err *err);
