/* Security profiles, as data: what each sets, whether this machine can have it, and what a custom
 * one may say. A profile that cannot be had is refused; nothing is ever made weaker than asked. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

/* As sandboxes are recorded with; the first two are enum box_level. */
enum profile_id { PROFILE_ID_STANDARD, PROFILE_ID_HIGH, PROFILE_ID_CUSTOM, PROFILE_ID_COUNT };

/* The things that a profile settles. */
enum profile_key {
	PROFILE_ENGINE,       /* what stands between the box and the machine's kernel */
	PROFILE_SYSCALLS,     /* which calls the kernel answers */
	PROFILE_PROC,         /* what /proc shows */
	PROFILE_NETWORK,      /* */
	PROFILE_CAPABILITIES, /* of any process in the box, root's included */
	PROFILE_PRIVILEGES,   /* whether set-user-id programs can give more */
	PROFILE_ROOT,         /* whether what the template brought can be changed */
	PROFILE_KEY_COUNT
};

struct profile_choice {
	const char *name, *about;
	uint32_t flags; /* enum template_flag that makes it so */
};

struct profile_setting {
	const char *name, *about;
	const struct profile_choice *choices; /* weakest first; ends with a NULL name */
	unsigned floor;                       /* of a custom profile: its weakest choice */
};

struct profile {
	const char *name, *about;
	unsigned chosen[PROFILE_KEY_COUNT]; /* index of the setting's choice */
};

extern const struct profile_setting profile_settings[PROFILE_KEY_COUNT];
extern const struct profile profiles[PROFILE_ID_COUNT];
extern const char *const profile_names[PROFILE_ID_COUNT + 1]; /* NULL-terminated */

/* NULL: it can be had here. Otherwise why not. */
const char *profile_unavailable(enum profile_id id);

/* What the launcher must be told for a custom profile with this choice ("": standard's). EINVAL: no
 * such choice, or one that is weaker than the floor. */
int profile_choose(enum profile_key key, const char *choice, uint32_t *flags, struct err *err);
