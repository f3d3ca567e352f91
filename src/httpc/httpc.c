#include "httpc/httpc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "httpc/guard.h"
#include "httpc/httpc_impl.h"

#define CONNECT_MS 10000

/* A key goes into a header: what could end the line is no key. */
static bool is_token(const char *s)
{
	for (; *s; s++)
		if (*s <= ' ' || *s > '~')
			return false;
	return true;
}

static int copy(const char *text, char **ret)
{
	*ret = text ? str_dup(str_of(text)) : NULL;
	return text && !*ret ? -ENOMEM : 0;
}

/* The sign in front: they are forgotten as soon as what it looked up itself would be. */
static int keep_addresses(struct httpc *c, const char *addresses, struct err *err)
{
	char text[URL_MAX];

	if (str_format(text, sizeof(text), "+%s", addresses) < 0)
		return err_set(err, E2BIG, "too many addresses of a server");
	c->addresses = curl_slist_append(NULL, text);
	return c->addresses ? 0 : err_sys(err, ENOMEM, "HTTP client");
}

static int fill(struct httpc *c, const struct httpc_options *o, struct err *err)
{
	int r;

	if (o->key && (!o->key[0] || !is_token(o->key)))
		return err_set(err, EINVAL, "the API key has characters that no key has");
	c->public_only = o->public_only;
	c->closed = o->closed && o->closed->len > 0 ? o->closed : NULL;
	c->connect_ms = o->connect_ms ? (long)o->connect_ms : CONNECT_MS;
	if (copy(o->url, &c->given) < 0 || copy(o->key, &c->key) < 0 ||
	    copy(o->ca_file, &c->ca_file) < 0)
		return err_sys(err, ENOMEM, "HTTP client");
	if (o->addresses) {
		r = keep_addresses(c, o->addresses, err);
		if (r < 0)
			return r;
	}
	if (!o->group)
		c->own = httpc_group_create();
	c->group = o->group ? o->group : c->own;
	return c->group ? 0 : err_sys(err, ENOMEM, "HTTP client");
}

struct httpc_group *httpc_group_create(void)
{
	struct httpc_group *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	if (curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
		g->multi = curl_multi_init();
	return g->multi ? g : httpc_group_free(g);
}

struct httpc_group *httpc_group_free(struct httpc_group *g)
{
	if (!g)
		return NULL;
	if (g->multi)
		(void)curl_multi_cleanup(g->multi);
	free(g);
	return NULL;
}

int httpc_create(const struct httpc_options *o, struct httpc **ret, struct err *err)
{
	_cleanup_(httpc_free_p) struct httpc *c = NULL;
	int r;

	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return err_set(err, EIO, "libcurl cannot be used here");
	c = calloc(1, sizeof(*c));
	if (!c)
		return err_sys(err, ENOMEM, "HTTP client");
	r = url_parse(o->url, &c->url, err);
	if (r == 0)
		r = fill(c, o, err);
	if (r < 0)
		return r;
	*ret = TAKE(c);
	return 0;
}

struct httpc *httpc_free(struct httpc *c)
{
	if (!c)
		return NULL;
	c->own = httpc_group_free(c->own);
	if (c->key)
		explicit_bzero(c->key, strlen(c->key));
	free(c->key);
	curl_slist_free_all(c->addresses);
	free(c->ca_file);
	free(c->given);
	free(c);
	return NULL;
}

const char *httpc_url(const struct httpc *c)
{
	return c->given;
}

static bool is_allowed(const struct httpc *c, const void *addr)
{
	return guard_allows(&(struct guard_terms){ !c->public_only, c->closed }, addr);
}

/* Before each connection, with the address that it goes to. */
static curl_socket_t open_guarded(void *user, curlsocktype purpose, struct curl_sockaddr *addr)
{
	struct httpc *c = user;

	(void)purpose;
	if (!is_allowed(c, &addr->addr)) {
		c->was_refused = true;
		return CURL_SOCKET_BAD;
	}
	return socket(addr->family, addr->socktype | SOCK_CLOEXEC, addr->protocol);
}

/* Before each request, with the address of its connection: which may be one that a client without
 * a guard has left, so that no socket is opened for it. */
static int check_guarded(void *user, char *ip, char *local_ip, int port, int local_port)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	struct httpc *c = user;

