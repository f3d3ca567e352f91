#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "config/config.h"

/* The host of "host:port" or "[host]:port"; -EINVAL when it has not that form. */
static int host_of(const char *listen, char *dst, size_t size)
{
	const char *colon = strrchr(listen, ':');
	struct str host = { listen, colon ? (size_t)(colon - listen) : 0 };

	if (!colon)
		return -EINVAL;
	if (host.len >= 2 && host.data[0] == '[' && host.data[host.len - 1] == ']') {
		host.data++;
		host.len -= 2;
	}
	return str_format(dst, size, "%.*s", (int)host.len, host.data);
}

bool config_is_loopback(const char *listen)
{
	struct in_addr v4;
	struct in6_addr v6;
	char host[256];

	if (strncmp(listen, "unix:", 5) == 0)
		return true;
	if (host_of(listen, host, sizeof(host)) < 0)
		return false;
	if (strcmp(host, "localhost") == 0)
		return true;
	if (inet_pton(AF_INET, host, &v4) == 1)
		return ntohl(v4.s_addr) >> 24 == 127;
	if (inet_pton(AF_INET6, host, &v6) == 1)
		return IN6_IS_ADDR_LOOPBACK(&v6) ||
		       (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
	return false;
}

/* Lower-case labels: it is compared with what browsers send. */
static bool is_domain(const char *s)
{
	size_t n = strlen(s);

	return n > 0 && s[0] != '.' && s[n - 1] != '.' && !strstr(s, "..") &&
	       s[strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-.")] == '\0';
}

/* It is put in front of paths. */
static bool is_base_url(const char *s)
{
	size_t skip = strncmp(s, "https://", 8) == 0 ? 8 : strncmp(s, "http://", 7) == 0 ? 7 : 0;
	size_t n = strlen(s);

	return skip > 0 && n > skip && s[n - 1] != '/' && !strpbrk(s, " \t\"<>?#\\");
}

static int check_names(const struct config *c, struct err *err)
{
	if (c->public_url && c->public_url[0] && !is_base_url(c->public_url))
		return err_set(err, EINVAL,
			       "public_url %.60s: want one such as https://holt.example, without a "
			       "slash at its end",
			       c->public_url);
	if (c->domain && !is_domain(c->domain))
		return err_set(err, EINVAL, "domain %.60s: want a name such as box.example",
			       c->domain);
	return 0;
}

static int check_doors(const struct config *c, struct err *err)
{
	if (!c->listen)
		return err_set(err, EINVAL, "listen: no address to serve");
	if (c->tls_cert && !c->tls_key)
		return err_set(err, EINVAL,
			       "tls_cert needs tls_key, the certificate's private key");
	if (c->tls_key && !c->tls_cert)
		return err_set(err, EINVAL, "tls_key needs tls_cert, the certificate");
	if (!c->tls_cert && !c->insecure_bind && !config_is_loopback(c->listen))
		return err_set(
			err, EINVAL,
			"listen %.60s: other machines would reach it without TLS: set tls_cert "
			"and tls_key, or insecure_bind when something in front does TLS",
			c->listen);
	for (size_t i = 0; i < c->cors_origins.len; i++)
		if (!strstr(c->cors_origins.items[i], "://") &&
		    strcmp(c->cors_origins.items[i], "*") != 0)
			return err_set(err, EINVAL,
				       "cors_origins: '%.60s': want https://host[:port]",
				       c->cors_origins.items[i]);
	return 0;
}

/* Whether a URL keeps what it brings from being changed on the way. */
static bool is_trusted_url(const char *url)
{
	char host[256];

	if (strncmp(url, "http://", 7) != 0)
		return true; /* https, or a file */
	url += 7;
	if (str_format(host, sizeof(host), "%.*s:", (int)strcspn(url, ":/?"), url) < 0)
		return false;
	return config_is_loopback(host) || strncmp(url, "[::1]", 5) == 0;
}

static int check_tokens(const struct config *c, struct err *err)
{
	unsigned given = !!c->jwt_issuer + !!c->jwt_audience + !!c->jwt_jwks;

	if (given != 0 && given != 3)
		return err_set(err, EINVAL,
			       "jwt_issuer, jwt_audience and jwt_jwks: want all of them or none");
	if (c->jwt_jwks && !is_trusted_url(c->jwt_jwks))
		return err_set(err, EINVAL,
			       "jwt_jwks: keys that come without TLS could be anybody's: want "
			       "https://, a file, or http:// to this machine");
	return 0;
}

/* Its rows are programs to start: a file that came with a checkout must not name them. */
static int check_servers(const struct config *c, struct err *err)
{
	size_t n;
	const struct setting *table = settings_table(&n);
	const struct config_source *from = &c->sources[settings_find("mcp_servers_file") - table];

	return c->mcp_servers_file && from->local
		       ? err_set(err, EPERM,
				 "%.100s: mcp_servers_file is not taken from a file of the working "
				 "directory: want --mcp-servers-file or HOLT_MCP_SERVERS_FILE",
				 from->where)
		       : 0;
}

/* An address, not two of them with a blank between: entries are separated by commas. */
static int check_registry(const char *name, const struct config_list *list, struct err *err)
{
	for (size_t i = 0; i < list->len; i++) {
		const char *url = list->items[i];

		if ((strncmp(url, "https://", 8) != 0 && strncmp(url, "http://", 7) != 0) ||
		    strpbrk(url, " \t"))
			return err_set(err, EINVAL,
				       "%s: '%.100s': want https://host[:port]/path, and commas "
				       "between several",
				       name, url);
	}
	return 0;
}

static int check_registries(const struct config *c, struct err *err)
{
	int r = check_registry("registry_pip", &c->registry_pip, err);

	if (r == 0)
		r = check_registry("registry_npm", &c->registry_npm, err);
	if (r == 0)
		r = check_registry("registry_cargo", &c->registry_cargo, err);
	return r < 0 ? r : check_registry("registry_go", &c->registry_go, err);
}

static int check_traces(const struct config *c, struct err *err)
{
	if (c->otlp_endpoint && strncmp(c->otlp_endpoint, "http://", 7) != 0 &&
	    strncmp(c->otlp_endpoint, "https://", 8) != 0)
		return err_set(err, EINVAL, "otlp_endpoint: want http:// or https://");
	if (c->otlp_headers && !c->otlp_endpoint)
		return err_set(err, EINVAL, "otlp_headers: there is no otlp_endpoint");
	if (c->otlp_headers && !is_trusted_url(c->otlp_endpoint))
		return err_set(err, EINVAL,
			       "otlp_headers would be seen on the way: want an otlp_endpoint with "
			       "https://, or http:// to this machine");
	return 0;
}

static int check_limits(const struct config *c, struct err *err)
{
	struct err why = { 0 };
	int n;

	if (spec_check_max(&c->limits, &c->limits_max, &why) == 0)
		return 0;
	n = (int)strcspn(why.text, " ");
	return err_set(err, EINVAL, "limits_%.*s: %s (limits_%.*s_max)", n, why.text, why.text, n,
		       why.text);
}

int config_check(const struct config *c, struct err *err)
{
	int r = check_names(c, err);

	if (r == 0)
		r = check_doors(c, err);
	if (r == 0)
		r = check_tokens(c, err);
	if (r == 0)
		r = check_traces(c, err);
	if (r == 0)
		r = check_registries(c, err);
	if (r == 0)
		r = check_servers(c, err);
	if (r == 0)
		r = check_limits(c, err);
	if (r < 0)
		return r;
	if (c->sandbox_timeout_ms > c->sandbox_timeout_max_ms)
		return err_set(err, EINVAL, "sandbox_timeout is longer than sandbox_timeout_max");
	if (c->exec_timeout_ms > c->exec_timeout_max_ms)
		return err_set(err, EINVAL, "exec_timeout is longer than exec_timeout_max");
	if (c->pool_min > c->pool_max)
		return err_set(err, EINVAL, "pool_min is more than pool_max");
	return 0;
}
