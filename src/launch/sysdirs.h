/* The machine's system directories once more: directories alone, and a box's root owns them. This
 * lies between a writable root and what it is made of, so that the box's root may add to /usr and
 * all that is below, and take from it. The machine's files keep an owner that is nobody there: what
 * only the machine's root may read, no box reads.
 *
 * One for all boxes; each has its own view of it, with the ids mapped to its own. */
#pragma once

#include <stdbool.h>

#include "launch/box.h"

struct err;
struct launch;
struct template_spec;

/* Makes it for the first template that needs it, which reads all names of directories. Where that
 * fails, boxes do without, and it is not tried again. mount_ns: the template's. */
void sysdirs_prepare(struct launch *l, const struct template_spec *t, int mount_ns);
/* Whether boxes of the template get it. */
bool sysdirs_are_for(const struct launch *l, const struct template_spec *t);
/* A view for a box, mounted nowhere: its descriptor. -EOPNOTSUPP on a kernel before 6.3. */
int sysdirs_mount(const struct launch *l, int layer_ns, struct err *err);
