#include "auth/scope.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static const struct {
	const char *name;
	unsigned scopes;
} roles[ROLE_COUNT] = {
	[ROLE_VIEWER] = { "viewer",
			  SCOPE_SANDBOX_READ | SCOPE_FILE_READ | SCOPE_METRICS | SCOPE_USAGE },
	[ROLE_USER] = { "user", SCOPE_ALL & ~(SCOPE_ADMIN | SCOPE_AUDIT) },
	[ROLE_ADMIN] = { "admin", SCOPE_ALL },
};

static const struct {
	enum scope scope;
	const char *name;
} names[] = {
	{ SCOPE_SANDBOX_READ, "sandbox:read" },
	{ SCOPE_SANDBOX_WRITE, "sandbox:write" },
	{ SCOPE_EXEC, "exec" },
	{ SCOPE_FILE_READ, "file:read" },
	{ SCOPE_FILE_WRITE, "file:write" },
	{ SCOPE_KEY, "key" },
	{ SCOPE_METRICS, "metrics" },
	{ SCOPE_ADMIN, "admin" },
	{ SCOPE_PORT, "port" },
	{ SCOPE_TEMPLATE, "template" },
	{ SCOPE_USAGE, "usage" },
	{ SCOPE_AUDIT, "audit" },
	{ SCOPE_WEBHOOK, "webhook" },
	{ SCOPE_IMAGE, "image" },
};

unsigned scope_of_role(enum role role)
{
	return (unsigned)role < ROLE_COUNT ? roles[role].scopes : SCOPE_NONE;
}

const char *scope_name(enum scope scope)
{
	for (size_t i = 0; i < LEN(names); i++)
		if (names[i].scope == scope)
			return names[i].name;
	return NULL;
}

int scope_from(const char *name, unsigned *ret)
{
	for (size_t i = 0; i < LEN(names); i++) {
		if (strcmp(names[i].name, name) == 0) {
			*ret = names[i].scope;
			return 0;
		}
	}
	return -EINVAL;
}

const char *role_name(enum role role)
{
	return (unsigned)role < ROLE_COUNT ? roles[role].name : NULL;
}

int role_from(const char *name, enum role *ret)
{
	for (int i = 0; name && i < ROLE_COUNT; i++) {
		if (strcmp(roles[i].name, name) == 0) {
			*ret = (enum role)i;
			return 0;
		}
	}
	return -EINVAL;
}
