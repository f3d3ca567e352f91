#include "spec/guest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define EXEC_FLAGS (EXEC_PTY | EXEC_STDIN | EXEC_LOGIN | EXEC_KEEP | EXEC_SHELL | EXEC_WHOLE)
#define EXIT_FLAGS \
	(EXIT_TIMED_OUT | EXIT_TRUNCATED | EXIT_CANCELLED | EXIT_SIGNALED | EXIT_LEFTOVERS)
#define LIVE_FLAGS (LIVE_ENDED | LIVE_PTY | LIVE_STDIN | LIVE_WARM)

#define EXIT_CODE_MAX 255u
#define SIGNAL_MAX 64u

static void put_list(struct wr *w, const char *const *list, size_t n)
{
	wr_u32(w, (uint32_t)n);
	for (size_t i = 0; i < n; i++)
		wr_str(w, list[i]);
}

/* The count is checked before anything is stored: it comes from the other side. */
static int get_list(struct rd *r, const char **list, size_t *ret_n)
{
	uint32_t n = rd_u32(r);

	if (n > GUEST_ARGS_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < n && !r->bad; i++)
		list[i] = rd_str(r);
	list[n] = NULL;
	*ret_n = n;
	return r->bad ? -EPROTO : 0;
}

long guest_put_exec(void *data, size_t cap, uint32_t id, const struct guest_exec *e)
{
	struct wr w;

	if (e->argc > GUEST_ARGS_MAX || e->envc > GUEST_ARGS_MAX)
		return -E2BIG;
	wire_begin(&w, data, cap, G_EXEC, id);
	wr_u8(&w, e->kind);
	wr_u8(&w, e->flags);
	wr_u16(&w, e->rows);
	wr_u16(&w, e->cols);
	wr_u32(&w, e->timeout_ms);
	wr_u32(&w, e->grace_ms);
	wr_u32(&w, e->cpu_seconds);
	wr_u64(&w, e->output_limit);
	wr_str(&w, e->user);
	wr_str(&w, e->cwd);
	wr_str(&w, e->code);
	wr_str(&w, e->tag);
	put_list(&w, e->argv, e->argc);
	put_list(&w, e->envp, e->envc);
	return wire_finish(&w);
}

static int check_env(const struct guest_exec *e)
{
	for (size_t i = 0; i < e->envc; i++) {
		const char *eq = strchr(e->envp[i], '=');

		if (!eq || eq == e->envp[i])
			return -EINVAL;
	}
	return 0;
}

static int check_exec(const struct guest_exec *e)
{
	if (e->kind >= EXEC_KIND_COUNT || (e->flags & ~EXEC_FLAGS) != 0)
		return -EINVAL;
	if (strlen(e->tag) > GUEST_TAG_MAX)
		return -EINVAL;
	/* A command has a program and no code: one of the two would be ignored silently. */
	if (e->kind == EXEC_COMMAND && (e->argc == 0 || e->code[0] != '\0'))
		return -EINVAL;
	if ((e->flags & EXEC_SHELL) && (e->kind != EXEC_COMMAND || e->argc != 3))
		return -EINVAL;
	return check_env(e);
}

int guest_get_exec(struct rd *r, struct guest_exec *ret)
{
	struct guest_exec e = { 0 };
	int n;

	e.kind = rd_u8(r);
	e.flags = rd_u8(r);
	e.rows = rd_u16(r);
	e.cols = rd_u16(r);
	e.timeout_ms = rd_u32(r);
	e.grace_ms = rd_u32(r);
	e.cpu_seconds = rd_u32(r);
	e.output_limit = rd_u64(r);
	e.user = rd_str(r);
	e.cwd = rd_str(r);
	e.code = rd_str(r);
	e.tag = rd_str(r);
	n = get_list(r, e.argv, &e.argc);
	if (n == 0)
		n = get_list(r, e.envp, &e.envc);
	if (n == 0)
		n = rd_end(r);
	if (n == 0)
		n = check_exec(&e);
	if (n == 0)
		*ret = e;
	return n;
}

long guest_put_exit(void *data, size_t cap, uint32_t id, const struct guest_exit *e)
{
	struct wr w;

	wire_begin(&w, data, cap, G_EXIT, id);
	wr_u32(&w, e->code);
	wr_u32(&w, e->flags);
	wr_u64(&w, e->wall_us);
	wr_u64(&w, e->user_us);
	wr_u64(&w, e->sys_us);
	wr_u64(&w, e->max_rss_bytes);
	wr_u64(&w, e->output_bytes);
	return wire_finish(&w);
}

static int check_exit(const struct guest_exit *e)
{
	if ((e->flags & ~(uint32_t)EXIT_FLAGS) != 0)
		return -EINVAL;
	if (e->flags & EXIT_SIGNALED)
		return e->code >= 1 && e->code <= SIGNAL_MAX ? 0 : -EINVAL;
	return e->code <= EXIT_CODE_MAX ? 0 : -EINVAL;
}

