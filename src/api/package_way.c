#include "api/package_way.h"

#include <errno.h>
#include <string.h>

#include "api/call.h"
#include "api/way.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "config/config.h"
#include "egress/policy.h"

const char *const package_names[PACKAGE_MANAGERS] = {
	[PACKAGE_PIP] = "pip",
	[PACKAGE_NPM] = "npm",
	[PACKAGE_CARGO] = "cargo",
	[PACKAGE_GO] = "go",
};

const struct config_list *package_registries(const struct api *api, enum package_manager m)
{
	const struct config *c = api->deps.config;
	const struct config_list *const lists[PACKAGE_MANAGERS] = {
		[PACKAGE_PIP] = &c->registry_pip,
		[PACKAGE_NPM] = &c->registry_npm,
		[PACKAGE_CARGO] = &c->registry_cargo,
		[PACKAGE_GO] = &c->registry_go,
	};

	return lists[m];
}

int package_check(const struct api *api, enum package_manager m, const char *const *packages,
		  size_t n, struct err *err)
{
	for (size_t k = 0; k < n; k++)
		if (!package_is_good(m, packages[k]))
			return err_set(err, EINVAL,
				       "packages: '%.60s' is no name and version for %s",
				       packages[k], package_names[m]);
	if (package_registries(api, m)->len > 0)
		return 0;
	return err_set(err, EOPNOTSUPP, "no registry for %s is configured: set registry_%s",
		       package_names[m], package_names[m]);
}

int package_way_open(struct api *api, struct sandbox *sb, enum package_manager m,
		     const struct way_ops *ops, void *user, struct way **ret, struct err *err)
{
	const struct config_list *list = package_registries(api, m);
	struct egress_policy policy = { .allow_private = api->deps.config->registry_allow_private,
					.closed = api->deps.closed };
	int r = 0;

	for (size_t k = 0; k < list->len && r == 0; k++)
		r = policy_allow_url(&policy, list->items[k], err);
	return r < 0 ? r : way_open(api, sb, &policy, false, ops, user, ret, err);
}

int package_way_plan(const struct api *api, enum package_manager m, const char *const *packages,
		     size_t n, uint16_t port, struct arena *a, struct package_plan *ret)
{
	char proxy[32];

	(void)str_format(proxy, sizeof(proxy), "http://127.0.0.1:%u", port);
	return package_plan(m, packages, n, package_registries(api, m)->items[0],
			    arena_strndup(a, proxy, strlen(proxy)), a, ret);
}

int package_way_plan_file(const struct api *api, enum package_manager m, const char *file,
			  uint16_t port, struct arena *a, struct package_plan *ret)
{
	char proxy[32];

	(void)str_format(proxy, sizeof(proxy), "http://127.0.0.1:%u", port);
	return package_plan_file(m, file, package_registries(api, m)->items[0],
				 arena_strndup(a, proxy, strlen(proxy)), a, ret);
}
