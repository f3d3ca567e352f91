#include "cli/client.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/command.h"
#include "config/config.h"
#include "crypto/secret.h"
#include "httpc/url.h"
#include "json/jw.h"

#define TICK_MS 200

static int load(struct client *c, const struct client_args *args, struct err *err)
{
	struct config_args from = { .flags = args->settings.flags,
				    .flag_count = args->settings.len };

	return config_load(&from, &c->config, err);
}

static int connect_to(struct client *c, struct err *err)
{
	struct httpc_options o = {
		.url = c->config->url,
		.key = secret_reveal(c->config->api_key, NULL),
		.ca_file = getenv("SSL_CERT_FILE"),
	};

	return httpc_create(&o, &c->http, err);
}

int client_open(struct client *c, const struct client_args *args)
{
	struct err err = { 0 };
	int r;

	*c = (struct client){ .json = args->json };
	r = load(c, args, &err);
	if (r == 0)
		r = connect_to(c, &err);
	if (r == 0)
		return 0;
	r = client_fail(c, &err);
	client_close(c);
	return r;
}

void client_close(struct client *c)
{
	c->http = httpc_free(c->http);
	c->config = config_free(c->config);
}

int client_path(struct buf *b, const char *pattern, ...)
{
	va_list ap;

	if (pattern[0] != '/')
		(void)buf_puts(b, "/api/v1/");
	va_start(ap, pattern);
	for (; *pattern; pattern++) {
		if (*pattern == '%')
			(void)url_escape(b, va_arg(ap, const char *));
		else
			(void)buf_putc(b, *pattern);
	}
	va_end(ap);
	return b->failed ? -E2BIG : 0;
}

int client_transfer(struct client *c, const struct httpc_request *req, struct progress *p,
		    struct httpc_answer *ret, struct err *err)
{
	_cleanup_(httpc_call_free_p) struct httpc_call *call = NULL;
	struct httpc_answer answer = { 0 };
	int r = httpc_begin(c->http, req, &call, err);

	while (r == 0 && !httpc_is_over(call)) {
		r = httpc_turn(c->http, NULL, 0, TICK_MS, err);
		if (req->data && httpc_size(call) > 0)
			p->total = (uint64_t)httpc_size(call);
		progress_tick(p);
	}
	progress_end(p);
	c->status = 0;
	if (r < 0)
		return r;
	r = httpc_result(call, &answer, err);
	c->status = answer.status;
	if (r == 0 && ret)
		*ret = answer;
	else
		buf_done(&answer.body);
	return r;
}

int client_call(struct client *c, const struct httpc_request *req, const char *what,
		struct httpc_answer *ret, struct err *err)
{
	struct progress p;

	progress_begin(&p, what);
	return client_transfer(c, req, &p, ret, err);
}

void client_doc_done(struct client_doc *d)
{
	d->doc = jv_free(d->doc);
	buf_done(&d->text);
}

int client_json(struct client *c, const char *method, const char *target, const struct buf *body,
		struct client_doc *ret, struct err *err)
{
	struct httpc_request req = { .method = method,
				     .target = target,
				     .accept = "application/json" };
	struct httpc_answer answer = { 0 };
	int r;

	if (body) {
		req.type = "application/json";
		req.body = buf_str(body);
		req.body_len = body->len;
	}
	r = client_call(c, &req, "waiting for the daemon", &answer, err);
	if (r < 0)
		return r;
	if (answer.body.len > 0)
		r = jv_parse(answer.body.data, answer.body.len, answer.body.len, &ret->doc, err);
	if (r < 0) {
		buf_done(&answer.body);
		return r;
	}
	ret->text = answer.body;
	return 0;
}

/* What happened, in the words of someone who runs the daemon. */
static void explain(const struct client *c, const struct err *err, struct err *ret)
{
	const char *url = c->config ? c->config->url : "";
	bool has_key = c->config && c->config->api_key;

	(void)err_copy(ret, err);
	if (c->status == 0 && err->code == ECONNREFUSED)
		(void)err_set(ret, err->code, "no daemon at %s: start one with 'holt serve'", url);
	else if (c->status == 401 && !has_key)
		(void)err_set(ret, err->code, "the daemon at %s wants an API key", url);
}

static void give_hint(const struct client *c, const struct err *err)
{
	bool has_key = c->config && c->config->api_key;

	if (c->status == 401 && !has_key)
		cli_hint("set HOLT_API_KEY, or name a file that has it with --api-key-file "
			 "(HOLT_API_KEY_FILE); the first start of 'holt serve' makes one");
	else if (c->status == 401)
		cli_hint("the key is the one in HOLT_API_KEY or the file of HOLT_API_KEY_FILE; "
			 "'holt config show' says which");
	else if (err->code == EKEYREJECTED)
		cli_hint("SSL_CERT_FILE names a file of further certificates to trust");
	else if (err->code == EAGAIN && c->status > 0)
		cli_hint("try again in a moment");
}

static void print_error(const struct err *err)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	const char *name = strerrorname_np(err->code);
	struct jw w = jw_begin(&b);

	jw_object_begin(&w);
	jw_key(&w, "error");
	jw_object_begin(&w);
	jw_str_field(&w, "code", name ? name : "");
	jw_str_field(&w, "message", err->text);
	jw_object_end(&w);
	jw_object_end(&w);
	if (jw_end(&w) == 0)
		(void)client_print(&b);
}

int client_fail(const struct client *c, const struct err *err)
{
	struct err said;

	explain(c, err, &said);
	if (c->json)
		print_error(&said);
	(void)cli_fail(&said);
	give_hint(c, &said);
	return CLI_ERROR;
}

int client_bytes(struct jv text, struct buf *ret, struct err *err)
{
	struct str s;
	ssize_t n;
	int r;

	if (jv_str(text, &s) < 0)
		return err_set(err, EPROTO, "the daemon's answer has no bytes where they belong");
	r = buf_reserve(ret, s.len);
	if (r < 0)
		return err_sys(err, r, "output");
	n = decode_base64(s.data, s.len, ret->data + ret->len, s.len);
	if (n < 0)
		return err_set(err, EPROTO, "the daemon's answer is not base64");
	ret->len += (size_t)n;
	return 0;
}

int client_print(const struct buf *text)
{
	int r = fd_write_all(STDOUT_FILENO, buf_str(text), text->len);

	return r < 0 ? r : fd_write_all(STDOUT_FILENO, "\n", 1);
}

/* A later one of the same name counts. */
static bool is_repeated(const struct opt_list *list, size_t i, size_t n)
{
	const char *name = list->items[i];

	for (size_t k = i + 1; k < list->len; k++)
		if (strncmp(list->items[k], name, n) == 0 &&
		    (list->items[k][n] == '=' || list->items[k][n] == '\0'))
			return true;
	return false;
}

int client_pairs(struct jw *w, const struct client_pairs *p, const struct opt_list *list,
		 struct err *err)
{
	if (list->len == 0)
		return 0;
	jw_key(w, p->key);
	jw_object_begin(w);
	for (size_t i = 0; i < list->len; i++) {
		const char *text = list->items[i], *value = strchr(text, '=');
		size_t n = strcspn(text, "=");

		if (n == 0 || (!value && !p->inherit))
			return err_set(err, EINVAL, "--%s '%.60s': wants NAME=value%s", p->option,
				       text, p->inherit ? " or NAME" : "");
		value = value ? value + 1 : getenv(text);
		if (!value || is_repeated(list, i, n))
			continue;
		jw_key_n(w, text, n);
		jw_string(w, value);
	}
	jw_object_end(w);
	return 0;
}
