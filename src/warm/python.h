/* A Python inside this process: started as `python3 -c` would be, forked, given one program to run.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "warm/symbols.h"

struct guest_exec;
struct warm_end;

#define PYTHON_PROBES 4
#define FIRST_WITH_ORIG_ARGV 10

/* Streams as they are for pipes; standard input also as it is for /dev/null. */
enum python_stream { STREAM_IN, STREAM_OUT, STREAM_ERR, STREAM_NO_IN, PYTHON_STREAMS };

struct python {
	struct symbols api;
	struct py_object *tools;                   /* owned: the namespace of reset.py */
	struct py_object *freeze, *unfreeze;       /* owned: of gc */
	struct py_object *get_objects;             /* owned: of gc */
	struct py_object *run_exits;               /* owned: atexit._run_exitfuncs */
	struct py_object *probes[PYTHON_PROBES];   /* owned: see finish.c */
	long baseline[PYTHON_PROBES];              /* what they answer in the template */
	struct py_object *out, *err;               /* not held: the streams as they were made */
	struct py_object *streams[PYTHON_STREAMS]; /* owned: made ahead; NULL once used */
	struct warm_end *end;                      /* where a child says how it ends */
	const char *user_site;          /* the user's own packages; "" when not looked at */
	struct timespec user_site_time; /* when that directory last changed; 0: it was not there */
	bool has_clock;                 /* a module of the template keeps its start time */
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
/* Calls a function of reset.py with up to two arguments (borrowed, NULL from the first that is not
 * there); NULL with the interpreter's error set. */
struct py_object *python_call(struct python *py, const char *name, struct py_object *a,
			      struct py_object *b);
/* Runs the code in __main__ and ends the interpreter: the exit code of the process. */
int python_run(struct python *py, const char *code);
