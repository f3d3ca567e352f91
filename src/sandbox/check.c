#include "sandbox/check.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/utf8.h"
#include "sandbox/grant.h"
#include "sandbox/sandbox.h"

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

int check_name(const char *name, struct err *err)
{
	size_t n = strlen(name);

	if (n == 0)
		return 0;
	if (n > SANDBOX_NAME_MAX || strspn(name, LOWER DIGITS "._-") != n || strchr("._-", name[0]))
		return err_set(err, EINVAL, "name: want up to %d of [a-z0-9._-], first [a-z0-9]",
			       SANDBOX_NAME_MAX);
	return 0;
}

static bool is_env_name(const char *name)
{
	size_t n = strlen(name);

	return n > 0 && n <= 255 && strspn(name, LOWER UPPER DIGITS "_") == n &&
	       !strchr(DIGITS, name[0]);
}

static bool is_taken(const struct sandbox_pair *items, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (strcmp(items[k].name, items[i].name) == 0)
			return true;
	return false;
}

/* What environment and metadata have in common. */
static int check_pairs(const char *field, const struct sandbox_pair *items, size_t n,
		       size_t bytes_max, struct err *err)
{
	size_t bytes = 0;

	for (size_t i = 0; i < n; i++) {
		size_t value = strlen(items[i].value);

		if (is_taken(items, i))
			return err_set(err, EINVAL, "%s: '%.60s' is there twice", field,
				       items[i].name);
		/* It is kept as JSON, which has no other texts. */
		if (!utf8_is_valid(items[i].value, value))
			return err_set(err, EINVAL, "%s: the value of '%.60s' is not UTF-8", field,
				       items[i].name);
		bytes += strlen(items[i].name) + value;
	}
	if (bytes > bytes_max)
		return err_set(err, EINVAL, "%s: %zu bytes, limit %zu", field, bytes, bytes_max);
	return 0;
}

int check_env(const struct sandbox_pair *items, size_t n, struct err *err)
{
	if (n > SANDBOX_ENV_MAX)
		return err_set(err, EINVAL, "env: %zu variables, limit %d", n, SANDBOX_ENV_MAX);
	for (size_t i = 0; i < n; i++)
		if (!is_env_name(items[i].name))
			return err_set(err, EINVAL,
				       "env: '%.60s' is no name of a variable: want "
				       "[A-Za-z_][A-Za-z0-9_]*",
				       items[i].name);
	return check_pairs("env", items, n, ENV_BYTES_MAX, err);
}

int check_metadata(const struct sandbox_pair *items, size_t n, struct err *err)
{
	if (n > SANDBOX_METADATA_MAX)
		return err_set(err, EINVAL, "metadata: %zu pairs, limit %d", n,
			       SANDBOX_METADATA_MAX);
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(items[i].name);

		if (len == 0 || len > METADATA_NAME_MAX || !utf8_is_valid(items[i].name, len))
			return err_set(err, EINVAL, "metadata: a name has 1 to %u bytes of UTF-8",
				       METADATA_NAME_MAX);
	}
	return check_pairs("metadata", items, n, METADATA_BYTES_MAX, err);
}

int check_timeout(const struct sandbox_settings *s, uint64_t timeout_ms, struct err *err)
{
	if (s->timeout_max_ms > 0 && timeout_ms > s->timeout_max_ms)
		return err_set(err, EINVAL, "timeout: at most %llu s (sandbox_timeout_max)",
			       (unsigned long long)(s->timeout_max_ms / 1000));
	if (timeout_ms > INT64_MAX / 4)
		return err_set(err, EINVAL, "timeout: too large");
	return 0;
}

int check_limits(const struct sandbox_settings *s, const struct limits *l, struct err *err)
{
	struct err why = { 0 };

	if (spec_check_max(l, &s->limits_max, &why) == 0)
		return 0;
	return err_set(err, EINVAL, "resources: %s (limits_%.*s_max)", why.text,
		       (int)strcspn(why.text, " "), why.text);
}

int check_note(const char *note, struct err *err)
{
	size_t n = strlen(note);

	if (n > SANDBOX_NOTE_MAX)
		return err_set(err, EINVAL, "note: %zu bytes, limit %u", n, SANDBOX_NOTE_MAX);
	if (!utf8_is_valid(note, n))
		return err_set(err, EINVAL, "note: not UTF-8");
	return 0;
}

/* The way to tools is carried over the box's loopback: see guest/bridge.h. */
static int check_grant(const struct sandbox_request *req, struct err *err)
{
	if (req->strict & TEMPLATE_STRICT_CALLS)
		return err_set(err, EINVAL,
			       "tools: a sandbox with strict system calls has no way to them");
	return grant_check(req->grant, err);
}

int check_request(const struct sandbox_settings *s, const struct sandbox_request *req,
		  struct err *err)
{
	int r;

	if (req->owner[0] == '\0' || strlen(req->owner) > SANDBOX_OWNER_MAX)
		return err_set(err, EINVAL, "owner: want 1 to %d bytes", SANDBOX_OWNER_MAX);
	r = check_name(req->name, err);
	if (r < 0)
		return r;
	if (req->get_or_create && req->name[0] == '\0')
		return err_set(err, EINVAL, "name: needed to get or create");
	r = check_timeout(s, req->timeout_ms, err);
	if (r < 0)
		return r;
	if (req->idle_ms > INT64_MAX / 4)
		return err_set(err, EINVAL, "idleTimeout: too large");
	if (req->life.on_timeout >= LAPSE_COUNT)
		return err_set(err, EINVAL, "onTimeout: there is no such choice");
	r = req->note ? check_note(req->note, err) : 0;
	if (r == 0 && req->grant)
		r = check_grant(req, err);
	if (r < 0)
		return r;
	r = check_env(req->env, req->n_env, err);
	return r < 0 ? r : check_metadata(req->metadata, req->n_metadata, err);
}
