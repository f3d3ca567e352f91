#include "spec/quota.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "base/str.h"

static const char *const names[QUOTA_COUNT] = {
	[QUOTA_SANDBOXES] = "sandboxes",   [QUOTA_CPU] = "cpu",
	[QUOTA_MEMORY] = "memory",         [QUOTA_DISK] = "disk",
	[QUOTA_EXECUTIONS] = "executions", [QUOTA_PIDS] = "pids",
};

const char *quota_name(enum quota_kind kind)
{
	return names[kind];
}

/* The one place that knows the form of the text, beside the one below that reads it. */
int quota_refuse(struct err *err, const char *owner, enum quota_kind kind, uint64_t limit,
		 uint64_t used)
{
	return err_set(err, QUOTA_ERRNO,
		       "%s: limit %" PRIu64 ", in use %" PRIu64 ": the quota of '%.63s'",
		       names[kind], limit, used, owner);
}

static bool take_number(struct str *rest, const char *before, uint64_t *ret)
{
	char digits[24];
	struct str part;

	if (!str_starts(*rest, before))
		return false;
	*rest = (struct str){ rest->data + strlen(before), rest->len - strlen(before) };
	part = (struct str){ rest->data, strspn(rest->data, "0123456789") };
	*rest = (struct str){ rest->data + part.len, rest->len - part.len };
	return str_format(digits, sizeof(digits), "%.*s", (int)part.len, part.data) == 0 &&
	       parse_u64(digits, 0, UINT64_MAX, ret) == 0;
}

int quota_refusal(const struct err *err, struct quota_refusal *ret)
{
	struct str rest = str_of(err->text), name;
	struct quota_refusal q = { .kind = QUOTA_COUNT };

	if (err->code != QUOTA_ERRNO || !str_split(&rest, ':', &name))
		return -EINVAL;
	for (int i = 0; i < QUOTA_COUNT; i++)
		if (str_is(name, names[i]))
			q.kind = (enum quota_kind)i;
	if (q.kind == QUOTA_COUNT || !take_number(&rest, " limit ", &q.limit) ||
	    !take_number(&rest, ", in use ", &q.used))
		return -EINVAL;
	*ret = q;
	return 0;
}
