/* The sandboxes that live, as a table that is drawn again and again; or once, for a program. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/term.h"
#include "cli/top_view.h"
#include "httpc/url.h"

#define ONCE_MS 1000u /* between the two looks that make a share of a core */
#define REQUEST_MS 30000u
#define PAGES_MAX 200
#define SCREEN "\x1b[?1049h\x1b[?25l" /* a screen of its own, without a cursor */
#define SCREEN_END "\x1b[?25h\x1b[?1049l"
#define HELP "q quit   sort: c cpu, m memory, n name"

struct top_args {
	struct client_args client;
	bool once;
	uint64_t interval_ms;
	int order; /* enum top_order */
};

static const char *const orders[] = { "cpu", "memory", "name", NULL };

#define AT(field) offsetof(struct top_args, field)
const struct opt top_opts[] = {
	{ .name = "interval",
	  .letter = 'd',
	  .type = OPT_DURATION,
	  .arg = "TIME",
	  .help = "from one look to the next (2s)",
	  .offset = AT(interval_ms),
	  .min = 100,
	  .max = 3600000 },
	{ .name = "sort",
	  .type = OPT_CHOICE,
	  .arg = "COLUMN",
	  .help = "cpu, memory or name (cpu)",
	  .offset = AT(order),
	  .choices = orders },
	{ .name = "once", .type = OPT_FLAG, .help = "print and end", .offset = AT(once) },
	CLIENT_OPTS(struct top_args, client),
	{ 0 },
};

enum { SLOT_SIGNAL, SLOT_KEYS, SLOT_COUNT };

struct top {
	struct client *client;
	enum top_order order;
	struct top_look now, before;
	struct pollfd fds[SLOT_COUNT]; /* -1: not while there is no terminal */
	bool is_over;                  /* somebody wants no more */
	bool is_stale;                 /* to be drawn before the time is over */
	bool is_poolless;              /* the key may not look at pools */
	int signal;                    /* 0: a key */
	char complaint[256];           /* "": the last look was good */
};

/* ---- keys and signals ---- */

static void on_key(struct top *t, char key)
{
	static const struct {
		char key;
		enum top_order order;
	} keys[] = { { 'c', TOP_BY_CPU }, { 'm', TOP_BY_MEMORY }, { 'n', TOP_BY_NAME } };

	if (key == 'q' || key == 'Q' || key == '\x03') /* Ctrl-C is a key of a raw terminal */
		t->is_over = true;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (key == keys[i].key) {
			t->order = keys[i].order;
			t->is_stale = true;
		}
}

static void read_keys(struct top *t)
{
	char keys[64];
	ssize_t n = read(STDIN_FILENO, keys, sizeof(keys));

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		t->fds[SLOT_KEYS].fd = -1; /* nobody types any more */
	for (ssize_t i = 0; i < n; i++)
		on_key(t, keys[i]);
}

static void read_signal(struct top *t)
{
	struct signalfd_siginfo info;

	if (read(t->fds[SLOT_SIGNAL].fd, &info, sizeof(info)) != sizeof(info))
		return;
	t->is_stale = true;
	if (info.ssi_signo == SIGWINCH)
		return;
	t->is_over = true;
	t->signal = (int)info.ssi_signo;
}

static void look_at_fds(struct top *t)
{
	if (t->fds[SLOT_SIGNAL].revents)
		read_signal(t);
	if (t->fds[SLOT_KEYS].revents)
		read_keys(t);
}

/* ---- the daemon ---- */

/* -ECANCELED: somebody wants no more. */
static int fetch(struct top *t, const char *target, struct client_doc *ret, struct err *err)
{
	struct httpc_request req = { .method = "GET",
				     .target = target,
				     .accept = "application/json",
				     .timeout_ms = REQUEST_MS };
	_cleanup_(httpc_call_free_p) struct httpc_call *call = NULL;
	struct httpc_answer answer = { 0 };
	int r = httpc_begin(t->client->http, &req, &call, err);

	while (r == 0 && !httpc_is_over(call)) {
		r = httpc_turn(t->client->http, t->fds, SLOT_COUNT, -1, err);
		look_at_fds(t);
		if (t->is_over)
			return -ECANCELED;
	}
	if (r == 0)
		r = httpc_result(call, &answer, err);
	t->client->status = answer.status;
	ret->text = answer.body;
	if (r == 0)
		r = jv_parse(buf_str(&ret->text), ret->text.len, ret->text.len, &ret->doc, err);
	return r;
}

/* A page and the cursor of the next, or "". */
static int take_page(struct top *t, struct top_look *l, struct buf *cursor, struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc page = { 0 };
	_cleanup_(buf_done) struct buf target = { 0 };
	const char *next;
	int r;

	(void)client_path(&target, "sandboxes");
	(void)url_add_query(&target, "usage", "true");
	r = url_add_query(&target, "limit", "500");
	if (r == 0 && cursor->len > 0)
		r = url_add_query(&target, "cursor", cursor->data);
	if (r == 0)
		r = fetch(t, target.data, &page, err);
	if (r < 0)
		return r;
	JV_FOREACH (jv_get(jv_root(page.doc), "items"), it)
		if (r == 0)
			r = top_look_add(l, it.value);
	buf_clear(cursor);
	next = jv_text(jv_get(jv_root(page.doc), "nextCursor"));
	return r == 0 && next ? buf_puts(cursor, next) : r;
}

