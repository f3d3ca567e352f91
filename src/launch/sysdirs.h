/* The machine's system directories once more: directories alone, and a box's root owns them. This
 * lies between a writable root and what it is made of, so that the box's root may add to /usr and
 * all that is below, and take from it. The machine's files keep an owner that is nobody there: what
 * only the machine's root may read, no box reads.
 *
 * One for all boxes, made when the first needs it: a job reads all names of directories, and claims
 * wait for it meanwhile. Each box has its own view of it (enclave.h). */
#pragma once

#include <stdbool.h>

struct cell;
struct err;
struct launch;
struct template;
struct template_spec;

/* Whether boxes of the template get it. Where it could not be made, boxes do without, and it is not
 * tried again. */
bool sysdirs_are_for(const struct launch *l, const struct template_spec *t);
/* Whether boxes of the template must wait for it; server_again() follows. Begins to make it. */
bool sysdirs_are_coming(struct launch *l, const struct template *t);
/* A view for a box, mounted nowhere: its descriptor. -EOPNOTSUPP: it cannot be had here, as on a
 * kernel before 6.3. */
int sysdirs_mount(struct launch *l, struct cell *cell, struct err *err);