	(void)local_ip;
	(void)port;
	(void)local_port;
	if ((inet_pton(AF_INET, ip, &v4.sin_addr) == 1 && is_allowed(c, &v4)) ||
	    (inet_pton(AF_INET6, ip, &v6.sin6_addr) == 1 && is_allowed(c, &v6)))
		return CURL_PREREQFUNC_OK;
	c->was_refused = true;
	return CURL_PREREQFUNC_ABORT;
}

int httpc_configure(struct httpc *c, CURL *easy)
{
	bool bad = false;

	bad |= curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	bad |= curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	bad |= curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	bad |= curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	bad |= curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	bad |= curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, c->connect_ms);
	bad |= curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
	bad |= curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
	bad |= curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (c->ca_file)
		bad |= curl_easy_setopt(easy, CURLOPT_CAINFO, c->ca_file);
	if (c->addresses)
		bad |= curl_easy_setopt(easy, CURLOPT_RESOLVE, c->addresses);
	if (c->url.socket[0])
		bad |= curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, c->url.socket);
	/* Or the end of a request would wait for a name server that does not answer. */
	bad |= curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
	if (c->public_only || c->closed) {
		bad |= curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_guarded);
		bad |= curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, c);
		bad |= curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, check_guarded);
		bad |= curl_easy_setopt(easy, CURLOPT_PREREQDATA, c);
	}
	if (c->public_only || c->closed) /* whose address would be the only one that is looked at */
		bad |= curl_easy_setopt(easy, CURLOPT_PROXY, "");
	if (c->url.loopback) /* a proxy's "localhost" is another machine */
		bad |= curl_easy_setopt(easy, CURLOPT_PROXY, "");
	return bad ? -ENOMEM : 0;
}

static const struct {
	CURLcode code;
	int error;
	const char *text; /* NULL: curl's own words */
} meanings[] = {
	{ CURLE_OPERATION_TIMEDOUT, ETIMEDOUT, "no answer in time" },
	{ CURLE_COULDNT_RESOLVE_HOST, EHOSTUNREACH, "no such host" },
	{ CURLE_PEER_FAILED_VERIFICATION, EKEYREJECTED, NULL },
	{ CURLE_SSL_CONNECT_ERROR, EKEYREJECTED, NULL },
	{ CURLE_SSL_CACERT_BADFILE, EKEYREJECTED, NULL },
	{ CURLE_GOT_NOTHING, ECONNRESET, "the connection was closed without an answer" },
	{ CURLE_PARTIAL_FILE, ECONNRESET, "the connection broke in the middle of the answer" },
	{ CURLE_RECV_ERROR, ECONNRESET, "the connection broke" },
	{ CURLE_SEND_ERROR, ECONNRESET, "the connection broke" },
	{ CURLE_UNSUPPORTED_PROTOCOL, EPROTO, "the server does not speak HTTP" },
	{ CURLE_WEIRD_SERVER_REPLY, EPROTO, "the server does not speak HTTP" },
	{ CURLE_OUT_OF_MEMORY, ENOMEM, "out of memory" },
};

int httpc_curl_problem(const struct httpc *c, CURL *easy, CURLcode code, const char *words,
		       struct err *err)
{
	long why = 0;

	if ((code == CURLE_COULDNT_CONNECT || code == CURLE_ABORTED_BY_CALLBACK) && c->was_refused)
		return err_set(err, EACCES,
			       "%s: not an address of the public internet, or one that is closed",
			       c->given);
	if (code == CURLE_COULDNT_CONNECT) {
		(void)curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &why);
		/* A socket that is not there is as good as one that nobody listens to. */
		if (why == ENOENT)
			return err_set(err, ECONNREFUSED, "connect to %s: %s", c->given,
				       strerror(ENOENT));
		return err_sys(err, why > 0 ? (int)why : ECONNREFUSED, "connect to %s", c->given);
	}
	if (!words || !words[0])
		words = curl_easy_strerror(code);
	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
		if (meanings[i].code == code)
			return err_set(err, meanings[i].error, "%s: %s", c->given,
				       meanings[i].text ? meanings[i].text : words);
	return err_set(err, EIO, "%s: %s", c->given, words);
}
