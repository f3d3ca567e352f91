/* Finds the attack by name and runs it. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <dirent.h>
#include <signal.h>
#include <sys/syscall.h>

#include "base/parse.h"
#include "probe.h"

__attribute__((format(printf, 3, 0))) static int verdict(int code, const char *word,
							 const char *fmt, va_list ap)
{
	printf("%s: ", word);
	vprintf(fmt, ap);
	putchar('\n');
	fflush(stdout);
	return code;
}

#define VERDICT(name, code, word)                 \
	int name(const char *fmt, ...)            \
	{                                         \
		va_list ap;                       \
		int r;                            \
                                                  \
		va_start(ap, fmt);                \
		r = verdict(code, word, fmt, ap); \
		va_end(ap);                       \
		return r;                         \
	}
VERDICT(held, PROBE_HELD, "held")
VERDICT(broken, PROBE_BROKEN, "broken")
VERDICT(not_here, PROBE_NOT_HERE, "not here")

bool is_refusal(int error)
{
	return error == EPERM || error == ENOSYS || error == EACCES || error == EAFNOSUPPORT;
}

struct outcome call_apart(const struct call *c)
{
	struct outcome *o = shared(sizeof(*o)), result;
	const long *a = c->args;
	pid_t pid = fork_or_die();
	int status = 0;

	if (pid == 0) {
		o->result = syscall(c->nr, a[0], a[1], a[2], a[3], a[4], a[5]);
		o->error = o->result == -1 ? errno : 0;
		_exit(0);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	result = *o;
	result.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	(void)munmap(o, sizeof(*o));
	return result;
}

bool all_refused(const struct call *calls, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct outcome o = call_apart(&calls[i]);

		if (o.signal == SIGSYS || o.signal == SIGKILL)
			continue;
		if (o.signal)
			return broken("%s: ended by signal %d", calls[i].what, o.signal), false;
		if (o.result != -1)
			return broken("%s gave %ld", calls[i].what, o.result), false;
		if (!is_refusal(o.error))
			return broken("%s reached the kernel: %s", calls[i].what,
				      strerror(o.error)),
			       false;
	}
	return true;
}

int refuse_calls(const struct call *calls, size_t count)
{
	return all_refused(calls, count) ? held("%zu calls refused", count) : PROBE_BROKEN;
}

int refuse_open(const char *const *paths, size_t count, int flags)
{
	for (size_t i = 0; i < count; i++) {
		int fd = open(paths[i], flags | O_CLOEXEC | O_NONBLOCK);

		if (fd >= 0)
			return broken("opened %s with flags %#x", paths[i], (unsigned)flags);
	}
	return held("none of %zu files opens", count);
}

uint64_t number(int argc, char **argv, int at, uint64_t otherwise)
{
	uint64_t v = otherwise;

	if (at < argc && parse_u64(argv[at], 0, UINT64_MAX, &v) < 0) {
		fprintf(stderr, "'%s' is no number\n", argv[at]);
		exit(PROBE_USAGE);
	}
	return v;
}

const char *text(int argc, char **argv, int at, const char *otherwise)
{
	return at < argc ? argv[at] : otherwise;
}

uint64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void sleep_ms(unsigned ms)
{
	struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

void *shared(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		perror("mmap");
		exit(PROBE_USAGE);
	}
	return p;
}

ssize_t slurp(const char *path, char *dst, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	size_t n = 0;
	ssize_t r;

	if (fd < 0)
		return -1;
	while (n + 1 < size && (r = read(fd, dst + n, size - 1 - n)) > 0)
		n += (size_t)r;
	dst[n] = '\0';
	(void)close(fd);
	return (ssize_t)n;
}

int spill(const char *path, const char *text_)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	size_t n = strlen(text_);
	bool ok;

	if (fd < 0)
		return -1;
	ok = write(fd, text_, n) == (ssize_t)n;
	(void)close(fd);
	return ok ? 0 : -1;
}

pid_t fork_or_die(void)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0) {
		perror("fork");
		exit(PROBE_USAGE);
	}
	if (pid == 0)
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

void end_children(void)
{
	char path[64], list[65536];

	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	if (slurp(path, list, sizeof(list)) > 0)
		for (char *p = list; *p; p += strspn(p, " ")) {
			size_t n = strcspn(p, " ");
			uint64_t pid;

			p[n] = p[n] ? '\0' : p[n];
			if (parse_u64(p, 2, INT32_MAX, &pid) == 0)
				(void)kill((pid_t)pid, SIGKILL);
			p += n + 1;
		}
	while (waitpid(-1, NULL, 0) > 0)
		;
}

static bool is_called(const char *pid, const char *name)
{
	char path[300], comm[64];

	if (!name)
		return true;
	(void)snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	if (slurp(path, comm, sizeof(comm)) <= 0)
		return false;
	comm[strcspn(comm, "\n")] = '\0';
	return strcmp(comm, name) == 0;
}

int count_processes(const char *name)
{
	DIR *d = opendir("/proc");
	int n = 0;

	if (!d)
		return -1;
	for (struct dirent *e = readdir(d); e; e = readdir(d))
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && is_called(e->d_name, name))
			n++;
	(void)closedir(d);
	return n;
}

void rename_self(const char *name)
{
	(void)prctl(PR_SET_NAME, name);
}

bool in_a_box(void)
{
	return getppid() == 1 && access("/sys/kernel", F_OK) < 0;
}

static const struct probe *const families[] = {
	probes_process,  probes_memory,  probes_disk,      probes_bulk,      probes_life,
	probes_output,   probes_limits,  probes_calls,     probes_namespace, probes_trace,
	probes_abi,      probes_socket,  probes_signal,    probes_privilege, probes_sweep,
	probes_proc,     probes_files,   probes_race,      probes_layer,     probes_net,
	probes_control,  probes_residue, probes_leak,      probes_cross,     probes_device,
	probes_terminal, probes_sudo,    probes_arguments,
};

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	for (size_t f = 0; f < COUNT(families); f++)
		for (const struct probe *p = families[f]; p->name; p++) {
			if (strcmp(name, "--list") == 0)
				puts(p->name);
			else if (strcmp(name, p->name) == 0)
				return p->run(argc - 2, argv + 2);
		}
	if (strcmp(name, "--list") == 0)
		return 0;
	fprintf(stderr, "no attack is called '%s'\n", name);
	return PROBE_USAGE;
}
