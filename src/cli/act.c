#include "cli/act.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "json/jw.h"

#define IDS_MAX 10000

static int act_on(struct act *a, const char *id)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	_cleanup_(buf_done) struct buf target = { 0 };
	struct err err = { 0 };
	int r = client_path(&target, a->pattern, id);

	if (r == 0)
		r = client_json(a->client, a->method, target.data, a->body, &d, &err);
	if (r < 0) {
		if (a->client->status == 0 || a->client->status == 401)
			return client_fail(a->client, &err); /* the others would fare no better */
		a->failures++;
		cli_say("%.60s: %s", id, err.text);
		return 0;
	}
	if (!a->json)
		return printf("%s\n", id) < 0 ? CLI_ERROR : 0;
	if (d.doc)
		jw_value(a->json, jv_root(d.doc));
	else
		jw_string(a->json, id);
	return 0;
}

/* ids: each with its NUL, n bytes in all. */
static int act_on_ids(struct act *a, const char *ids, size_t n)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	int code = 0;

	if (a->client->json) {
		a->json = &w;
		jw_array_begin(&w);
	}
	for (size_t at = 0; code == 0 && at < n; at += strlen(ids + at) + 1)
		code = act_on(a, ids + at);
	if (a->json && code == 0) {
		jw_array_end(&w);
		if (jw_end(&w) < 0 || client_print(&b) < 0)
			code = CLI_ERROR;
	}
	a->json = NULL;
	return code ? code : a->failures ? CLI_ERROR : CLI_OK;
}

int act_on_each(struct act *a, int n, char **ids)
{
	_cleanup_(buf_done) struct buf all = { 0 };

	for (int i = 0; i < n; i++)
		if (buf_append(&all, ids[i], strlen(ids[i]) + 1) < 0)
			return CLI_ERROR;
	return act_on_ids(a, buf_str(&all), all.len);
}

struct ids {
	struct buf text;
	size_t count;
};

static int keep_id(void *user, struct jv item)
{
	struct ids *ids = user;
	const char *id = jv_text(jv_get(item, "id"));

	if (!id)
		return -EPROTO;
	if (++ids->count > IDS_MAX)
		return -E2BIG;
	return buf_append(&ids->text, id, strlen(id) + 1);
}

/* Ids first, then the deed: a list that changes while it is walked would leave some out. */
int act_on_all(struct act *a, const char *list)
{
	struct ids ids = { 0 };
	struct err err = { 0 };
	int r = client_list(a->client, list, keep_id, &ids, &err);

	if (r < 0) {
		if (err.code == 0)
			(void)err_sys(&err, r, "list");
		r = client_fail(a->client, &err);
	} else {
		r = act_on_ids(a, buf_str(&ids.text), ids.text.len);
	}
	buf_done(&ids.text);
	return r;
}
