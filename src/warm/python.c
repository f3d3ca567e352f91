#include "warm/python.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "spec/guest.h"
#include "warm/finish.h"

/* Larger than the configuration of any version; the interpreter's own functions fill it. */
#define CONFIG_SIZE 16384
#define MODULE_NAME_MAX 128
#define FIRST_WITH_SOURCE 13

__asm__(".section .rodata\n"
	"warm_reset_py:\n"
	".incbin \"warm/reset.py\"\n"
	".byte 0\n"
	".previous\n");
extern const char warm_reset_py[];

static int failed(struct python *py, struct err *err, const char *what)
{
	py->api.err_print(); /* to the template's stderr, which a developer may look at */
	return err_set(err, EIO, "%s", what);
}

/* As `python3 -c pass`: the interpreter parses the arguments and reads the environment by itself. */
static int initialize(struct python *py, struct err *err)
{
	static char *const argv[] = { (char *)(uintptr_t) "python3", (char *)(uintptr_t) "-c",
				      (char *)(uintptr_t) "pass", NULL };
	_free_ void *config = calloc(1, CONFIG_SIZE);
	struct py_status st;

	if (!config)
		return err_sys(err, ENOMEM, "interpreter configuration");
	py->api.config_init(config);
	st = py->api.config_set_argv(config, 3, argv);
	if (st.type == 0)
		st = py->api.initialize(config);
	py->api.config_clear(config);
	if (st.type != 0)
		return err_set(err, EIO, "start Python: %s", st.text ? st.text : "it exited");
	return 0;
}

/* sys.path[0] is what the interpreter's main() adds before it runs a command. */
static const char add_path0[] = "import sys\nsys.path.insert(0, '')\n";

static int run_tools(struct python *py, const char *code, struct err *err)
{
	struct py_object *done;

	done = py->api.run_string(code, PY_FILE_INPUT, py->tools, py->tools, NULL);
	if (!done)
		return failed(py, err, "prepare the template interpreter");
	py->api.decref(done);
	return 0;
}

static int make_tools(struct python *py, struct err *err)
{
	py->tools = py->api.dict_new();
	if (!py->tools ||
	    py->api.dict_set(py->tools, "__builtins__", py->api.get_builtins()) < 0)
		return failed(py, err, "namespace of the template interpreter");
	if (run_tools(py, add_path0, err) < 0)
		return err ? -err->code : -EIO;
	return run_tools(py, warm_reset_py, err);
}

static int import_one(struct python *py, struct str name, struct err *err)
{
	char text[MODULE_NAME_MAX];
	struct py_object *module;

	if (name.len == 0)
		return 0;
	if (name.len >= sizeof(text))
		return err_set(err, EINVAL, "preload: name of %zu bytes", name.len);
	memcpy(text, name.data, name.len);
	text[name.len] = '\0';
	module = py->api.import_module(text);
	if (!module) {
		py->api.err_print();
		return err_set(err, ENOENT, "preload: Python cannot import '%s'", text);
	}
	py->api.decref(module);
	return 0;
}

/* Calls a function of the tools with up to four arguments (borrowed). */
static struct py_object *call_tool(struct python *py, const char *name, struct py_object *const a[4])
{
	struct py_object *function = py->api.dict_get(py->tools, name);

	if (!function)
		return NULL;
	return py->api.call(function, a[0], a[1], a[2], a[3], NULL);
}

static int call_plain(struct python *py, const char *name)
{
	struct py_object *none[4] = { NULL };
	struct py_object *result = call_tool(py, name, none);

	if (!result)
		return -EIO;
	py->api.decref(result);
	return 0;
}

int python_start(struct python *py, const char *modules, struct err *err)
{
	struct str rest = str_of(modules), name;
	int r = symbols_load(&py->api, err);

	if (r == 0)
		r = initialize(py, err);
	if (r == 0)
		r = make_tools(py, err);
	while (r == 0 && str_split(&rest, ',', &name))
		r = import_one(py, str_trim(name), err);
	return r < 0 ? r : finish_prepare(py, err);
}

void python_before_fork(struct python *py)
{
	py->api.before_fork();
}

void python_after_fork_parent(struct python *py)
{
	py->api.after_fork_parent();
}

int python_after_fork_child(struct python *py, struct err *err)
{
	py->api.after_fork_child();
	return call_plain(py, "after_fork") < 0 ? failed(py, err, "reseed Python") : 0;
}