/* Of who may see them; all others do without. */
static int take_pool(struct top *t, struct top_look *l)
{
	_cleanup_(client_doc_done) struct client_doc page = { 0 };
	struct err err = { 0 };
	int r = t->is_poolless ? 0 : fetch(t, "/api/v1/pool", &page, &err);

	t->is_poolless = t->is_poolless || t->client->status == 403;
	JV_FOREACH (jv_get(jv_root(page.doc), "items"), it)
		(void)top_look_pool(l, it.value);
	return r == -ECANCELED ? r : 0;
}

static int look(struct top *t, struct err *err)
{
	_cleanup_(buf_done) struct buf cursor = { 0 };
	_cleanup_(top_look_done) struct top_look l = { 0 };
	int r = 0;

	l.at_ns = clock_now_ns();
	for (int i = 0; r == 0 && i < PAGES_MAX && (i == 0 || cursor.len > 0); i++)
		r = take_page(t, &l, &cursor, err);
	if (r == 0)
		r = take_pool(t, &l);
	if (r < 0)
		return r;
	top_look_done(&t->before);
	t->before = t->now;
	t->now = l;
	l = (struct top_look){ 0 };
	top_look_compare(&t->now, &t->before);
	return 0;
}

/* ---- a terminal ---- */

static int draw(struct top *t)
{
	_cleanup_(buf_done) struct buf screen = { 0 };
	_free_ char *text = NULL;
	uint16_t rows = 24, cols = 80;
	size_t n = 0;
	FILE *to = open_memstream(&text, &n);
	int r = to ? 0 : -ENOMEM;

	t->is_stale = false;
	if (!to)
		return r;
	r = top_print(&t->now, to);
	if (fclose(to) != 0)
		r = -ENOMEM;
	(void)term_size(&rows, &cols);
	if (r == 0)
		r = top_draw(text, t->complaint[0] ? t->complaint : HELP, rows ? rows : 24,
			     cols ? cols : 80, &screen);
	return r < 0 ? r : fd_write_all(STDOUT_FILENO, screen.data, screen.len);
}

/* Until the next look is due, or somebody wants no more. */
static int rest(struct top *t, uint64_t until_ms)
{
	uint64_t now;
	int r = 0;

	while (r == 0 && !t->is_over && (now = clock_now_ms()) < until_ms) {
		if (poll(t->fds, SLOT_COUNT, (int)(until_ms - now)) < 0 && errno != EINTR)
			return -errno;
		look_at_fds(t);
		if (t->is_stale && !t->is_over) {
			top_look_sort(&t->now, t->order);
			r = draw(t);
		}
	}
	return r;
}

static int watch(struct top *t, uint64_t interval_ms, struct err *err)
{
	int r = look(t, err); /* what is wrong from the beginning is no matter for a screen */

	while (r == 0 && !t->is_over) {
		uint64_t next = clock_now_ms() + interval_ms;
		struct err why = { 0 };

		top_look_sort(&t->now, t->order);
		r = draw(t);
		if (r == 0)
			r = rest(t, next);
		if (r < 0 || t->is_over)
			break;
		t->complaint[0] = '\0';
		if (look(t, &why) < 0 && !t->is_over) /* the daemon may come again */
			(void)snprintf(t->complaint, sizeof(t->complaint), "%s", why.text);
	}
	return r == -ECANCELED ? 0 : r;
}

static int on_terminal(struct top *t, uint64_t interval_ms, struct err *err)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH };
	_close_ int sigfd = -1;
	struct term term = { 0 };
	sigset_t set, before;
	int r;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		(void)sigaddset(&set, signals[i]);
	(void)sigprocmask(SIG_BLOCK, &set, &before);
	sigfd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (sigfd < 0)
		return err_sys(err, errno, "signals");
	t->fds[SLOT_SIGNAL] = (struct pollfd){ .fd = sigfd, .events = POLLIN };
	t->fds[SLOT_KEYS] = (struct pollfd){ .fd = STDIN_FILENO, .events = POLLIN };
	term_raw(&term);
	(void)fd_write_all(STDOUT_FILENO, SCREEN, strlen(SCREEN));
	r = watch(t, interval_ms, err);
	(void)fd_write_all(STDOUT_FILENO, SCREEN_END, strlen(SCREEN_END));
	term_restore(&term);
	t->fds[SLOT_SIGNAL].fd = t->fds[SLOT_KEYS].fd = -1;
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	if (r < 0)
		return err_code(err) ? r : err_sys(err, r, "top");
	return t->signal ? CLI_SIGNAL + t->signal : 0;
}

/* ---- once ---- */

static int print(struct top *t, struct err *err)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	int r = look(t, err);

	if (r == 0 && t->now.n > 0) {
		(void)poll(NULL, 0, ONCE_MS);
		r = look(t, err);
	}
	if (r < 0)
		return r;
	top_look_sort(&t->now, t->order);
	if (!t->client->json)
		r = top_print(&t->now, stdout);
	else if ((r = top_print_json(&t->now, &b)) == 0)
		r = client_print(&b);
	return r < 0 ? err_sys(err, r, "top") : 0;
}

static int run(struct client *c, void *args, int n, char **operands, struct err *err)
{
	const struct top_args *a = args;
	struct top t = { .client = c, .order = (enum top_order)a->order };
	bool once = a->once || c->json || !isatty(STDOUT_FILENO);
	int r;

	(void)n;
	(void)operands;
	for (int i = 0; i < SLOT_COUNT; i++)
		t.fds[i].fd = -1;
	r = once ? print(&t, err) : on_terminal(&t, a->interval_ms, err);
	top_look_done(&t.now);
	top_look_done(&t.before);
	return r;
}

int cmd_top(const struct command *cmd, int argc, char **argv)
{
	struct top_args args = { .interval_ms = 2000 };
	struct client_task task = { &args, &args.client, 0, 0, run };

	return client_run(cmd, argc, argv, &task);
}
