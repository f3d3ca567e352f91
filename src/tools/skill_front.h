/* The head of a SKILL.md: YAML between two lines of "---", as agentskills.io has it. Sans-I/O. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct err;

#define SKILL_MANIFEST "SKILL.md"
#define SKILL_NAME_MAX 64u
#define SKILL_ABOUT_MAX 1024u /* characters of a description */
#define SKILL_NEEDS_MAX 500u  /* of what it says to be compatible with */
#define SKILL_FRONT_MAX (64u << 10)

struct skill_front { /* arena */
	const char *name, *about;
	const char *json; /* all of it, as an object: what we do not know stays */
	size_t json_len;
};

/* [a-z0-9] and single hyphens inside, up to SKILL_NAME_MAX. */
bool skill_name_is_valid(const char *name);
/* dir: the directory's name, which the skill must have too. -EINVAL says what is wrong, with its
 * line where there is one; -E2BIG, -ENOMEM. */
int skill_front_read(const char *text, size_t n, const char *dir, struct arena *a,
		     struct skill_front *ret, struct err *err);