int guest_get_exit(struct rd *r, struct guest_exit *ret)
{
	struct guest_exit e;
	int n;

	e.code = rd_u32(r);
	e.flags = rd_u32(r);
	e.wall_us = rd_u64(r);
	e.user_us = rd_u64(r);
	e.sys_us = rd_u64(r);
	e.max_rss_bytes = rd_u64(r);
	e.output_bytes = rd_u64(r);
	n = rd_end(r);
	if (n == 0)
		n = check_exit(&e);
	if (n == 0)
		*ret = e;
	return n;
}

long guest_put_live(void *data, size_t cap, const struct guest_live *e)
{
	struct wr w;

	wire_begin(&w, data, cap, G_LIVE, e->id);
	wr_u32(&w, e->pid);
	wr_u8(&w, e->flags);
	wr_u64(&w, e->age_ms);
	wr_u64(&w, e->offset[0]);
	wr_u64(&w, e->offset[1]);
	wr_u64(&w, e->stdin_taken);
	wr_u32(&w, e->stdin_kept);
	wr_str(&w, e->tag);
	return wire_finish(&w);
}

static int check_live(const struct guest_live *e)
{
	if (e->id == 0 || (e->flags & ~LIVE_FLAGS) != 0 || e->stdin_kept > GUEST_WINDOW)
		return -EINVAL;
	return strlen(e->tag) <= GUEST_TAG_MAX ? 0 : -EINVAL;
}

int guest_get_live(struct rd *r, uint32_t id, struct guest_live *ret)
{
	struct guest_live e = { .id = id };
	int n;

	e.pid = rd_u32(r);
	e.flags = rd_u8(r);
	e.age_ms = rd_u64(r);
	e.offset[0] = rd_u64(r);
	e.offset[1] = rd_u64(r);
	e.stdin_taken = rd_u64(r);
	e.stdin_kept = rd_u32(r);
	e.tag = rd_str(r);
	n = rd_end(r);
	if (n == 0)
		n = check_live(&e);
	if (n == 0)
		*ret = e;
	return n;
}

long guest_put_ready(void *data, size_t cap, const struct guest_ready *e)
{
	struct wr w;

	wire_begin(&w, data, cap, G_READY, 0);
	wr_u32(&w, e->version);
	wr_u8(&w, e->warm_python);
	wr_u8(&w, e->warm_node);
	wr_u8(&w, e->resumed);
	wr_u32(&w, e->live);
	if (e->why_code != 0) {
		wr_u32(&w, e->why_code);
		wr_str(&w, e->why);
	}
	return wire_finish(&w);
}

int guest_get_ready(struct rd *r, struct guest_ready *ret)
{
	struct guest_ready e = { .why = "" };
	bool has_why;
	int n;

	e.version = rd_u32(r);
	e.warm_python = rd_u8(r);
	e.warm_node = rd_u8(r);
	e.resumed = rd_u8(r);
	e.live = rd_u32(r);
	/* A box that is older than this says nothing of it. */
	has_why = !r->bad && r->p != r->end;
	if (has_why) {
		e.why_code = rd_u32(r);
		e.why = rd_str(r);
	}
	n = rd_end(r);
	if (n == 0 && (e.resumed > 1 || (has_why && e.why_code == 0) || strlen(e.why) > WHY_MAX))
		n = -EINVAL;
	if (n == 0)
		*ret = e;
	return n;
}

long guest_put_connect(void *data, size_t cap, uint16_t type, uint32_t id,
		       const struct guest_connect *c)
{
	struct wr w;

	wire_begin(&w, data, cap, type, id);
	wr_u16(&w, c->port);
	wr_u8(&w, c->address);
	if (c->address == ADDRESS_UNIX)
		wr_str(&w, c->path);
	return wire_finish(&w);
}

static bool is_connect_good(const struct guest_connect *c, uint16_t type)
{
	if (c->address == ADDRESS_UNIX)
		return type == G_LISTEN && c->port == 0 && c->path[0] == '/';
	return c->address < ADDRESS_COUNT && (c->port != 0 || type == G_LISTEN);
}

int guest_get_connect(struct rd *r, uint16_t type, struct guest_connect *ret)
{
	struct guest_connect c = { .path = "" };
	int n;

	c.port = rd_u16(r);
	c.address = rd_u8(r);
	if (c.address == ADDRESS_UNIX)
		c.path = rd_str(r);
	n = rd_end(r);
	if (n == 0 && !is_connect_good(&c, type))
		n = -EINVAL;
	if (n == 0)
		*ret = c;
	return n;
}

long guest_put_raw(void *data, size_t cap, uint16_t type, uint32_t id, const void *bytes, size_t n)
{
	struct wr w;

	wire_begin(&w, data, cap, type, id);
	wr_raw(&w, bytes, n);
	return wire_finish(&w);
}

long guest_put_u64(void *data, size_t cap, uint16_t type, uint32_t id, uint64_t v)
{
	struct wr w;

	wire_begin(&w, data, cap, type, id);
	wr_u64(&w, v);
	return wire_finish(&w);
}

long guest_put_error(void *data, size_t cap, uint32_t id, int code, const char *text)
{
	struct wr w;

	wire_begin(&w, data, cap, G_ERROR, id);
	wr_u32(&w, (uint32_t)abs(code)); /* a function's negative result is welcome too */
	wr_str(&w, text);
	return wire_finish(&w);
}
