#include "warm/finish.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/err.h"
#include "base/str.h"
#include "spec/warm.h"
#include "warm/python.h"

#define FIRST_WITH_SLOTS 10   /* before, PyType_GetSlot() knew no built-in types */
#define EXIT_FLUSH_FAILED 120 /* what the interpreter says when its end fails */

/* A module is taken from sys.modules again when the template did not ask for it: a bare interpreter
 * has not imported it either. */
static struct py_object *borrow_module(struct python *py, const char *name)
{
	struct py_object *modules = py->api.get_module_dict();
	bool was_there = py->api.dict_get(modules, name) != NULL;
	struct py_object *module = py->api.import_module(name);

	if (module && !was_there && py->api.dict_del(modules, name) < 0)
		py->api.err_clear();
	return module;
}

/* What must be as it was in the template when nothing is left to be done: exit callbacks, threads,
 * somebody who watches every call. */
static const struct {
	const char *module, *function;
} probes[PYTHON_PROBES] = {
	{ "atexit", "_ncallbacks" },
	{ "_thread", "_count" },
	{ "sys", "gettrace" },
	{ "sys", "getprofile" },
};

static struct py_object *borrow_function(struct python *py, const char *module, const char *name)
{
	struct py_object *m = borrow_module(py, module);
	struct py_object *function = m ? py->api.get_attr(m, name) : NULL;

	if (m)
		py->api.decref(m);
	return function;
}

static int call_and_drop(struct python *py, struct py_object *function)
{
	struct py_object *result = function ? py->api.call(function, NULL) : NULL;

	if (!result)
		return -1;
	py->api.decref(result);
	return 0;
}

/* A number, 0 for None, -1 for anything else. */
static long probe(struct python *py, size_t i)
{
	struct py_object *result = py->api.call(py->probes[i], NULL);
	long v = -1;

	if (result == py->api.none)
		v = 0;
	else if (result)
		v = py->api.long_get(result);
	if (result)
		py->api.decref(result);
	if (py->api.err_occurred())
		py->api.err_clear();
	return v;
}

int finish_prepare(struct python *py, struct err *err)
{
	struct py_object *collect = borrow_function(py, "gc", "collect");
	bool complete;

	py->freeze = borrow_function(py, "gc", "freeze");
	py->unfreeze = borrow_function(py, "gc", "unfreeze");
	py->get_objects = borrow_function(py, "gc", "get_objects");
	py->run_exits = borrow_function(py, "atexit", "_run_exitfuncs");
	complete = collect && py->freeze && py->unfreeze && py->get_objects && py->run_exits;
	for (size_t i = 0; i < PYTHON_PROBES && complete; i++) {
		py->probes[i] = borrow_function(py, probes[i].module, probes[i].function);
		complete = py->probes[i] != NULL;
	}
	for (size_t i = 0; i < PYTHON_PROBES && complete; i++)
		py->baseline[i] = probe(py, i);
	if (!complete || call_and_drop(py, collect) < 0 || call_and_drop(py, py->freeze) < 0) {
		py->api.err_print();
		return err_set(err, EIO, "prepare the end of Python");
	}
	py->api.decref(collect);
	return 0;
}

int finish_begin(struct python *py)
{
	py->out = py->api.sys_get("stdout");
	py->err = py->api.sys_get("stderr");
	return call_and_drop(py, py->freeze);
}

static bool has_finalizer(struct python *py, struct py_object *type)
{
	return py->api.type_slot(type, PY_SLOT_FINALIZE) || py->api.type_slot(type, PY_SLOT_DEL);
}

/* An extension module may have registered an end of its own that only the interpreter knows. */
static bool is_extension(struct python *py, struct py_object *module)
{
	struct py_object *dict = py->api.module_dict(module);
	struct py_object *file = dict ? py->api.dict_get(dict, "__file__") : NULL;
	const char *path = file ? py->api.text_get(file) : "";

	if (!path) {
		py->api.err_clear();
		return true;
	}
	return str_ends(str_of(path), ".so");
}

