#include "cli/terminal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/ending.h"
#include "cli/term.h"
#include "httpc/url.h"
#include "httpc/ws_client.h"

#define WRITE_STEP 4096u
#define INPUT_STEP 4096u
#define PENDING_MAX 65536u /* keys that the daemon has not taken */
#define MESSAGE_MAX (64u << 10)

CLEANUP_FUNC(struct jv_doc *, jv_free)

enum { SLOT_SIGNAL, SLOT_IN, SLOT_OUT, SLOT_COUNT };

/* Where in "newline ~ ." the keys are. */
enum leave_state { LEAVE_NO, LEAVE_LINE, LEAVE_TILDE };

struct state {
	const struct terminal *t;
	struct ws_client *ws; /* owned */
	int sigfd;            /* owned */
	struct term term;
	struct buf out;
	enum leave_state keys;
	bool in_open;
	bool exited; /* the last message came */
	bool left;   /* by "~." */
	int signal;
	struct jv_doc *ending; /* owned: said once our terminal is as it was */
};

static void signal_set(sigset_t *set)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH };

	(void)sigemptyset(set);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		(void)sigaddset(set, signals[i]);
}

/* --- from the daemon ----------------------------------------------------------------------- */

static void on_text(struct state *s, const char *data, size_t n)
{
	_cleanup_(jv_free_p) struct jv_doc *doc = NULL;
	const char *type;
	struct err ignored;

	if (jv_parse(data, n, MESSAGE_MAX, &doc, &ignored) < 0)
		return;
	type = jv_text(jv_get(jv_root(doc), "type"));
	if (!type || strcmp(type, "exit") != 0)
		return;
	s->exited = true;
	(void)jv_free(s->ending);
	s->ending = TAKE(doc);
}

static void on_message(void *user, bool text, const void *data, size_t n)
{
	struct state *s = user;

	if (text) {
		on_text(s, data, n);
		return;
	}
	(void)buf_append(&s->out, data, n);
	ws_client_hold(s->ws, true); /* until it is written */
}

/* --- to the daemon ------------------------------------------------------------------------- */

static void send_size(struct state *s)
{
	char text[80];
	uint16_t rows, cols;

	if (!term_size(&rows, &cols) || rows == 0 || cols == 0)
		return;
	if (str_format(text, sizeof(text), "{\"type\":\"resize\",\"rows\":%u,\"cols\":%u}", rows,
		       cols) == 0)
		(void)ws_client_send(s->ws, true, text, strlen(text));
}

/* The keys that go on to the box, in dst (room for one more than n): "~." at a line's beginning is
 * for us, so its tilde waits for what follows; "~~" is one tilde. */
static size_t look_for_leave(struct state *s, const char *keys, size_t n, char *dst)
{
	size_t out = 0;

	for (size_t i = 0; i < n; i++) {
		bool waited = s->keys == LEAVE_TILDE;

		if (waited && keys[i] == '.') {
			s->left = true;
			return out;
		}
		if (waited && keys[i] != '~')
			dst[out++] = '~';
		if (keys[i] == '\r' || keys[i] == '\n')
			s->keys = LEAVE_LINE;
		else
			s->keys = s->keys == LEAVE_LINE && keys[i] == '~' ? LEAVE_TILDE : LEAVE_NO;
		if (s->keys != LEAVE_TILDE)
			dst[out++] = keys[i];
	}
	return out;
}

/* What ends input when it is no terminal: the box's own is told by its end-of-file key. */
#define EOF_KEY "\004"

static void on_input(struct state *s)
{
	char keys[INPUT_STEP], on[INPUT_STEP + 1];
	ssize_t n = read(STDIN_FILENO, keys, sizeof(keys));
	size_t len;

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		s->in_open = false;
		if (!s->term.raw)
			(void)ws_client_send(s->ws, false, EOF_KEY, 1);
		return;
	}
	if (!s->term.raw) {
		(void)ws_client_send(s->ws, false, keys, (size_t)n);
		return;
	}
	len = look_for_leave(s, keys, (size_t)n, on);
	if (len > 0)
		(void)ws_client_send(s->ws, false, on, len);
}

static void on_signal(struct state *s)
{
	struct signalfd_siginfo info;

	if (read(s->sigfd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGWINCH)
		send_size(s);
	else
		s->signal = (int)info.ssi_signo;
}

/* --- the loop ------------------------------------------------------------------------------ */

static void write_output(struct state *s)
{
	ssize_t n = write(STDOUT_FILENO, s->out.data,
			  s->out.len < WRITE_STEP ? s->out.len : WRITE_STEP);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n < 0) {
		s->signal = SIGPIPE;
		return;
	}
	buf_drop(&s->out, (size_t)n);
	if (s->out.len == 0)
		ws_client_hold(s->ws, false);
}

