/* The skills that there are now: a set (skill_set.h) that is read again when the directory has
 * changed. The first reading is done by skills_create(), the others on a thread. */
#pragma once

#include "base/cleanup.h"
#include "tools/skill_set.h"

struct err;
struct loop;
struct skills; /* opaque */

#define SKILLS_FOLDER "skills" /* where they are unless told otherwise: in state_dir */

/* dir need not be there (yet). */
int skills_create(struct loop *loop, const char *dir, struct skills **ret, struct err *err);
struct skills *skills_free(struct skills *s); /* takes NULL, returns NULL */
CLEANUP_FUNC(struct skills *, skills_free)

/* Borrowed for this turn; skill_set_ref() keeps it. Never NULL. */
struct skill_set *skills_now(const struct skills *s);
const char *skills_dir(const struct skills *s);
/* Whom to tell when there is another set; one at a time. */
void skills_on_change(struct skills *s, void (*changed)(void *user), void *user);