static struct py_object *list_of(struct python *py, const char *const *items)
{
	struct py_object *list = py->api.list_new(0);

	for (size_t i = 0; list && items[i]; i++) {
		struct py_object *item = py->api.bytes_new(items[i], (ssize_t)strlen(items[i]));

		if (!item || py->api.list_append(list, item) < 0) {
			py->api.decref(list);
			list = NULL;
		}
		if (item)
			py->api.decref(item);
	}
	return list;
}

static const char *find_env(const char *const *envp, const char *name)
{
	size_t n = strlen(name);

	for (; *envp; envp++)
		if (strncmp(*envp, name, n) == 0 && (*envp)[n] == '=')
			return *envp + n + 1;
	return "";
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

int python_begin(struct python *py, const struct guest_exec *e)
{
	struct py_object *a[4], *done = NULL;
	char **env = make_environ(e);
	int r = -ENOMEM;

	if (!env)
		return r;
	environ = env;
	a[0] = py->api.text_new(e->code);
	a[1] = list_of(py, e->argv);
	a[2] = list_of(py, (const char *const *)env);
	a[3] = py->api.long_new(find_env(e->envp, "PYTHONUNBUFFERED")[0] != '\0');
	if (a[0] && a[1] && a[2] && a[3])
		done = call_tool(py, "begin", a);
	if (done)
		r = py->api.is_true(done) ? finish_begin(py) : -ESTALE;
	else
		py->api.err_print();
	for (int i = 0; i < 4; i++)
		if (a[i])
			py->api.decref(a[i]);
	if (done)
		py->api.decref(done);
	return r;
}

/* From 3.13 on a command's source lines are shown in tracebacks. */
static struct py_object *run_with_source(struct python *py, const char *code, struct py_object *dict,
					 struct py_flags *flags)
{
	struct py_object *a[4] = { NULL }, *kept = NULL, *result;

	a[0] = py->api.compile(code, "<string>", PY_FILE_INPUT, flags, -1);
	if (!a[0])
		return NULL;
	a[1] = py->api.text_new(code);
	if (a[1])
		kept = call_tool(py, "keep_source", a);
	if (kept)
		py->api.decref(kept);
	else
		py->api.err_clear(); /* only the source lines are lost */
	result = py->api.eval_code(a[0], dict, dict);
	py->api.decref(a[0]);
	if (a[1])
		py->api.decref(a[1]);
	return result;
}

static struct py_object *run_code(struct python *py, const char *code, struct py_object *dict)
{
	struct py_flags flags = { PY_IGNORE_COOKIE, py->api.minor };

	if (py->api.minor >= FIRST_WITH_SOURCE)
		return run_with_source(py, code, dict, &flags);
	return py->api.run_string(code, PY_FILE_INPUT, dict, dict, &flags);
}

int python_run(struct python *py, const char *code)
{
	struct py_object *module = py->api.add_module("__main__"); /* borrowed */
	struct py_object *result;
	bool interrupted = false;
	int status;

	result = module ? run_code(py, code, py->api.module_dict(module)) : NULL;
	status = result ? 0 : 1;
	if (result) {
		py->api.decref(result);
	} else {
		interrupted = py->api.err_occurred() == *py->api.keyboard_interrupt;
		if (py->api.err_matches(*py->api.system_exit))
			finish_thaw(py); /* the process ends in the next line */
		py->api.err_print();
	}
	status = finish_run(py, status);
	if (interrupted) {
		(void)signal(SIGINT, SIG_DFL);
		(void)kill(getpid(), SIGINT);
		status = 128 + SIGINT;
	}
	return status;
}

int python_touch(struct python *py, struct err *err)
{
	struct py_object *a[4] = { py->api.long_new(0) }, *done = call_tool(py, "open_streams", a);
	struct py_object *dict = py->api.dict_new(), *result = NULL;

	if (dict && py->api.dict_set(dict, "__builtins__", py->api.get_builtins()) == 0)
		result = py->api.run_string("print(1)", PY_FILE_INPUT, dict, dict, NULL);
	if (!done || !result)
		return failed(py, err, "first run of the template interpreter");
	finish_touch(py);
	py->api.decref(result);
	py->api.decref(done);
	py->api.decref(dict);
	py->api.decref(a[0]);
	return 0;
}
