/* The server: its connections, the end of each turn, the sweep, the shutting down. */
#include "net/server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "net/conn.h"
#include "net/cors.h"
#include "net/exchange.h"

#define PEERS_MAX (1u << 20)

static const struct http_limits defaults = {
	.line_max = 8 << 10,
	.head_max = 32 << 10,
	.headers_max = 100,
	.arena_max = 4 << 20,
	.drain_max = 64 << 10,
	.pending_max = 16 << 20,
	.conns_max = 4096,
	.handshake_ms = 10000,
	.head_ms = 10000,
	.idle_ms = 75000,
	.body_ms = 30000,
	.whole_ms = 3600000,
	.write_ms = 60000,
	.linger_ms = 2000,
};

#define SET_DEFAULT(l, field) ((l)->field = (l)->field ? (l)->field : defaults.field)

static void set_defaults(struct http_limits *l)
{
	SET_DEFAULT(l, line_max);
	SET_DEFAULT(l, head_max);
	SET_DEFAULT(l, headers_max);
	SET_DEFAULT(l, arena_max);
	SET_DEFAULT(l, drain_max);
	SET_DEFAULT(l, pending_max);
	SET_DEFAULT(l, conns_max);
	SET_DEFAULT(l, handshake_ms);
	SET_DEFAULT(l, head_ms);
	SET_DEFAULT(l, idle_ms);
	SET_DEFAULT(l, body_ms);
	SET_DEFAULT(l, whole_ms);
	SET_DEFAULT(l, write_ms);
	SET_DEFAULT(l, linger_ms);
}

/* Often enough that no deadline is overrun by more than a quarter of it, and at most once a second.
 */
static unsigned sweep_ms(const struct http_limits *l)
{
	const unsigned times[] = { l->handshake_ms, l->head_ms,  l->idle_ms,  l->body_ms,
				   l->whole_ms,     l->write_ms, l->linger_ms };
	unsigned least = 4000;

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		if (times[i] < least)
			least = times[i];
	return least < 40 ? 10 : least / 4;
}

/* A list whose entries' callbacks may remove any other entry is walked by taking its head. */
static struct conn *take_first(struct list *from)
{
	struct conn *c;

	if (list_is_empty(from))
		return NULL;
	c = LIST_ENTRY(from->next, struct conn, node);
	list_remove(&c->node);
	return c;
}

static void move_all(struct list *to, struct list *from)
{
	list_init(to);
	if (list_is_empty(from))
		return;
	*to = *from;
	to->next->prev = to->prev->next = to;
	list_init(from);
}

static void bury_dead(struct http_server *s)
{
	struct conn *c;

	while ((c = take_first(&s->dead))) {
		if (exchange_is_forgotten(c))
			exchange_free(c);
		else
			list_push_back(&s->zombies, &c->node);
	}
}

static void end_of_turn(void *user)
{
	struct http_server *s = user;
	struct list now;

	move_all(&now, &s->todo);
	while (!list_is_empty(&now)) {
		struct conn *c = LIST_ENTRY(now.next, struct conn, todo_node);

		list_remove(&c->todo_node);
		conn_run_todo(c);
	}
	bury_dead(s);
	if (s->draining && s->count == 0 && s->drained) {
		void (*drained)(void *user) = s->drained;

		s->drained = NULL;
		drained(s->drained_user); /* may free the server */
	}
}

static void on_sweep(void *user)
{
	struct http_server *s = user;
	uint64_t now_ms = loop_now_ms(s->loop);
	struct list now;
	struct conn *c;

	server_listeners_tick(s);
	move_all(&now, &s->conns);
	while ((c = take_first(&now))) {
		list_push_back(&s->conns, &c->node);
		if (s->draining && now_ms >= s->drain_until_ms)
			conn_lose(c);
		else
			conn_tick(c, now_ms);
	}
}

int http_server_create(struct loop *l, const struct http_server_options *o,
		       struct http_server **ret, struct err *err)
{
	struct http_server *s;
	unsigned every_ms;
	int r = cors_check(o->cors, err);

	if (r < 0)
		return r;
	s = calloc(1, sizeof(*s));
	if (!s)
		return err_sys(err, ENOMEM, "HTTP server");
	s->loop = l;
	s->o = *o;
	set_defaults(&s->o.limits);
	list_init(&s->conns);
	list_init(&s->todo);
	list_init(&s->dead);
	list_init(&s->zombies);
	list_init(&s->listeners);
	loop_task_init(&s->turn, end_of_turn, s);
	s->bytes = malloc(SERVER_READ_SIZE);
	s->plain = malloc(SERVER_READ_SIZE);
	s->peers = map_create(PEERS_MAX);
	r = s->bytes && s->plain && s->peers ? loop_timer_create(l, on_sweep, s, &s->sweep)
					     : -ENOMEM;
	if (r < 0) {
		(void)http_server_free(s);
		return err_sys(err, r, "HTTP server");
	}
	every_ms = sweep_ms(&s->o.limits);
	loop_timer_start(s->sweep, every_ms, every_ms);
	*ret = s;
	return 0;
}

