#include <errno.h>
#include <string.h>

#include "httpc/url.h"
#include "mcpc/oauth_impl.h"

#define RESOURCE_PLACE "/.well-known/oauth-protected-resource"
#define SERVER_PLACE "/.well-known/oauth-authorization-server"
#define OPENID_PLACE "/.well-known/openid-configuration"

int oauth_url_check(const char *what, const char *url, struct err *err)
{
	char base[OAUTH_URL_MAX];
	struct url parts;
	size_t n = strcspn(url, "?");

	for (const char *p = url; *p; p++) {
		if (*p <= ' ' || *p > '~' || *p == '#' || *p == '\\' || *p == '"')
			return err_set(err, EINVAL, "%s: no address that can be used", what);
	}
	if (strlen(url) >= sizeof(base))
		return err_set(err, E2BIG, "%s: longer than %zu bytes", what, sizeof(base) - 1);
	memcpy(base, url, n);
	base[n] = '\0';
	if (strncmp(base, "unix:", 5) == 0 || url_parse(base, &parts, NULL) < 0)
		return err_set(err, EINVAL, "%s: no address that can be used", what);
	if (!parts.tls && !parts.loopback)
		return err_set(err, EINVAL, "%s: wants https", what);
	return 0;
}

struct str oauth_url_origin(const char *url)
{
	const char *host = strstr(url, "://");
	size_t n = host ? (size_t)(host - url) + 3 : 0;

	return (struct str){ .data = url, .len = n + strcspn(url + n, "/?#") };
}

bool oauth_url_same_origin(const char *a, const char *b)
{
	return str_eq(oauth_url_origin(a), oauth_url_origin(b));
}

/* The path, without a slash at its end. */
static struct str path_of(const char *url)
{
	struct str origin = oauth_url_origin(url);
	struct str path = { .data = url + origin.len, .len = strcspn(url + origin.len, "?#") };

	while (path.len > 0 && path.data[path.len - 1] == '/')
		path.len--;
	return path;
}

bool oauth_url_covers(const char *resource, const char *server)
{
	size_t n = strlen(resource);

	if (strcmp(resource, server) == 0)
		return true;
	if (n > 0 && resource[n - 1] == '/')
		n--;
	return n >= oauth_url_origin(server).len && strncmp(resource, server, n) == 0 &&
	       (server[n] == '\0' || server[n] == '/' || server[n] == '?');
}

static int add(struct arena *a, const char **places, struct str origin, const char *well_known,
	       struct str path)
{
	size_t n = 0;

	while (places[n])
		n++;
	places[n] = arena_printf(a, "%.*s%s%.*s", (int)origin.len, origin.data, well_known,
				 (int)path.len, path.data);
	return places[n] ? 0 : -ENOMEM;
}

int oauth_url_resource(struct arena *a, const char *server, const char *said,
		       const char *places[OAUTH_PLACES_MAX + 1])
{
	struct str origin = oauth_url_origin(server), path = path_of(server), none = STR("");
	int r = 0;

	memset(places, 0, (OAUTH_PLACES_MAX + 1) * sizeof(*places));
	if (said[0] != '\0')
		r = add(a, places, str_of(said), "", none);
	if (r == 0 && path.len > 0)
		r = add(a, places, origin, RESOURCE_PLACE, path);
	return r < 0 ? r : add(a, places, origin, RESOURCE_PLACE, none);
}

int oauth_url_issuer(struct arena *a, const char *issuer, bool is_old,
		     const char *places[OAUTH_PLACES_MAX + 1])
{
	struct str origin = oauth_url_origin(issuer), path = path_of(issuer), none = STR("");
	int r;

	memset(places, 0, (OAUTH_PLACES_MAX + 1) * sizeof(*places));
	r = add(a, places, origin, SERVER_PLACE, path);
	if (r == 0 && !is_old)
		r = add(a, places, origin, OPENID_PLACE, path);
	if (r == 0 && !is_old && path.len > 0) {
		struct str whole = { .data = issuer, .len = origin.len + path.len };

		r = add(a, places, whole, OPENID_PLACE, none);
	}
	return r;
}
