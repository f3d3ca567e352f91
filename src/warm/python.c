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
#include "spec/warm.h"
#include "warm/begin.h"
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

/* As `python3 -c pass`: the interpreter parses the arguments and reads the environment by itself.
 */
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

static int make_tools(struct python *py, struct err *err)
{
	struct py_object *done;

	py->tools = py->api.dict_new();
	if (!py->tools || py->api.dict_set(py->tools, "__builtins__", py->api.get_builtins()) < 0)
		return failed(py, err, "namespace of the template interpreter");
	done = py->api.run_string(warm_reset_py, PY_FILE_INPUT, py->tools, py->tools, NULL);
	if (!done)
		return failed(py, err, "prepare the template interpreter");
	py->api.decref(done);
	return 0;
}

static int import_one(struct python *py, struct str name, struct err *err)
{
	char text[MODULE_NAME_MAX];
	struct py_object *arg, *why = NULL;
	const char *said;
	int r = 0;

	if (name.len == 0)
		return 0;
	if (name.len >= sizeof(text))
		return err_set(err, EINVAL, "preload: name of %zu bytes", name.len);
	memcpy(text, name.data, name.len);
	text[name.len] = '\0';
	arg = py->api.text_new(text);
	why = arg ? python_call(py, "load", arg, NULL) : NULL;
	if (arg)
		py->api.decref(arg);
	said = why && why != py->api.none ? py->api.text_get(why) : "";
	if (why != py->api.none)
		r = err_set(err, ENOPKG, "preload: Python cannot import '%.100s': %s", text,
			    said ? said : "");
	if (py->api.err_occurred())
		py->api.err_clear();
	if (why)
		py->api.decref(why);
	return r;
}

struct py_object *python_call(struct python *py, const char *name, struct py_object *a,
			      struct py_object *b)
{
	struct py_object *function = py->api.dict_get(py->tools, name);

	return function ? py->api.call(function, a, b, NULL) : NULL;
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
	if (r == 0)
		r = begin_prepare(py, err);
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
	struct py_object *done;

	py->api.after_fork_child();
	done = python_call(py, "after_fork", NULL, NULL);
	if (!done)
		return failed(py, err, "reseed Python");
	py->api.decref(done);
	return 0;
}

/* From 3.13 on a command's source lines are shown in tracebacks. */
static struct py_object *run_with_source(struct python *py, const char *code,
					 struct py_object *dict, struct py_flags *flags)
{
	struct py_object *compiled = py->api.compile(code, "<string>", PY_FILE_INPUT, flags, -1);
	struct py_object *text = py->api.text_new(code), *kept = NULL, *result = NULL;

	if (compiled && text)
		kept = python_call(py, "keep_source", compiled, text);
	if (compiled && !kept)
		py->api.err_clear(); /* only the source lines are lost */
	if (compiled) {
		result = py->api.eval_code(compiled, dict, dict);
		py->api.decref(compiled);
	}
	if (text)
		py->api.decref(text);
	if (kept)
		py->api.decref(kept);
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
	status = finish_run(py, status, interrupted);
	if (interrupted) {
		(void)signal(SIGINT, SIG_DFL);
		(void)kill(getpid(), SIGINT);
		status = 128 + SIGINT;
	}
	return status;
}

/* The whole way of a run, but for its end: whatever it writes to is written to here already. */
int python_touch(struct python *py, struct err *err)
{
	struct guest_exec *e = calloc(1, sizeof(*e));
	struct py_object *dict = py->api.dict_new(), *result = NULL;
	int r = e && dict ? begin_make_streams(py, err) : -ENOMEM;

	if (r == 0 && py->api.dict_set(dict, "__builtins__", py->api.get_builtins()) == 0) {
		e->code = "print(1)";
		e->envp[e->envc++] = "PATH=" WARM_PATH;
		e->envp[e->envc++] = "HOME=" WARM_HOME;
		e->envp[e->envc++] = "LANG=" WARM_LANG;
		r = begin_run(py, e);
		if (r == -ESTALE)
			_exit(1); /* no copy will do in this box any more: holt-init starts fresh
				     ones */
		result = py->api.run_string(e->code, PY_FILE_INPUT, dict, dict, NULL);
	}
	if (r < 0 || !result)
		return failed(py, err, "first run of the template interpreter");
	finish_touch(py);
	py->api.decref(result);
	py->api.decref(dict);
	free(e);
	return begin_make_streams(py, err);
}
