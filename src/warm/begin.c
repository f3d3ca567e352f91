#include "warm/begin.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "spec/guest.h"
#include "spec/warm.h"
#include "warm/finish.h"
#include "warm/python.h"

#define NULL_DEVICE makedev(1, 3)

static const char *const names[3][2] = { { "stdin", "__stdin__" },
					 { "stdout", "__stdout__" },
					 { "stderr", "__stderr__" } };

/* 0: it is not there. */
static struct timespec changed_at(const char *dir)
{
	struct stat st;

	return dir[0] && stat(dir, &st) == 0 ? st.st_mtim : (struct timespec){ 0 };
}

int begin_prepare(struct python *py, struct err *err)
{
	struct py_object *site = py->api.dict_get(py->tools, "user_site");
	struct py_object *clock = python_call(py, "has_clock", NULL, NULL);

	py->user_site = site ? py->api.text_get(site) : NULL;
	if (!py->user_site || !clock) {
		py->api.err_print();
		return err_set(err, EIO, "prepare the begin of Python");
	}
	py->user_site_time = changed_at(py->user_site);
	py->has_clock = py->api.is_true(clock) == 1;
	py->api.decref(clock);
	return 0;
}

static struct py_object *open_stream(struct python *py, int fd, bool unbuffered)
{
	struct py_object *a = py->api.long_new(fd), *b = py->api.long_new(unbuffered);
	struct py_object *stream = a && b ? python_call(py, "open_stream", a, b) : NULL;

	if (a)
		py->api.decref(a);
	if (b)
		py->api.decref(b);
	return stream;
}

static int make_stream(struct python *py, enum python_stream which)
{
	struct py_object *old = py->streams[which];

	py->streams[which] = open_stream(py, which == STREAM_NO_IN ? 0 : (int)which, false);
	if (old)
		py->api.decref(old);
	return py->streams[which] ? 0 : -EIO;
}

/* A stream remembers what its descriptor can do, so it is made on one of the right kind. */
int begin_make_streams(struct python *py, struct err *err)
{
	_close_ int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int pipe_fds[2], r = 0;

	if (null < 0 || pipe2(pipe_fds, O_CLOEXEC) < 0)
		return err_sys(err, errno, "streams of the interpreter");
	(void)dup2(pipe_fds[0], 0);
	(void)dup2(pipe_fds[1], 1);
	(void)dup2(pipe_fds[1], 2);
	for (int i = STREAM_IN; i <= STREAM_ERR && r == 0; i++)
		r = make_stream(py, (enum python_stream)i);
	for (int fd = 0; fd < 3; fd++)
		(void)dup2(null, fd);
	(void)close(pipe_fds[0]);
	(void)close(pipe_fds[1]);
	if (r == 0)
		r = make_stream(py, STREAM_NO_IN);
	for (int i = 0; i < 3 && r == 0; i++) /* what is replaced now need not be freed then */
		r = py->api.sys_set(names[i][0], py->api.none) < 0 ||
				    py->api.sys_set(names[i][1], py->api.none) < 0
			    ? -EIO
			    : 0;
	if (r < 0)
		py->api.err_print();
	return r < 0 ? err_set(err, EIO, "streams of the interpreter") : 0;
}

static const char *find_env(const char *const *envp, const char *name)
{
	size_t n = strlen(name);

	for (; *envp; envp++)
		if (strncmp(*envp, name, n) == 0 && (*envp)[n] == '=')
			return *envp + n + 1;
	return "";
}

/* A bare interpreter would have looked for the user's own packages at its start, and found those
 * that have come since the template's. */
static bool needs_fresh_start(const struct python *py, const struct guest_exec *e)
{
	const char *home = find_env(e->envp, "HOME");
	struct timespec now;

	if (home[0] && strcmp(home, WARM_HOME) != 0)
		return true;
	now = changed_at(py->user_site);
	return now.tv_sec != py->user_site_time.tv_sec || now.tv_nsec != py->user_site_time.tv_nsec;
}

/* Without any locale the interpreter picks C.UTF-8 and tells its children. */
static bool is_locale_unset(const char *const *envp)
{
	return !find_env(envp, "LC_ALL")[0] && !find_env(envp, "LC_CTYPE")[0] &&
	       !find_env(envp, "LANG")[0];
}

/* NOTE: owned by the process, as the environment of any program is. */
static char **make_environ(const struct guest_exec *e)
{
	char **list = calloc(e->envc + 2, sizeof(*list));
	size_t n = 0;

	for (size_t i = 0; list && i < e->envc; i++)
		list[n++] = (char *)(uintptr_t)e->envp[i];
	if (list && is_locale_unset(e->envp))
		list[n] = (char *)(uintptr_t) "LC_CTYPE=C.UTF-8";
	return list;
}

