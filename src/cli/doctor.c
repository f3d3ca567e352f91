#include "cli/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/utf8.h"
#include "cli/command.h"
#include "cli/session.h"

struct doctor_args {
	bool json;
};

const struct opt doctor_opts[] = {
	{ .name = "json",
	  .type = OPT_FLAG,
	  .help = "as a JSON object",
	  .offset = offsetof(struct doctor_args, json) },
	{ 0 },
};

static const char *const health_names[] = {
	[HEALTH_OK] = "ok", [HEALTH_WARN] = "warn", [HEALTH_FAIL] = "fail"
};

int doctor_try(int (*fn)(const void *arg), const void *arg)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		return errno;
	if (pid == 0)
		_exit(fn(arg));
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return EIO;
	return WEXITSTATUS(status);
}

static int map_self(uid_t uid, gid_t gid)
{
	char map[64];
	int e;

	(void)fd_write_file_at(AT_FDCWD, "/proc/self/setgroups", "deny");
	(void)snprintf(map, sizeof(map), "0 %u 1\n", uid);
	e = fd_write_file_at(AT_FDCWD, "/proc/self/uid_map", map);
	(void)snprintf(map, sizeof(map), "0 %u 1\n", gid);
	if (e == 0)
		e = fd_write_file_at(AT_FDCWD, "/proc/self/gid_map", map);
	return -e;
}

int doctor_unshare(int flags)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();

	if (uid != 0)
		flags |= CLONE_NEWUSER;
	if (unshare(flags) < 0)
		return errno;
	return flags & CLONE_NEWUSER ? map_self(uid, gid) : 0;
}

static const struct {
	unsigned bit;
	const char *name;
} controllers[] = {
	{ CONTROLLER_MEMORY, "memory" }, { CONTROLLER_PIDS, "pids" },
	{ CONTROLLER_CPU, "cpu" },       { CONTROLLER_FREEZER, "freezer" },
	{ CONTROLLER_CPUSET, "cpuset" },
};

/* Which limits the launcher can really enforce. */
static void find_limits(const struct launch_info *info, struct finding *f)
{
	static const char *const kinds[] = { "no cgroups", "cgroup v1", "cgroup v2" };
	const char *kind = info->cgroup <= CGROUP_V2 ? kinds[info->cgroup] : "?";
	char missing[80] = "";
	size_t n = 0;

	for (size_t i = 0; i < sizeof(controllers) / sizeof(controllers[0]); i++)
		if (info->cgroup_missing & controllers[i].bit)
			n += (size_t)snprintf(missing + n, sizeof(missing) - n, "%s%s",
					      n ? ", " : "", controllers[i].name);
	if (n == 0) {
		finding_set(f, HEALTH_OK, "all enforced (%s%s)", kind,
			    info->rootless ? ", rootless" : "");
		return;
	}
	finding_set(f, HEALTH_WARN, "%s: not enforced: %s%s%s", kind, missing,
		    info->cgroup_why[0] ? "; " : "", info->cgroup_why);
	finding_mend(
		f, info->rootless
			   ? "systemd-run --user --scope -p Delegate=yes holt ... (cgroup v2), or "
			     "run as root"
			   : "enable the controllers in the parent's cgroup.subtree_control");
}

static int run_true(struct session *s, uint64_t *ret_us, struct err *err)
{
	struct guest_exec e = { .kind = EXEC_COMMAND,
				.flags = EXEC_LOGIN,
				.timeout_ms = 10000,
				.user = "",
				.cwd = "/",
				.code = "",
				.argc = 1,
				.argv = { "/bin/true" } };
	struct guest_result result = { 0 };
	int r = guest_exec_sync(s->guest, &e, NULL, 0, &result, err);

	if (r == 0 && (result.exit.code != 0 || result.exit.flags))
		r = err_set(err, EIO, "/bin/true ended with code %u", result.exit.code);
	*ret_us = result.exit.wall_us;
	guest_result_done(&result);
	return r;
}

/* The proof: a real box with every default. */
static void find_box(struct finding *box, struct finding *limits)
{
	struct box_args args = BOX_ARGS_INIT;
	uint64_t began = clock_now_ns(), run_us = 0;
	struct err err = { 0 };
	struct session s;
	int r = session_open(&s, &args, &err);

	if (r == 0) {
		find_limits(launcher_info(s.launcher), limits);
		r = run_true(&s, &run_us, &err);
		if (session_close(&s, NULL, r < 0 ? NULL : &err) < 0 && r == 0)
			r = -err.code;
	} else {
		finding_set(limits, HEALTH_WARN, "unknown, as no box could be built");
	}
	if (r < 0)
		finding_set(box, HEALTH_FAIL, "%.190s", err.text);
	else
		finding_set(box, HEALTH_OK, "built, ran /bin/true and went away in %.1f ms",
			    (double)(clock_now_ns() - began) / 1e6);
}

struct printer {
	bool json;
	size_t rows;
	struct buf text; /* owned */
};

static void put_json(struct buf *b, const char *name, const char *text)
{
	(void)buf_printf(b, "\"%s\":\"", name);
	(void)utf8_json_escape(b, text, strlen(text));
	(void)buf_putc(b, '"');
}

static void print_row(struct printer *p, const char *name, const struct finding *f)
{
	struct buf *b = &p->text;

	if (p->json) {
		(void)buf_puts(b, p->rows++ ? ",{" : "{");
		put_json(b, "name", name);
		(void)buf_printf(b, ",\"status\":\"%s\",", health_names[f->health]);
		put_json(b, "text", f->text);
		(void)buf_putc(b, ',');
		put_json(b, "mend", f->mend);
		(void)buf_putc(b, '}');
		return;
	}
	(void)buf_printf(b, "%-5s %-16s %s\n", health_names[f->health], name, f->text);
	if (f->health != HEALTH_OK && f->mend[0])
		(void)buf_printf(b, "%22s -> %s\n", "", f->mend);
}

static void print_checks(struct printer *p, const struct check *checks)
{
	for (; checks->name; checks++) {
		struct finding f = { 0 };

		checks->run(&f);
		print_row(p, checks->name, &f);
	}
}

int cmd_doctor(const struct command *cmd, int argc, char **argv)
{
	struct doctor_args args = { 0 };
	struct finding box = { 0 }, limits = { 0 };
	struct printer p = { 0 };
	int n = cli_parse(cmd, argc, argv, &args);

	if (n <= 0)
		return -n;
	p.json = args.json;
	if (p.json)
		(void)buf_puts(&p.text, "{\"checks\":[");
	print_checks(&p, doctor_kernel_checks);
	print_checks(&p, doctor_machine_checks);
	find_box(&box, &limits);
	print_row(&p, "limits", &limits);
	print_row(&p, "box", &box);
	if (p.json)
		(void)buf_printf(&p.text, "],\"works\":%s}\n",
				 box.health == HEALTH_OK ? "true" : "false");
	else
		(void)buf_puts(&p.text, box.health == HEALTH_OK ? "\nboxes work here\n"
								: "\nboxes do not work here\n");
	(void)fputs(buf_str(&p.text), stdout);
	buf_done(&p.text);
	return box.health == HEALTH_OK ? CLI_OK : CLI_FAILED;
}