void http_server_close(struct http_server *s)
{
	if (!s)
		return;
	server_close_listeners(s);
	while (!list_is_empty(&s->conns))
		conn_lose(LIST_ENTRY(s->conns.next, struct conn, node));
	bury_dead(s);
}

struct http_server *http_server_free(struct http_server *s)
{
	struct conn *c;

	if (!s)
		return NULL;
	http_server_close(s);
	while ((c = take_first(&s->zombies)))
		exchange_forget(c);
	loop_task_cancel(&s->turn);
	s->sweep = loop_timer_free(s->sweep);
	buf_done(&s->head);
	free(s->bytes);
	free(s->plain);
	(void)map_free(s->peers); /* no connection is left, so it is empty */
	free(s);
	return NULL;
}

void server_add(struct http_server *s, struct conn *c)
{
	s->count++;
	list_push_back(&s->conns, &c->node);
}

static void forget_peer(struct http_server *s, struct conn *c)
{
	struct peer *p = c->from;

	c->from = NULL;
	if (p && --p->count == 0)
		free(map_remove(s->peers, p->key, p->key_len));
}

void server_bury(struct http_server *s, struct conn *c)
{
	s->count--;
	forget_peer(s, c);
	server_rebury(s, c);
}

void server_rebury(struct http_server *s, struct conn *c)
{
	list_remove(&c->node);
	list_push_back(&s->dead, &c->node);
	loop_task_post(s->loop, &s->turn);
}

void server_note_peer(struct http_server *s, struct conn *c, const union addr_any *from)
{
	char key[ADDR_KEY_MAX];
	size_t n = addr_key(from, key);
	struct peer *p = n > 0 ? map_get(s->peers, key, n) : NULL;

	if (n > 0 && !p && (p = calloc(1, sizeof(*p)))) {
		memcpy(p->key, key, n);
		p->key_len = n;
		if (map_put(s->peers, key, n, p, NULL) < 0) {
			free(p);
			p = NULL;
		}
	}
	if (p)
		p->count++;
	c->from = p;
}

/* Whether a gives way before b, which may be NULL. */
static bool goes_before(const struct conn *a, const struct conn *b)
{
	unsigned of_a = a->from ? a->from->count : 1, of_b = b && b->from ? b->from->count : 1;

	return !b || of_a > of_b || (of_a == of_b && a->since_ms < b->since_ms);
}

bool server_make_room(struct http_server *s)
{
	uint64_t now_ms = loop_now_ms(s->loop);
	struct conn *quiet = NULL, *answered = NULL;

	LIST_FOREACH (&s->conns, c, struct conn, node) {
		if (exchange_is_quiet(c, now_ms) && goes_before(c, quiet))
			quiet = c;
		if (!quiet && exchange_is_answered(c) && goes_before(c, answered))
			answered = c;
	}
	if (!quiet && !answered)
		return false;
	conn_lose(quiet ? quiet : answered);
	return true;
}

void server_todo(struct http_server *s, struct conn *c)
{
	if (list_is_empty(&c->todo_node))
		list_push_back(&s->todo, &c->todo_node);
	loop_task_post(s->loop, &s->turn);
}

void http_server_drain(struct http_server *s, uint64_t max_ms, void (*drained)(void *user),
		       void *user)
{
	struct list now;
	struct conn *c;

	server_close_listeners(s);
	s->draining = true;
	s->drain_until_ms = loop_now_ms(s->loop) + max_ms;
	s->drained = drained;
	s->drained_user = user;
	move_all(&now, &s->conns);
	while ((c = take_first(&now))) {
		list_push_back(&s->conns, &c->node);
		if (c->state == CONN_OPEN)
			c->ops->leave(c);
	}
	loop_task_post(s->loop, &s->turn);
}

unsigned http_server_connections(const struct http_server *s)
{
	return s->count;
}

/* Made once a second. Not by strftime(), which would speak the user's language. */
const char *server_date(struct http_server *s)
{
	static const char days[] = "Sun\0Mon\0Tue\0Wed\0Thu\0Fri\0Sat";
	static const char months[] = "Jan\0Feb\0Mar\0Apr\0May\0Jun\0Jul\0Aug\0Sep\0Oct\0Nov\0Dec";
	int64_t now = clock_wall_ms() / 1000;
	time_t t = (time_t)now;
	struct tm tm;

	if (now == s->date_s)
		return s->date;
	s->date_s = now;
	if (!gmtime_r(&t, &tm) ||
	    str_format(s->date, sizeof(s->date), "Date: %s, %02d %s %04d %02d:%02d:%02d GMT\r\n",
		       days + 4L * tm.tm_wday, tm.tm_mday, months + 4L * tm.tm_mon,
		       tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec) < 0)
		s->date[0] = '\0';
	return s->date;
}