/* Of everything that the run made and that is still alive. */
static bool is_harmless(struct python *py, struct py_object *o, struct py_object *type)
{
	if (py->api.type_is_subtype(type, py->api.module_type))
		return !is_extension(py, o);
	if (py->api.type_is_subtype(type, py->api.type_type))
		return !has_finalizer(py, o);
	return true;
}

static bool are_objects_harmless(struct python *py)
{
	struct py_object *list = py->api.call(py->get_objects, NULL), *last = NULL;
	bool harmless = list != NULL;
	ssize_t n = list ? py->api.list_size(list) : 0;

	for (ssize_t i = 0; i < n && harmless; i++) {
		struct py_object *o = py->api.list_get(list, i);
		struct py_object *type = py->api.type_of(o);

		if (type != last)
			harmless = !has_finalizer(py, type);
		last = type;
		harmless = harmless && is_harmless(py, o, type);
		py->api.decref(type);
	}
	if (list)
		py->api.decref(list);
	return harmless;
}

static bool flush(struct python *py, struct py_object *stream)
{
	struct py_object *function;
	bool done;

	if (stream == py->api.none)
		return true;
	function = py->api.get_attr(stream, "flush");
	done = call_and_drop(py, function) == 0;
	if (function)
		py->api.decref(function);
	if (!done)
		py->api.err_clear(); /* the interpreter's own end meets it again and says it */
	return done;
}

/* Nothing is left that anybody could notice the end of; what was written is out. */
static bool is_over(struct python *py)
{
	struct py_object *out = py->api.sys_get("stdout"), *err = py->api.sys_get("stderr");

	if (py->api.minor < FIRST_WITH_SLOTS || !out || !err || out != py->out || err != py->err)
		return false;
	/* First what was written, so that it is on its way while the rest is looked at. */
	if (!flush(py, out) || !flush(py, err))
		return false;
	for (size_t i = 0; i < PYTHON_PROBES; i++)
		if (probe(py, i) != py->baseline[i])
			return false;
	return are_objects_harmless(py);
}

/* What the template's own modules want to have done at the end. */
static bool run_exits(struct python *py)
{
	py->baseline[0] = 0;
	if (call_and_drop(py, py->run_exits) == 0)
		return true;
	py->api.err_clear();
	return false;
}

void finish_thaw(struct python *py)
{
	struct py_object *type, *value, *traceback;

	py->api.err_fetch(&type, &value, &traceback);
	if (call_and_drop(py, py->unfreeze) < 0)
		py->api.err_clear();
	py->api.err_restore(type, value, traceback);
}

static uint64_t to_us(struct timeval a, struct timeval b)
{
	return (uint64_t)(a.tv_sec + b.tv_sec) * 1000000 + (uint64_t)(a.tv_usec + b.tv_usec);
}

/* What wait4() would tell, to those who need not wait for it. */
static void say_end(struct python *py, int status)
{
	struct warm_end *end = py->end;
	struct rusage own, children;

	if (!end || getrusage(RUSAGE_SELF, &own) < 0 || getrusage(RUSAGE_CHILDREN, &children) < 0)
		return;
	end->pid = getpid();
	end->code = (uint32_t)status & 0xff;
	end->user_us = to_us(own.ru_utime, children.ru_utime);
	end->sys_us = to_us(own.ru_stime, children.ru_stime);
	end->max_rss_kb =
		(uint64_t)(own.ru_maxrss > children.ru_maxrss ? own.ru_maxrss : children.ru_maxrss);
	__atomic_store_n(&end->is_said, 1, __ATOMIC_RELEASE);
	(void)close_range(0, ~0u, 0);
}

int finish_run(struct python *py, int status, bool is_interrupted)
{
	if (is_over(py) && (py->baseline[0] == 0 || (run_exits(py) && is_over(py)))) {
		/* Libraries take themselves apart at exit(), too; those here are the template's. */
		(void)fflush(NULL);
		if (is_interrupted)
			return status;
		say_end(py, status);
		_exit(status);
	}
	finish_thaw(py);
	return py->api.finalize() < 0 ? EXIT_FLUSH_FAILED : status;
}

void finish_touch(struct python *py)
{
	(void)is_over(py);
}
