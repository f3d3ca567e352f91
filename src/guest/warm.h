/* Interpreters that wait in the box: a Python forked from the template's, a Node started ahead.
 * Each serves one execution; what ran once is never used again. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#include "guest/spawn.h"
#include "guest/user.h"

struct warm_scratch;

struct warm {
	int python_fd;    /* owned: the in-box Python template's socket, -1: none */
	bool is_foreign;  /* that one has run the template's own code, and is the box's user */
	pid_t python_pid; /* its process; 0: it is gone, or was not started by us */
	int parked_fd;    /* owned: the socket of the Python that waits, -1: none */
	pid_t parked_pid;
	bool is_asked; /* another is on its way: the next word of the template tells of it */
	const struct warm_end *parked_end; /* owned: its page; NULL: none */
	struct user_memory user;           /* who the next request most likely runs as */
	struct warm_scratch
		*scratch;    /* owned: made ahead, so that a request finds its memory at hand */
	struct spawned node; /* the Node that waits: its streams are owned; pid 0: none */
};

void warm_init(struct warm *w);
void warm_done(struct warm *w);
/* Waits until the Python behind python_fd has a parked child (it was forked before holt-init
 * began). */
int warm_adopt_python(struct warm *w, int python_fd, struct err *err);
/* Starts the box's own Python as the box's user, has it import `modules` ("numpy,json") and waits
 * until it has a parked child. lib_fd: what makes a template of it, borrowed. What it imports is
 * the template's, so nothing that it says is believed but what we can see. -ENOPKG: it cannot
 * import them. */
int warm_start_python(struct warm *w, int lib_fd, const char *modules, struct err *err);
/* Starts Node with the bootstrap as the box's user, has it require `modules` ("": none) and waits
 * until it is ready; -ENOENT: no node, -ENOPKG as above. It and what it starts carry `mark`. */
int warm_start_node(struct warm *w, uint64_t mark, const char *modules, struct err *err);
/* What foreign code has said, fit to be shown: at most WHY_MAX bytes of plain ASCII. In place. */
const char *warm_plain(char *text);
/* The template's child is somebody else already: nothing comes from there any more. */
void warm_distrust(struct warm *w);
/* Hands an EXEC_PYTHON or EXEC_NODE over. -ENOENT when none waits or it cannot serve this request
 * (a PTY, another user): the caller then starts the interpreter cold. Where no Python waits, one is
 * forked from the in-box template and waited for: warm_park() does so ahead. ret->mark comes in as
 * the mark that the interpreter is to take (GUEST_MARK_SUM) before it runs the code, and goes out
 * as the one it carries: a waiting Node was given its own when it was started. */
int warm_take(struct warm *w, const struct guest_exec *e, struct spawned *ret, struct err *err);
/* Whether an interpreter that was started with the one value could have been with this one: further
 * places to look in behind those that it had change nothing about it. */
bool warm_is_value(const char *value, const char *started_with);
/* Whether a Python could wait and none does; and asks for one, without waiting for it. */
bool warm_lacks_python(const struct warm *w);
void warm_park(struct warm *w);
/* Whether a process has said that it ends, and then its wait status and what it used. */
bool warm_has_ended(const struct warm_end *end, pid_t pid, int *ret_status,
		    struct rusage *ret_used);
void warm_end_free(const struct warm_end *end); /* takes NULL */
/* A reaped pid that was a waiting interpreter: forget it. */
void warm_reaped(struct warm *w, pid_t pid);