/* "NAME=value" into both mappings; of two with one name the first counts. */
static int add_variable(struct python *py, struct py_object *const maps[2], const char *pair)
{
	const char *eq = strchr(pair, '=');
	struct py_object *key, *value;
	int r = -1;

	if (!eq || eq == pair)
		return 0;
	key = py->api.bytes_new(pair, eq - pair);
	value = py->api.bytes_new(eq + 1, (ssize_t)strlen(eq + 1));
	if (key && value && py->api.dict_set_default(maps[0], key, value) &&
	    py->api.dict_set_default(maps[1], key, value))
		r = 0;
	if (key)
		py->api.decref(key);
	if (value)
		py->api.decref(value);
	return r;
}

static int set_environment(struct python *py, const struct guest_exec *e)
{
	struct py_object *list = py->api.dict_get(py->tools, "environments"), *maps[2];
	char **env = make_environ(e);
	int r = 0;

	if (!env || !list)
		return -1;
	environ = env;
	for (int i = 0; i < 2; i++) {
		maps[i] = py->api.list_get(list, i);
		py->api.dict_clear(maps[i]);
	}
	for (; *env && r == 0; env++)
		r = add_variable(py, maps, *env);
	return r;
}

/* A new list, the given objects in front of the arguments; takes their references. */
static int set_list(struct python *py, const char *name, struct py_object *const *front, size_t n,
		    const char *const *argv)
{
	struct py_object *list = py->api.list_new(0);
	int r = list ? 0 : -1;

	for (size_t i = 0; i < n || *argv; i++) {
		struct py_object *item = i < n ? front[i] : py->api.path_new(*argv++);

		if (!item || (r == 0 && py->api.list_append(list, item) < 0))
			r = -1;
		if (item)
			py->api.decref(item);
	}
	if (r == 0)
		r = py->api.sys_set(name, list);
	if (list)
		py->api.decref(list);
	return r;
}

static int set_arguments(struct python *py, const struct guest_exec *e)
{
	struct py_object *argv[] = { py->api.text_new("-c") };
	struct py_object *whole[] = { py->api.text_new("python3"), py->api.text_new("-c"),
				      py->api.text_new(e->code) };
	int r = set_list(py, "argv", argv, 1, e->argv);

	if (py->api.minor < FIRST_WITH_ORIG_ARGV) {
		for (int i = 0; i < 3; i++)
			if (whole[i])
				py->api.decref(whole[i]);
		return r;
	}
	return set_list(py, "orig_argv", whole, 3, e->argv) < 0 ? -1 : r;
}

/* Which of the streams made ahead fits the descriptor; PYTHON_STREAMS: none. */
static enum python_stream find_stream(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return PYTHON_STREAMS;
	if (S_ISFIFO(st.st_mode))
		return (enum python_stream)fd;
	if (fd == 0 && S_ISCHR(st.st_mode) && st.st_rdev == NULL_DEVICE)
		return STREAM_NO_IN;
	return PYTHON_STREAMS;
}

static int set_stream(struct python *py, int fd, bool unbuffered)
{
	enum python_stream which = unbuffered ? PYTHON_STREAMS : find_stream(fd);
	struct py_object *stream;
	int r;

	stream = which < PYTHON_STREAMS ? TAKE(py->streams[which]) : NULL;
	if (!stream)
		stream = open_stream(py, fd, unbuffered);
	if (!stream)
		return -1;
	r = py->api.sys_set(names[fd][0], stream);
	if (r == 0)
		r = py->api.sys_set(names[fd][1], stream);
	py->api.decref(stream);
	return r;
}

static int set_streams(struct python *py, const struct guest_exec *e)
{
	bool unbuffered = find_env(e->envp, "PYTHONUNBUFFERED")[0] != '\0';
	int r = 0;

	for (int fd = 0; fd < 3 && r == 0; fd++)
		r = set_stream(py, fd, unbuffered);
	/* The standard input that was not used must not be seen, either. */
	for (int i = 0; i < PYTHON_STREAMS; i++)
		if (py->streams[i])
			py->api.decref(TAKE(py->streams[i]));
	return r;
}

/* Behind what main() puts there, in front of the rest. Only what holt-init lets through: see
 * guest/warm.c. */
static int set_path(struct python *py, const struct guest_exec *e)
{
	if (!find_env(e->envp, "PYTHONPATH")[0])
		return 0;
	return python_call(py, "set_path", NULL, NULL) ? 0 : -1;
}

static int set_times(struct python *py, const struct guest_exec *e)
{
	struct py_object *done = py->api.none;

	if (find_env(e->envp, "TZ")[0])
		done = python_call(py, "set_zone", NULL, NULL);
	if (done && py->has_clock)
		done = python_call(py, "reset_clock", NULL, NULL);
	return done ? 0 : -1;
}

int begin_run(struct python *py, const struct guest_exec *e)
{
	if (needs_fresh_start(py, e))
		return -ESTALE;
	if (set_environment(py, e) == 0 && set_arguments(py, e) == 0 && set_path(py, e) == 0 &&
	    set_times(py, e) == 0 && set_streams(py, e) == 0 && finish_begin(py) == 0)
		return 0;
	py->api.err_print();
	return -EIO;
}
