/* Servers on a process's standard input and output: a line is a message. In a sandbox of its own
 * (stdio_box.c), or on this machine (stdio_host.c). Both are transports of mcpc.h.
 *
 * The end of one is gentle and bounded: its input is closed, then it is asked, then killed with all
 * that it started. That takes a while, so what is ending is kept in a yard. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "mcpc/mcpc.h"
#include "mcpc/stdio_spawn.h"
#include "sandbox/volume.h"
#include "spec/launch.h"
#include "json/jv_decode.h"

struct loop;
struct sandbox;
struct sandbox_pair;
struct sandboxes;

#define STDIO_GRACE_MS 2000u /* between one step of the end and the next, unless said */
#define STDIO_JUNK_MAX 1000u /* lines that are no JSON, before the server is given up */
#define STDIO_OUT_MAX (MCPC_MESSAGE_MAX + (1u << 20)) /* bytes that wait to be taken */

struct stdio_network {           /* what a sandbox may reach; zeroed: nothing */
	bool is_open;            /* all that the operator's settings let out */
	struct jv_strings allow; /* or these names, addresses and networks */
};

struct stdio_way { /* who leads out of a sandbox; zeroed: nobody */
	/* ready() comes once, at once or later, with the variables that lead programs there; none:
	 * there is no way. */
	void (*open)(void *self, struct sandbox *sb, const struct stdio_network *wish,
		     void (*ready)(void *user, const struct sandbox_pair *env, size_t n),
		     void *user);
	void *self;
};

struct stdio_yard {
	struct loop *loop;
	struct sandboxes *sandboxes; /* NULL: nothing in a sandbox can be opened */
	uint64_t life_ms;            /* that a sandbox is given, again and again; 0: a day */
	uint64_t grace_ms;           /* 0: STDIO_GRACE_MS */
	struct stdio_way way;
	struct stdio_spawner spawner; /* of programs of this machine */
	struct list all;              /* struct stdio: those that live or are ending */
	void (*empty)(void *user);    /* NULL, or: called once when the last has ended */
	void *user;
};

void stdio_yard_init(struct stdio_yard *y, struct loop *loop, struct sandboxes *sandboxes);
/* Ends what is left, at once. The loop does not run any more. */
void stdio_yard_done(struct stdio_yard *y);

struct stdio_spec {       /* copied */
	const char *name; /* of the server: for messages */
	const char *const *argv;
	size_t argc;
	struct jv_pairs env; /* values are never logged */
	const char *cwd;     /* "": the sandbox's own, or / on this machine */
	/* Of a sandbox: */
	const char *owner, *template; /* "": the default */
	const char *snapshot;         /* instead of a template; "": none */
	struct limits limits;         /* 0: the template's */
	struct volume_mounts volumes; /* by name */
	struct stdio_network network;
};

/* EINVAL, ENOENT (no such program or directory), EACCES, EMFILE ... */
int stdio_host_open(struct stdio_yard *y, const struct stdio_spec *spec,
		    struct mcpc_transport **ret, struct err *err);
/* The sandbox is made meanwhile; what goes wrong with it is told as lost(). */
int stdio_box_open(struct stdio_yard *y, const struct stdio_spec *spec, struct mcpc_transport **ret,
		   struct err *err);
