/* What a key may do. A route names the scopes it needs; a role is a set of them. The numbers are
 * kept in the store with the keys: a new one goes at the end. */
#pragma once

#include <stdbool.h>

enum scope {
	SCOPE_NONE = 0, /* public: no key needed */
	SCOPE_SANDBOX_READ = 1 << 0,
	SCOPE_SANDBOX_WRITE = 1 << 1,
	SCOPE_EXEC = 1 << 2,
	SCOPE_FILE_READ = 1 << 3,
	SCOPE_FILE_WRITE = 1 << 4,
	SCOPE_KEY = 1 << 5,      /* one's own keys */
	SCOPE_METRICS = 1 << 6,  /* /metrics */
	SCOPE_ADMIN = 1 << 7,    /* keys of others, warm pools, everything of everybody */
	SCOPE_PORT = 1 << 8,     /* what listens in a sandbox */
	SCOPE_TEMPLATE = 1 << 9, /* templates, snapshots and volumes of one's own */
	SCOPE_USAGE = 1 << 10,   /* what one has used */
	SCOPE_AUDIT = 1 << 11,   /* who did what */
	SCOPE_WEBHOOK = 1 << 12, /* where one's events are sent to */
	SCOPE_IMAGE = 1 << 13,   /* templates of images on the machine, below images_dir */
	SCOPE_ALL = (1 << 14) - 1,
};

enum role { ROLE_VIEWER, ROLE_USER, ROLE_ADMIN, ROLE_COUNT };

unsigned scope_of_role(enum role role);          /* SCOPE_NONE for what is no role */
const char *scope_name(enum scope scope);        /* "sandbox:read"; NULL for a mixture */
int scope_from(const char *name, unsigned *ret); /* -EINVAL */
const char *role_name(enum role role);           /* "viewer"; NULL */
int role_from(const char *name, enum role *ret); /* -EINVAL */
