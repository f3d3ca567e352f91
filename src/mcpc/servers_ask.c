/* What somebody has to say yes or no to: calls that the policy wants to be asked about, and what
 * servers ask of whoever uses them. Who does not answer in time has said no. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "mcpc/servers_impl.h"
#include "sandbox/audit_log.h"
#include "sandbox/events.h"
#include "json/jw.h"

#define QUESTION_MAX (256u << 10) /* bytes of what a server asks */
#define QUESTIONS_MAX 16u         /* of one server */
#define QUESTION_MS (5u * 60 * 1000)
#define LINE_MAX 4096u
#define REFUSED (-1) /* of sampling: what the protocol's examples have for a person's no */

/* ---- approvals ---- */

void approval_tell(const struct approval *a, const char *kind, const struct principal *by)
{
	_cleanup_(buf_done) struct buf b = { .max = LINE_MAX };
	const struct mcpc_servers_deps *deps = &a->server->all->deps;
	struct jw w = jw_begin(&b);
	const char *text;

	jw_object_begin(&w);
	jw_str_field(&w, "approval", a->seen.id);
	jw_str_field(&w, "server", a->seen.server);
	jw_str_field(&w, "tool", a->seen.tool);
	jw_str_field(&w, "method", a->seen.method);
	jw_str_field(&w, "sandbox", a->seen.sandbox_id);
	jw_str_field(&w, "by", by ? by->owner : "");
	jw_str_field(&w, "keyId", by ? by->key_id : "");
	jw_object_end(&w);
	text = jw_end(&w) < 0 ? "{}" : buf_str(&b);
	if (deps->audit && strcmp(kind, "approval.wanted") != 0)
		audit_log_append(deps->audit, by ? by->owner : a->seen.owner, kind, text);
	events_emit(deps->events, &(struct event){ .kind = kind,
						   .owner = a->seen.owner,
						   .subject = a->seen.id,
						   .text = text });
}

static void on_late(void *user)
{
	struct approval *a = user;

	approval_tell(a, "approval.expired", NULL);
	approval_end(a);
	a->decided(a, false, NULL, true);
}

int approval_begin(struct approval *a, struct server *s, uint64_t wait_ms, struct err *err)
{
	struct mcpc_servers *all = s->all;

	if (all->n_approvals >= MCPC_APPROVALS_MAX)
		return err_set(err, EAGAIN, "too many calls wait for somebody's approval");
	if (loop_timer_create(all->deps.loop, on_late, a, &a->timer) < 0)
		return err_sys(err, ENOMEM, "approval");
	a->server = s;
	id_make(a->seen.id);
	a->seen.server = s->row.name;
	a->seen.created_ms = clock_wall_ms();
	a->seen.expires_ms = a->seen.created_ms + (int64_t)wait_ms;
	list_push_back(&all->approvals, &a->node);
	all->n_approvals++;
	loop_timer_start(a->timer, wait_ms, 0);
	approval_tell(a, "approval.wanted", NULL);
	return 0;
}

void approval_end(struct approval *a)
{
	a->timer = loop_timer_free(a->timer);
	if (!a->node.next || list_is_empty(&a->node))
		return;
	list_remove(&a->node);
	a->server->all->n_approvals--;
}

void mcpc_approvals_each(const struct mcpc_servers *all, const char *owner,
			 void (*fn)(void *user, const struct mcpc_approval *a), void *user)
{
	LIST_FOREACH (&all->approvals, a, struct approval, node)
		if (!owner || strcmp(owner, a->seen.owner) == 0)
			fn(user, &a->seen);
}

static struct approval *find(const struct mcpc_servers *all, const char *id, const char *owner)
{
	LIST_FOREACH (&all->approvals, a, struct approval, node)
		if (strcmp(a->seen.id, id) == 0 && (!owner || strcmp(owner, a->seen.owner) == 0))
			return a;
	return NULL;
}

int mcpc_approval_decide(struct mcpc_servers *all, const char *id, const char *owner, bool is_yes,
			 const char *content, const struct principal *by, struct err *err)
{
	struct approval *a = find(all, id, owner);

	if (!a)
		return err_set(err, ENOENT, "nothing of that id waits for an approval");
	if (is_yes && !content && a->seen.tool[0] == '\0')
		return err_set(err, EINVAL, "content: the server wants an answer");
	approval_tell(a, is_yes ? "approval.allowed" : "approval.denied", by);
	approval_end(a);
	a->decided(a, is_yes, content, false);
	return 0;
}

/* ---- what servers ask ---- */

struct question {
	struct approval approval;
	struct list node; /* in server.asks */
	struct mcpc *client;
	void *ask; /* of mcpc_answer() */
	bool is_elicitation;
	char *params; /* owned */
};

static void question_free(struct question *q)
{
	approval_end(&q->approval);
	list_remove(&q->node);
	free(q->params);
	free(q);
}

void server_drop_asks(struct server *s)
{
	LIST_FOREACH (&s->asks, q, struct question, node)
		question_free(q);
}

