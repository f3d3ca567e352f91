#include "e2b/client.h"

#include <errno.h>
#include <string.h>

#include "api/call.h"
#include "api/problem.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/str.h"
#include "net/http.h"

#define VERSION_MAX 40

/* "2.51.0" of "e2b-js-sdk/2.51.0"; empty: it is no SDK's name. */
static struct str sdk_version(struct str product)
{
	static const char *const names[] = { "e2b-js-sdk/", "e2b-python-sdk/" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t n = strlen(names[i]);

		if (str_starts(product, names[i]))
			return (struct str){ product.data + n, product.len - n };
	}
	return (struct str){ 0 };
}

static struct str find_version(const char *agent, const char *package_version)
{
	struct str rest = str_of(agent), one;

	while (str_split(&rest, ' ', &one)) {
		struct str version = sdk_version(one);

		if (version.len > 0)
			return version;
	}
	return str_of(package_version);
}

int client_check(const char *agent, const char *package_version, struct err *err)
{
	struct str version = find_version(agent, package_version), rest = version, major;
	char text[VERSION_MAX + 1];
	uint32_t number;

	if (version.len == 0 || !str_split(&rest, '.', &major))
		return 0;
	if (major.len >= sizeof(text))
		return 0; /* nothing that could be a version */
	memcpy(text, major.data, major.len);
	text[major.len] = '\0';
	if (parse_u32(text, 0, UINT32_MAX, &number) < 0 ||
	    (number >= E2B_MAJOR_MIN && number <= E2B_MAJOR_MAX))
		return 0;
	return err_set(err, EPROTONOSUPPORT,
		       "version %.*s of the E2B SDK is not known to this server: it speaks to "
		       "versions %u.x to %u.x",
		       (int)(version.len < VERSION_MAX ? version.len : VERSION_MAX), version.data,
		       E2B_MAJOR_MIN, E2B_MAJOR_MAX);
}

bool client_is_known(struct api_call *c)
{
	struct err err = { 0 };

	if (client_check(http_header(c->http, "User-Agent"),
			 http_header(c->http, "package_version"), &err) == 0)
		return true;
	problem_status(c, 400, "%s", err.text);
	return false;
}
