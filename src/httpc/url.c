#include "httpc/url.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"

static void url_done(CURLU **u)
{
	curl_url_cleanup(*u);
}

/* One part of the address into dst; absent ones are "". */
static int get(CURLU *u, CURLUPart part, char *dst, size_t size)
{
	char *text = NULL;
	int r;

	dst[0] = '\0';
	if (curl_url_get(u, part, &text, 0) != CURLUE_OK)
		return 0;
	r = str_copy(dst, size, text);
	curl_free(text);
	return r;
}

static bool is_given(CURLU *u, CURLUPart part)
{
	char some[2];

	return get(u, part, some, sizeof(some)) < 0 || some[0] != '\0';
}

static bool is_loopback(const char *host)
{
	struct in_addr four;

	/* by all of it: 127.0.0.1.example is a name like any other */
	return strcasecmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0 ||
	       (strncmp(host, "127.", 4) == 0 && inet_pton(AF_INET, host, &four) == 1);
}

static int refuse(struct err *err, const char *text)
{
	return err_set(err, EINVAL,
		       "url '%.100s': wants http://HOST:PORT, https://HOST or unix:PATH", text);
}

static int parse_unix(const char *path, struct url *ret, struct err *err)
{
	if (path[0] != '/' || str_copy(ret->socket, sizeof(ret->socket), path) < 0)
		return err_set(err, EINVAL,
			       "url 'unix:%.100s': wants an absolute path of at most %zu bytes",
			       path, sizeof(ret->socket) - 1);
	ret->loopback = true;
	(void)str_copy(ret->base, sizeof(ret->base), "http://localhost");
	(void)str_copy(ret->host, sizeof(ret->host), "localhost");
	return 0;
}

/* The parts that requests are made of, put together again so that nothing else slips in. */
static int take_parts(CURLU *u, struct url *ret)
{
	char scheme[16], host[240], port[8];
	size_t n;

	if (get(u, CURLUPART_SCHEME, scheme, sizeof(scheme)) < 0 ||
	    get(u, CURLUPART_HOST, host, sizeof(host)) < 0 ||
	    get(u, CURLUPART_PORT, port, sizeof(port)) < 0 ||
	    get(u, CURLUPART_PATH, ret->prefix, sizeof(ret->prefix)) < 0 || host[0] == '\0')
		return -EINVAL;
	ret->tls = strcmp(scheme, "https") == 0;
	if (!ret->tls && strcmp(scheme, "http") != 0)
		return -EINVAL;
	for (n = strlen(ret->prefix); n > 0 && ret->prefix[n - 1] == '/'; n--)
		ret->prefix[n - 1] = '\0';
	ret->loopback = is_loopback(host);
	if (str_format(ret->host, sizeof(ret->host), "%s%s%s", host, port[0] ? ":" : "", port) < 0)
		return -EINVAL;
	return str_format(ret->base, sizeof(ret->base), "%s://%s%s", scheme, ret->host,
			  ret->prefix);
}

int url_parse(const char *text, struct url *ret, struct err *err)
{
	_cleanup_(url_done) CURLU *u = NULL;
	struct url url = { 0 };
	int r;

	if (strncmp(text, "unix:", 5) == 0) {
		r = parse_unix(text + 5, &url, err);
		if (r == 0)
			*ret = url;
		return r;
	}
	u = curl_url();
	if (!u)
		return err_sys(err, ENOMEM, "url");
	if (strlen(text) >= URL_MAX || !strstr(text, "://") ||
	    curl_url_set(u, CURLUPART_URL, text, 0) != CURLUE_OK)
		return refuse(err, text);
	if (is_given(u, CURLUPART_USER) || is_given(u, CURLUPART_PASSWORD))
		return err_set(err, EINVAL,
			       "url: a user or password in it is not used; keys are "
			       "given as api_key");
	if (is_given(u, CURLUPART_QUERY) || is_given(u, CURLUPART_FRAGMENT) ||
	    take_parts(u, &url) < 0)
		return refuse(err, text);
	*ret = url;
	return 0;
}

static bool is_unreserved(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_' || c == '.' || c == '~';
}

static int escape(struct buf *b, const char *text, bool keep_slash)
{
	for (; *text; text++) {
		if (is_unreserved(*text) || (keep_slash && *text == '/'))
			(void)buf_putc(b, *text);
		else
			(void)buf_printf(b, "%%%02X", (unsigned char)*text);
	}
	return b->failed ? -E2BIG : 0;
}

int url_escape(struct buf *b, const char *text)
{
	return escape(b, text, false);
}

int url_escape_path(struct buf *b, const char *path)
{
	return escape(b, path, true);
}

int url_add_query(struct buf *b, const char *name, const char *value)
{
	(void)buf_putc(b, memchr(buf_str(b), '?', b->len) ? '&' : '?');
	(void)url_escape(b, name);
	(void)buf_putc(b, '=');
	return url_escape(b, value);
}
