/* Users: what the name of an owner stands for beyond its keys. A user has a role, above which none
 * of their keys and tokens reach, may be shut out, and may have limits of their own. An owner
 * without a record is let in with what the key says, and has everybody's limits.
 *
 * Memory only, as the keys are: the caller loads the table from the store's objects of kind "user"
 * and writes changes there. Functions take a NULL table: nobody has a record. Not for threads. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "auth/buckets.h"
#include "auth/principal.h"
#include "base/cleanup.h"
#include "spec/quota.h"

struct buf;
struct err;
struct object_row; /* store/store.h */

#define USERS_KIND "user"
#define USERS_MAX 100000u

struct user {
	char name[OWNER_MAX + 1];
	enum role role;
	bool is_disabled;
	/* Bits 1 << kind or class: those that are the user's own; the others are everybody's. */
	unsigned own_quota, own_rates;
	struct quota quota;
	struct rate rates[RATE_CLASS_COUNT];
	int64_t created_ms, updated_ms;
};

/* A name that can be an owner's: letters, digits and ._@:|+-, what an identity provider may say;
 * before it, of an owner in a provider's space, that space and its mark (auth/principal.h). */
bool user_name_is_valid(const char *name);
/* What a key may have as its owner: any text without control characters, but for the mark of
 * providers' spaces, which is where it is in a valid name and nowhere else. */
bool user_is_owner(const char *name);
#define USER_NAME_WANTED "want letters, digits and ._@:|+-"
/* The text of the store's row; 0 or -ENOMEM. */
int user_write(const struct user *u, struct buf *text);
/* -EINVAL for what is no user. */
int user_read(const struct object_row *row, struct user *ret, struct err *err);

struct users; /* opaque */

struct users *users_create(size_t max); /* NULL without memory */
struct users *users_free(struct users *users);
CLEANUP_FUNC(struct users *, users_free)
/* Adds or replaces; copied. -E2BIG at max, -ENOMEM. */
int users_put(struct users *users, const struct user *u);
void users_remove(struct users *users, const char *name);
const struct user *users_find(const struct users *users, const char *name); /* NULL; borrowed */

/* Whether requests of this owner are let in. */
bool users_is_good(const struct users *users, const char *owner);
/* The same for one that is asking: -EACCES (401). Takes from it what is above the user's role. */
int users_admit(const struct users *users, struct principal *p, struct err *err);
/* *ret holds everybody's: changes what is the owner's own. */
void users_quota(const struct users *users, const char *owner, struct quota *ret);
void users_rate(const struct users *users, const char *owner, enum rate_class class,
		struct rate *ret);
