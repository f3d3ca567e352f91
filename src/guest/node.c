#include "guest/node.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/utf8.h"
#include "guest/user.h"
#include "guest/warm.h"
#include "spec/warm.h"

#define HAND_OVER_MS 5000

__asm__(".section .rodata\n"
	"guest_node_bootstrap:\n"
	".incbin \"guest/node_bootstrap.js\"\n"
	".byte 0\n"
	".previous\n");
extern const char guest_node_bootstrap[];

static void forget(struct warm *w)
{
	spawn_close(&w->node);
	w->node.pid = 0;
}

static int wait_for(int fd, short what, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = what };
	int r;

	do
		r = poll(&p, 1, timeout_ms);
	while (r < 0 && errno == EINTR);
	return r > 0 ? 0 : -ETIMEDOUT;
}

/* It says one byte when it has loaded what programs need and begins to wait, and else why not. */
static int wait_ready(struct warm *w, struct err *err)
{
	char word[WHY_MAX + 1];
	ssize_t n;

	if (wait_for(w->node.out, POLLIN, WARM_PRELOAD_MS) < 0)
		return err_set(err, ETIMEDOUT, "preload: Node is not ready in %d s",
			       WARM_PRELOAD_MS / 1000);
	n = read(w->node.out, word, sizeof(word) - 1);
	if (n < 1)
		return err_set(err, ECHILD, "preload: Node ended before it was ready");
	if (word[0] == 'r')
		return 0;
	word[n] = '\0';
	return err_set(err, ENOPKG, "preload: Node cannot load %s", warm_plain(word));
}

int warm_start_node(struct warm *w, uint64_t mark, const char *modules, struct err *err)
{
	const char *const argv[] = {
		"node", "--expose-internals", "-e", guest_node_bootstrap, "--", modules, NULL
	};
	static const char *const envp[] = { "PATH=" WARM_PATH, "HOME=" WARM_HOME, "LANG=" WARM_LANG,
					    NULL };
	struct spawn_plan plan = {
		.argv = argv, .envp = envp, .cwd = "/", .flags = EXEC_STDIN, .mark = mark
	};
	struct user u;
	int r = user_load("", &u, err);

	if (r < 0)
		return r;
	plan.user = &u;
	r = spawn_start(&plan, &w->node, err);
	if (r == -ENOENT && modules[0])
		return err_set(err, ENOPKG, "preload: there is no node");
	if (r < 0)
		return r;
	r = wait_ready(w, err);
	if (r == 0)
		return 0;
	(void)kill(w->node.pid, SIGKILL); /* reaped with everybody else */
	forget(w);
	return r;
}

/* Read when Node starts: what waits has these values, or none. */
static const struct {
	const char *name; /* with its "=", or the beginning of many */
	const char *value;
} fixed[] = {
	{ "PATH=", WARM_PATH }, { "LANG=", WARM_LANG }, { "NODE_", NULL },
	{ "LANGUAGE=", NULL },  { "LC_", NULL },        { "TZ=", NULL },
	{ "UV_", NULL },        { "OPENSSL_", NULL },   { "SSL_", NULL },
};

static bool is_servable_var(const char *var)
{
	if (strncmp(var, "NODE_ENV=", 9) == 0) /* programs alone look at it */
		return true;
	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
		size_t n = strlen(fixed[i].name);

		if (strncmp(var, fixed[i].name, n) == 0)
			return fixed[i].value && warm_is_value(var + n, fixed[i].value);
	}
	return true;
}

static bool is_servable(const struct guest_exec *e, const struct user *u)
{
	/* Only the process itself could lower its own CPU time, and Node has no call for it. */
	if ((e->flags & EXEC_PTY) || e->cpu_seconds || u->uid != USER_DEFAULT)
		return false;
	for (size_t i = 0; i < e->envc; i++)
		if (!is_servable_var(e->envp[i]) || !utf8_is_valid(e->envp[i], strlen(e->envp[i])))
			return false;
	for (size_t i = 0; i < e->argc; i++)
		if (!utf8_is_valid(e->argv[i], strlen(e->argv[i])))
			return false;
	return utf8_is_valid(e->code, strlen(e->code)) && utf8_is_valid(e->cwd, strlen(e->cwd));
}

static void put_text(struct buf *b, const char *name, const char *text)
{
	(void)buf_printf(b, "\"%s\":\"", name);
	(void)utf8_json_escape(b, text, strlen(text));
	(void)buf_puts(b, "\",");
}

static void put_list(struct buf *b, const char *name, const char *const *items, size_t n)
{
	(void)buf_printf(b, "\"%s\":[", name);
	for (size_t i = 0; i < n; i++) {
		(void)buf_puts(b, i ? ",\"" : "\"");
		(void)utf8_json_escape(b, items[i], strlen(items[i]));
		(void)buf_putc(b, '"');
	}
	(void)buf_puts(b, "],");
}

/* A length and JSON, as node_bootstrap.js wants it. */
static int put_request(struct buf *b, const struct guest_exec *e, const struct user *u)
{
	uint32_t len = 0;

	(void)buf_append(b, &len, sizeof(len));
	(void)buf_putc(b, '{');
	put_text(b, "code", e->code);
	put_text(b, "cwd", e->cwd[0] ? e->cwd : u->home);
	put_list(b, "argv", e->argv, e->argc);
	put_list(b, "env", e->envp, e->envc);
	(void)buf_printf(b, "\"stdin\":%s}", e->flags & EXEC_STDIN ? "true" : "false");
	if (b->failed)
		return -ENOMEM;
	len = (uint32_t)(b->len - sizeof(len));
	memcpy(b->data, &len, sizeof(len));
	return 0;
}

/* Our end does not block; what does not fit into the pipe goes as Node reads it. */
static int write_request(int fd, const struct buf *b)
{
	for (size_t at = 0; at < b->len;) {
		ssize_t n = write(fd, b->data + at, b->len - at);

		if (n > 0)
			at += (size_t)n;
		else if (n < 0 && errno == EAGAIN && wait_for(fd, POLLOUT, HAND_OVER_MS) < 0)
			return -ETIMEDOUT;
		else if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
	}
	return 0;
}

int node_take(struct warm *w, const struct guest_exec *e, const struct user *u, struct spawned *ret,
	      struct err *err)
{
	_cleanup_(buf_done) struct buf request = { 0 };
	int r;

	(void)err;
	if (w->node.pid <= 0 || !is_servable(e, u) || put_request(&request, e, u) < 0)
		return -ENOENT;
	r = write_request(w->node.in, &request);
	if (r < 0) {
		(void)kill(w->node.pid, SIGKILL);
		forget(w);
		return -ENOENT;
	}
	if (!(e->flags & EXEC_STDIN))
		w->node.in = fd_close(w->node.in);
	*ret = w->node;
	ret->warm = 1;
	w->node = (struct spawned){ .in = -1, .out = -1, .err = -1 };
	return 0;
}
