#include "egress/rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "egress/policy.h"
#include "httpc/guard.h"

#define TEXT_MAX (POLICY_HOST_MAX + 3)

struct rule {
	bool is_allowed;
	char *name; /* owned: "a.example", ".example" for "*.example", "" for any; or NULL: */
	struct guard_net net;
};

struct egress_rules {
	bool is_open;
	struct rule *items; /* owned */
	size_t len;
};

struct egress_rules *rules_create(bool is_open)
{
	struct egress_rules *r = calloc(1, sizeof(*r));

	if (r)
		r->is_open = is_open;
	return r;
}

struct egress_rules *rules_free(struct egress_rules *r)
{
	if (!r)
		return NULL;
	for (size_t i = 0; i < r->len; i++)
		free(r->items[i].name);
	free(r->items);
	free(r);
	return NULL;
}

/* ---- entries ---- */

static int parse_name(const char *text, struct rule *ret)
{
	char host[POLICY_HOST_MAX + 1];
	const char *name = text;
	uint16_t port;

	if (strcmp(text, "*") == 0) {
		ret->name = str_dup(str_of(""));
		return ret->name ? 0 : -ENOMEM;
	}
	if (strncmp(text, "*.", 2) == 0)
		name = text + 1;
	/* A dot in front is of ours, and only behind a star. */
	if ((text[0] == '.') || policy_split(name, host, &port) < 0 || port != 0)
		return -EINVAL;
	ret->name = str_dup(str_of(host));
	return ret->name ? 0 : -ENOMEM;
}

static int add(struct egress_rules *r, const struct rule *rule, struct err *err)
{
	struct rule *items;

	if (r->len == RULES_MAX)
		return err_set(err, E2BIG, "more than %u networks and names", RULES_MAX);
	items = reallocarray(r->items, r->len + 1, sizeof(*items));
	if (!items)
		return err_sys(err, ENOMEM, "rules");
	r->items = items;
	items[r->len++] = *rule;
	return 0;
}

int rules_allow(struct egress_rules *r, const char *text, struct err *err)
{
	struct rule rule = { .is_allowed = true };
	int code = guard_net_parse(text, &rule.net);

	if (code < 0 && !strchr(text, '/'))
		code = parse_name(text, &rule);
	if (code == -EINVAL)
		return err_set(
			err, EINVAL,
			"'%.80s': want an address, a network such as 192.0.2.0/24, or a name",
			text);
	if (code == 0)
		code = add(r, &rule, err);
	if (code < 0)
		free(rule.name);
	return code;
}

int rules_deny(struct egress_rules *r, const char *text, struct err *err)
{
	struct rule rule = { 0 };

	if (guard_net_parse(text, &rule.net) < 0)
		return err_set(err, EINVAL,
			       "'%.80s': want an address or a network such as 192.0.2.0/24", text);
	return add(r, &rule, err);
}

/* ---- asking ---- */

static bool is_named(const struct rule *rule, const char *host)
{
	if (rule->name[0] == '\0')
		return true;
	if (rule->name[0] == '.')
		return str_ends(str_of(host), rule->name) && strlen(host) > strlen(rule->name);
	return strcmp(rule->name, host) == 0;
}

bool rules_allow_name(const struct egress_rules *r, const char *host)
{
	for (size_t i = 0; i < r->len; i++)
		if (r->items[i].is_allowed && r->items[i].name && is_named(&r->items[i], host))
			return true;
	return false;
}

static bool is_in(const struct egress_rules *r, bool is_allowed, const uint8_t address[16])
{
	for (size_t i = 0; i < r->len; i++)
		if (r->items[i].is_allowed == is_allowed && !r->items[i].name &&
		    guard_net_has(&r->items[i].net, address))
			return true;
	return false;
}

bool rules_allow_address(const struct egress_rules *r, const struct sockaddr *a)
{
	uint8_t address[16];

	if (!guard_flatten(a, address))
		return false;
	if (is_in(r, true, address))
		return true;
	return r->is_open && !is_in(r, false, address);
}
