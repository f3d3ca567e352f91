/* What boxes are made of: the built-in templates, as data. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "spec/launch.h"

struct template_row {
	const char *name;
	const char *about;
	uint32_t id;         /* the launcher's number of it */
	uint32_t flags;      /* enum template_flag */
	const char *workdir; /* where programs run that name no directory; NULL: /workspace */
	const char *path;    /* what PATH is for them; NULL: the usual */
};

#define TEMPLATE_DEFAULT "python"

const struct template_row *template_rows(size_t *ret_n);
/* By name, or by a runtime's name as others write it ("python:3.11", "nodejs"); NULL. "": the
 * default. */
const struct template_row *template_find(const char *name);
