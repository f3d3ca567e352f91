#include <errno.h>

#include "api/network.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "egress/rules.h"

int network_rules(const struct network_terms *t, struct egress_rules **ret, struct err *err)
{
	_cleanup_(rules_free_p) struct egress_rules *r = rules_create(t->is_open);
	int code = r ? 0 : err_sys(err, ENOMEM, "network");

	for (size_t i = 0; i < t->allow.len && code == 0; i++)
		code = rules_allow(r, t->allow.items[i], err);
	for (size_t i = 0; i < t->deny.len && code == 0; i++)
		code = rules_deny(r, t->deny.items[i], err);
	if (code == 0)
		*ret = TAKE(r);
	return code;
}

int network_check(const struct network_terms *t, struct err *err)
{
	struct egress_rules *rules = NULL;
	int r = network_rules(t, &rules, err);

	(void)rules_free(rules);
	return r;
}
