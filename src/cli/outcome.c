#include "cli/outcome.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/encode.h"
#include "base/utf8.h"
#include "cli/box_args.h"
#include "cli/command.h"

void outcome_size(uint64_t bytes, char dst[32])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	double v = (double)bytes;
	size_t u = 0;

	for (; v >= 1024 && u < 4; u++)
		v /= 1024;
	(void)snprintf(dst, 32, v == (double)(uint64_t)v ? "%.0f %s" : "%.1f %s", v, units[u]);
}

static bool is_oom(const struct outcome *o)
{
	return o->usage.oom_kills > 0;
}

static void say_oom(const struct run_facts *f, struct buf *reason)
{
	char size[32];

	outcome_size(f->box->limits.memory_bytes, size);
	(void)buf_printf(reason, "killed: out of memory (the limit is %s; see --memory)", size);
}

/* What could not be started: the codes of a shell, or ours when it is not about the program. */
static int code_of_failure(const struct run_facts *f, struct buf *reason)
{
	const struct outcome *o = f->outcome;

	if (is_oom(o)) {
		say_oom(f, reason);
		return CLI_SIGNAL + SIGKILL;
	}
	(void)buf_puts(reason, o->fail_text);
	if (strncmp(o->fail_text, "exec ", 5) != 0)
		return CLI_ERROR; /* the working directory, the user: not the program */
	switch (o->fail_code) {
	case ENOENT:
		return CLI_NOT_FOUND;
	case EACCES:
	case ENOEXEC:
	case EISDIR:
		return CLI_NOT_EXECUTABLE;
	default:
		return CLI_ERROR;
	}
}

static int code_of_exit(const struct run_facts *f, struct buf *reason)
{
	const struct guest_exit *ex = &f->outcome->exit;
	const char *name = ex->code < NSIG ? sigabbrev_np((int)ex->code) : NULL;

	if (ex->flags & EXIT_TIMED_OUT) {
		(void)buf_printf(reason, "timed out after %g s (see --timeout)",
				 f->timeout_ms / 1000.0);
		return CLI_TIMED_OUT;
	}
	if (is_oom(f->outcome) && (ex->code != 0 || (ex->flags & EXIT_SIGNALED)))
		say_oom(f, reason);
	if (!(ex->flags & EXIT_SIGNALED))
		return (int)(ex->code & 0xff);
	if (reason->len == 0)
		(void)buf_printf(reason, "killed by signal %u (%s)", ex->code, name ? name : "?");
	return CLI_SIGNAL + (int)(ex->code & 0x7f);
}

int outcome_exit_code(const struct run_facts *f, struct buf *reason)
{
	const struct outcome *o = f->outcome;

	if (o->signal)
		return CLI_SIGNAL + o->signal;
	if (o->output_closed)
		return CLI_SIGNAL + SIGPIPE;
	return o->ended ? code_of_exit(f, reason) : code_of_failure(f, reason);
}

/* "name":"text", and where the bytes are not UTF-8 also "nameBase64" with all of them. */
static void put_text(struct buf *b, const char *name, const struct buf *text)
{
	const char *data = buf_str(text);

	(void)buf_printf(b, "\"%s\":\"", name);
	(void)utf8_json_escape(b, data, text->len);
	(void)buf_puts(b, "\",");
	if (utf8_is_valid(data, text->len))
		return;
	(void)buf_printf(b, "\"%sBase64\":\"", name);
	if (buf_reserve(b, BASE64_SIZE(text->len)) == 0)
		b->len += encode_base64(data, text->len, b->data + b->len);
	(void)buf_puts(b, "\",");
}

static const char *bool_text(bool v)
{
	return v ? "true" : "false";
}

