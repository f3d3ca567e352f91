/* What leads programs to the proxy of their box. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "api/network.h"
#include "base/arena.h"
#include "sandbox/sandbox.h"

#define DIRECT "localhost,127.0.0.1,::1" /* what is reached without the proxy */

/* Programs look for either spelling. */
const char *const network_variables[] = { "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy",
					  "NO_PROXY",   "no_proxy",    NULL };

static bool has_name(const struct sandbox_pair *env, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(env[i].name, name) == 0)
			return true;
	return false;
}

ssize_t network_add_env(struct sandbox_pair *env, size_t n, uint16_t port, struct arena *a)
{
	const char *proxy = arena_printf(a, "http://127.0.0.1:%u", port);

	if (!proxy)
		return -ENOMEM;
	for (const char *const *name = network_variables; port != 0 && *name; name++) {
		bool is_proxy = strcasecmp(*name, "NO_PROXY") != 0;

		if (!has_name(env, n, *name))
			env[n++] = (struct sandbox_pair){ *name, is_proxy ? proxy : DIRECT };
	}
	return (ssize_t)n;
}
