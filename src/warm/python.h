/* A Python inside this process: started as `python3 -c` would be, forked, given one program to run. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "warm/symbols.h"

struct guest_exec;

#define PYTHON_PROBES 4

struct python {
	struct symbols api;
	struct py_object *tools;                 /* owned: the namespace of reset.py */
	struct py_object *freeze, *unfreeze;     /* owned: of gc */
	struct py_object *get_objects;           /* owned: of gc */
	struct py_object *run_exits;             /* owned: atexit._run_exitfuncs */
	struct py_object *probes[PYTHON_PROBES]; /* owned: see finish.c */
	long baseline[PYTHON_PROBES];            /* what they answer in the template */
	struct py_object *out, *err;             /* not held: the streams as they were made */
};

/* Starts the interpreter and imports `modules` ("numpy,json"); one that cannot be imported is an
 * error that names it. */
int python_start(struct python *py, const char *modules, struct err *err);
/* Around a fork() of a process whose child is going to run Python. */
void python_before_fork(struct python *py);
void python_after_fork_parent(struct python *py);
int python_after_fork_child(struct python *py, struct err *err);
/* Runs a trifle into /dev/null: the pages that every run writes to are then the child's own. */
int python_touch(struct python *py, struct err *err);
/* Makes arguments, environment and streams those of `e`. 0, -ESTALE when only a new interpreter can
 * serve it. The strings of `e` must live as long as the process. */
int python_begin(struct python *py, const struct guest_exec *e);
/* Runs the code in __main__ and ends the interpreter: the exit code of the process. */
int python_run(struct python *py, const char *code);