static void put_status(struct buf *b, const struct run_facts *f, int code, const char *reason)
{
	const struct outcome *o = f->outcome;
	uint32_t flags = o->ended ? o->exit.flags : 0;
	const char *name = (flags & EXIT_SIGNALED) && o->exit.code < NSIG
				   ? sigabbrev_np((int)o->exit.code)
				   : NULL;

	(void)buf_printf(b, "\"exitCode\":%d,", code);
	if (name)
		(void)buf_printf(b, "\"signal\":\"SIG%s\",", name);
	else
		(void)buf_puts(b, "\"signal\":null,");
	if (reason[0]) {
		(void)buf_puts(b, "\"reason\":\"");
		(void)utf8_json_escape(b, reason, strlen(reason));
		(void)buf_puts(b, "\",");
	}
	(void)buf_printf(b, "\"timedOut\":%s,\"truncated\":%s,\"cancelled\":%s,\"oomKilled\":%s,",
			 bool_text(flags & EXIT_TIMED_OUT), bool_text(flags & EXIT_TRUNCATED),
			 bool_text((flags & EXIT_CANCELLED) || o->signal), bool_text(is_oom(o)));
}

static void put_usage(struct buf *b, const struct outcome *o)
{
	uint64_t peak = o->usage.memory_peak_bytes, cpu_us = o->exit.user_us + o->exit.sys_us;

	if (peak == 0)
		peak = o->exit.max_rss_bytes; /* no memory controller here: the largest process */
	if (!o->ended)
		cpu_us = o->usage.cpu_us;
	(void)buf_printf(b, "\"durationMs\":%.3f,\"cpuMs\":%.3f,\"peakMemoryBytes\":%llu,",
			 (double)o->exit.wall_us / 1e3, (double)cpu_us / 1e3,
			 (unsigned long long)peak);
	(void)buf_printf(b, "\"outputBytes\":%llu,", (unsigned long long)o->exit.output_bytes);
}

static void put_start(struct buf *b, const struct launcher_box *box)
{
	static const char *const names[STEP_COUNT] = { "stock", "clone", "ready", "limits" };
	uint64_t total = 0;

	(void)buf_printf(b, "\"start\":{\"kind\":\"%s\",\"stepsUs\":{",
			 box->flags & BOX_WARM ? "warm" : "cold");
	for (size_t i = 0; i < STEP_COUNT; i++) {
		(void)buf_printf(b, "%s\"%s\":%.1f", i ? "," : "", names[i],
				 (double)box->step_ns[i] / 1e3);
		total += box->step_ns[i];
	}
	(void)buf_printf(b, "},\"totalUs\":%.1f},", (double)total / 1e3);
}

/* A limit that the machine cannot hold must not look as if it held. */
static void put_not_enforced(struct buf *b, unsigned missing)
{
	const char *comma = "";

	(void)buf_puts(b, "\"notEnforced\":[");
	for (const struct box_limit *l = box_limits; l->name; l++)
		if (missing & l->controller) {
			(void)buf_printf(b, "%s\"%s\"", comma, l->name);
			comma = ",";
		}
	(void)buf_puts(b, "],");
}

static void put_limits(struct buf *b, const struct run_facts *f)
{
	const struct limits *l = &f->box->limits;

	(void)buf_printf(b,
			 "\"limits\":{\"memoryBytes\":%llu,\"diskBytes\":%llu,\"inodes\":%u,"
			 "\"cpuMilli\":%u,\"pids\":%u,\"openFiles\":%u,\"timeoutMs\":%u},",
			 (unsigned long long)l->memory_bytes, (unsigned long long)l->disk_bytes,
			 l->inodes, l->cpu_milli, l->pids, l->nofile, f->timeout_ms);
	put_not_enforced(b, f->not_enforced);
}

int outcome_json(const struct run_facts *f, struct buf *ret)
{
	_cleanup_(buf_done) struct buf reason = { 0 };
	int code = outcome_exit_code(f, &reason);

	(void)buf_putc(ret, '{');
	put_status(ret, f, code, buf_str(&reason));
	put_text(ret, "stdout", f->out);
	put_text(ret, "stderr", f->err);
	put_usage(ret, f->outcome);
	put_start(ret, f->box);
	put_limits(ret, f);
	(void)buf_printf(ret, "\"level\":\"%s\",\"net\":\"%s\",\"sandboxId\":\"%s\"}\n", f->level,
			 f->net, f->box->id);
	return ret->failed ? -ENOMEM : 0;
}