static int turn(struct state *s, struct err *err)
{
	bool may_read = s->in_open && ws_client_pending(s->ws) < PENDING_MAX;
	struct pollfd slots[SLOT_COUNT] = {
		[SLOT_SIGNAL] = { .fd = s->sigfd, .events = POLLIN },
		[SLOT_IN] = { .fd = may_read ? STDIN_FILENO : -1, .events = POLLIN },
		[SLOT_OUT] = { .fd = s->out.len ? STDOUT_FILENO : -1, .events = POLLOUT },
	};
	int r = ws_client_turn(s->ws, slots, SLOT_COUNT, -1, err);

	if (r != 0)
		return r;
	if (slots[SLOT_SIGNAL].revents)
		on_signal(s);
	if (slots[SLOT_OUT].revents)
		write_output(s);
	if (slots[SLOT_IN].revents)
		on_input(s);
	return 0;
}

/* What came with the last message and is not written yet. */
static void write_rest(struct state *s)
{
	(void)fd_write_all(STDOUT_FILENO, buf_str(&s->out), s->out.len);
	buf_clear(&s->out);
}

static int run(struct state *s, struct err *err)
{
	int r = 0;

	send_size(s);
	while (r == 0 && !s->left && !s->signal && !(s->exited && s->out.len == 0))
		r = turn(s, err);
	if (s->exited || r == 1)
		write_rest(s);
	return s->exited ? 0 : r;
}

/* It had ended before we came: what it wrote and how it ended are kept. */
static int replay(const struct terminal *t, struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	_cleanup_(buf_done) struct buf target = { 0 };
	_cleanup_(buf_done) struct buf bytes = { 0 };
	struct term term;
	int r = client_path(&target, "sandboxes/%/executions/%?encoding=base64", t->sandbox,
			    t->execution);

	if (r == 0)
		r = client_json(t->client, "GET", target.data, NULL, &d, err);
	if (r == 0)
		r = client_bytes(jv_get(jv_root(d.doc), "stdout"), &bytes, err);
	if (r < 0)
		return r;
	term_raw(&term); /* its lines end as a terminal's do already */
	(void)fd_write_all(STDOUT_FILENO, buf_str(&bytes), bytes.len);
	term_restore(&term);
	return ending_say(jv_root(d.doc), 0);
}

static int say_end(struct state *s, int r, struct err *err)
{
	const struct terminal *t = s->t;

	if (s->exited)
		return ending_say(jv_root(s->ending), 0);
	if (s->signal)
		r = CLI_SIGNAL + s->signal;
	else if (s->left)
		r = CLI_OK;
	else if (r == 1)
		r = err_set(err, ECONNRESET, "the daemon closed the terminal (%u)",
			    ws_client_code(s->ws));
	if (!t->kill) {
		(void)fputs("\n", stderr); /* behind whatever line the cursor stands in */
		cli_say("left the terminal running");
		cli_hint("holt shell --attach %s %s", t->execution, t->sandbox);
	}
	return r;
}

static void state_done(struct state *s)
{
	s->ws = ws_client_free(s->ws);
	buf_done(&s->out);
	(void)jv_free(s->ending);
	(void)close(s->sigfd);
}

static int open_socket(struct state *s, struct err *err)
{
	_cleanup_(buf_done) struct buf target = { 0 };
	int r = client_path(&target, "sandboxes/%/pty?execution=%", s->t->sandbox, s->t->execution);

	if (r == 0 && s->t->kill)
		r = url_add_query(&target, "kill", "1");
	if (r < 0)
		return err_sys(err, r, "request");
	return ws_client_open(s->t->client->http, target.data, on_message, s, &s->ws, err);
}

int terminal_run(const struct terminal *t, struct err *err)
{
	_cleanup_(state_done) struct state s = { .t = t, .keys = LEAVE_LINE, .in_open = true };
	sigset_t set;
	int r;

	signal_set(&set);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	s.sigfd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s.sigfd < 0)
		return err_sys(err, errno, "signalfd");
	r = open_socket(&s, err);
	if (r == -EBUSY) {
		err_clear(err);
		return replay(t, err);
	}
	if (r < 0)
		return r;
	term_raw(&s.term);
	r = run(&s, err);
	term_restore(&s.term);
	return say_end(&s, r, err);
}
