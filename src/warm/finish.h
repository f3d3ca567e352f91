/* The end of an interpreter. Python takes itself apart object by object at its end, which in a
 * forked process copies most of the template's memory first. Where nothing that can be observed
 * would happen on the way (no finalizer, thread, exit callback or extension module of the run's own
 * is left), the streams are flushed and the process ends; in every other case the interpreter's own
 * way is taken. */
#pragma once

#include <stdbool.h>

struct err;
struct python;

/* In the template, after its imports: moves all objects out of the garbage collector's sight. */
int finish_prepare(struct python *py, struct err *err);
/* In a child, before its program runs: from here on what is new is the program's. */
int finish_begin(struct python *py);
/* Before the interpreter takes itself apart: what the garbage collector does not see would stay. */
void finish_thaw(struct python *py);
/* Ends the interpreter: the exit code, `status` unless the end itself fails. On the short way it
 * ends the process as well, unless that is to die of an interrupt. */
int finish_run(struct python *py, int status, bool is_interrupted);
/* Goes the short way without ending, to have its memory at hand. */
void finish_touch(struct python *py);
