/* The execution that a process's number or tag means. Numbers come again: the newest is meant. */
#include <errno.h>
#include <string.h>

#include "api/call.h"
#include "api/problem.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "e2b/process.h"
#include "e2b/rpc.h"
#include "e2b/target.h"
#include "net/http.h"
#include "sandbox/exec.h"
#include "json/jv.h"

#define PAGE 200u
#define PAGES_MAX 25u /* that are looked through for one that has ended */
#define CONTENT_MAX (1u << 20)

const struct jv_field process_selector_fields[PROCESS_SELECTOR_COUNT] = {
	JV_FIELD("pid", U32, struct process_selector, pid),
	JV_FIELD("tag", STRING, struct process_selector, tag, .min = 1, .max = 256),
};

static bool has_tag(const struct exec_info *info, const char *tag)
{
	struct jv_doc *doc = NULL;
	const char *own;
	bool is_it;

	if (jv_parse(info->content, strlen(info->content), CONTENT_MAX, &doc, NULL) < 0)
		return false;
	own = jv_text(jv_get(jv_root(doc), "tag"));
	is_it = own && strcmp(own, tag) == 0;
	(void)jv_free(doc);
	return is_it;
}

static bool is_meant(void *user, const struct exec_info *info)
{
	const struct process_selector *s = user;

	if (info->kind == EXECUTION_CONTEXT || info->pid == 0)
		return false;
	return s->tag ? has_tag(info, s->tag) : info->pid == s->pid;
}

static bool is_meant_and_runs(void *user, const struct exec_info *info)
{
	return info->state == EXECUTION_RUNNING && is_meant(user, info);
}

static void refuse(struct api_call *c, const struct process_selector *s)
{
	if (s->tag)
		return rpc_fail(c, CONNECT_NOT_FOUND, "process with tag '%.100s' not found",
				s->tag);
	rpc_fail(c, CONNECT_NOT_FOUND, "process with pid %u not found", s->pid);
}

struct execution *process_running(struct api_call *c, const struct process_selector *s)
{
	struct sandbox *sb = e2b_sandbox(c);
	struct process_selector key = *s;
	struct execution *x = sb ? exec_search(sb, is_meant_and_runs, &key) : NULL;

	if (sb && !x)
		refuse(c, s);
	return x;
}

/* ---- those that are only remembered ---- */

struct look { /* in the request's arena */
	struct api_call *call;
	struct process_selector key;
	process_found_fn *found;
	unsigned pages;
};

static void got(void *user, const struct exec_info *info, const struct output *output,
		const struct err *err)
{
	struct look *l = user;

	if (err && err->code == ENOENT)
		return refuse(l->call, &l->key);
	if (err)
		return problem_reply(l->call, err);
	l->found(l->call, NULL, info, output);
}

static void turn_page(struct look *l, int64_t before_ms, const char *before_id);

static void on_page(void *user, const struct exec_info *infos, size_t n, bool more,
		    const struct err *err)
{
	struct look *l = user;

	if (err)
		return problem_reply(l->call, err);
	for (size_t i = 0; i < n; i++)
		if (is_meant(&l->key, &infos[i]))
			return exec_get(l->call->api->deps.sandboxes, l->call->box_id,
					l->call->who->owner, infos[i].id, got, l);
	if (!more || n == 0 || ++l->pages == PAGES_MAX)
		return refuse(l->call, &l->key);
	turn_page(l, infos[n - 1].started_ms, infos[n - 1].id);
}

static void turn_page(struct look *l, int64_t before_ms, const char *before_id)
{
	exec_list(l->call->api->deps.sandboxes, l->call->box_id, l->call->who->owner, before_ms,
		  before_id, PAGE, on_page, l);
}

void process_find(struct api_call *c, const struct process_selector *s, process_found_fn *found)
{
	struct sandbox *sb = e2b_sandbox(c);
	struct process_selector key = *s;
	struct execution *x;
	struct exec_info info;
	struct look *l;

	if (!sb)
		return;
	x = exec_search(sb, is_meant_and_runs, &key);
	if (!x)
		x = exec_search(sb, is_meant, &key);
	if (x) {
		exec_info(x, &info);
		return found(c, x, &info, exec_output(x));
	}
	l = arena_alloc(http_arena(c->http), sizeof(*l));
	if (!l)
		return problem_reply(c, &(struct err){ ENOMEM, "process" });
	*l = (struct look){ .call = c, .key = key, .found = found };
	turn_page(l, 0, NULL);
}