static void answer_elicitation(struct mcpc *c, void *ask, const char *action, const char *content)
{
	_cleanup_(buf_done) struct buf b = { .max = QUESTION_MAX };
	struct jw w = jw_begin(&b);

	jw_object_begin(&w);
	jw_str_field(&w, "action", action);
	if (content)
		jw_raw_field(&w, "content", content, strlen(content));
	jw_object_end(&w);
	if (jw_end(&w) < 0)
		mcpc_refuse(c, ask, RPC_INTERNAL, "the answer is too large");
	else
		mcpc_answer(c, ask, buf_str(&b));
}

static void refuse_sampling(struct mcpc *c, void *ask)
{
	mcpc_refuse(c, ask, REFUSED, "sampling is declined by whoever runs this client");
}

static void decided(struct approval *a, bool is_yes, const char *content, bool is_late)
{
	struct question *q = LIST_ENTRY(a, struct question, approval);

	if (q->is_elicitation)
		answer_elicitation(q->client, q->ask,
				   is_yes    ? "accept"
				   : is_late ? "cancel"
					     : "decline",
				   is_yes ? content : NULL);
	else if (is_yes)
		mcpc_answer(q->client, q->ask, content);
	else
		refuse_sampling(q->client, q->ask);
	question_free(q);
}

static size_t count(const struct list *head)
{
	size_t n = 0;

	for (const struct list *it = head->next; it != head; it = it->next)
		n++;
	return n;
}

static char *copy_params(struct jv params)
{
	_cleanup_(buf_done) struct buf b = { .max = QUESTION_MAX };
	struct jw w = jw_begin(&b);

	jw_value(&w, params);
	return jw_end(&w) < 0 ? NULL : buf_take(&b);
}

/* Whose call it is that a server asks for is not known: only admins see it. */
static bool put_question(struct server *s, struct mcpc *c, void *ask, bool is_elicitation,
			 struct jv params)
{
	const struct mcpc_servers_deps *deps = &s->all->deps;
	struct question *q = count(&s->asks) < QUESTIONS_MAX ? calloc(1, sizeof(*q)) : NULL;
	struct err err = { 0 };

	if (!q)
		return false;
	list_push_back(&s->asks, &q->node);
	q->client = c;
	q->ask = ask;
	q->is_elicitation = is_elicitation;
	q->params = copy_params(params);
	q->approval.decided = decided;
	q->approval.server = s;
	q->approval.seen.tool = q->approval.seen.owner = q->approval.seen.sandbox_id = "";
	q->approval.seen.method = is_elicitation ? "elicitation/create" : "sampling/createMessage";
	q->approval.seen.arguments = q->params;
	if (!q->params ||
	    approval_begin(&q->approval, s, deps->approval_ms ? deps->approval_ms : QUESTION_MS,
			   &err) < 0) {
		question_free(q);
		return false;
	}
	return true;
}

static void answer_roots(const struct server *s, struct mcpc *c, void *ask)
{
	_cleanup_(buf_done) struct buf b = { .max = QUESTION_MAX };
	struct jw w = jw_begin(&b);

	jw_object_begin(&w);
	jw_key(&w, "roots");
	jw_value(&w, s->row.roots);
	jw_object_end(&w);
	if (jw_end(&w) < 0)
		mcpc_refuse(c, ask, RPC_INTERNAL, "roots");
	else
		mcpc_answer(c, ask, buf_str(&b));
}

void server_asked(void *user, struct mcpc *c, void *ask, const char *method, struct jv params)
{
	struct server *s = user;

	if (strcmp(method, "roots/list") == 0 && jv_kind(s->row.roots) == JV_ARRAY) {
		answer_roots(s, c, ask);
	} else if (strcmp(method, "elicitation/create") == 0) {
		if (s->row.elicitation != SERVER_ASKS || !put_question(s, c, ask, true, params))
			answer_elicitation(c, ask, "decline", NULL);
	} else if (strcmp(method, "sampling/createMessage") == 0) {
		if (s->row.sampling != SERVER_ASKS || !put_question(s, c, ask, false, params))
			refuse_sampling(c, ask);
	} else {
		mcpc_refuse(c, ask, RPC_NO_METHOD, "this client offers nothing of that kind");
	}
}

/* What is declined is not offered: a server that looks does not ask. */
void server_write_capabilities(const struct server *s, struct buf *b)
{
	struct jw w = jw_begin(b);

	jw_object_begin(&w);
	if (jv_kind(s->row.roots) == JV_ARRAY)
		jw_raw_field(&w, "roots", "{}", 2);
	if (s->row.elicitation == SERVER_ASKS)
		jw_raw_field(&w, "elicitation", "{}", 2);
	if (s->row.sampling == SERVER_ASKS)
		jw_raw_field(&w, "sampling", "{}", 2);
	jw_object_end(&w);
	if (jw_end(&w) < 0)
		buf_clear(b);
}
