/* The process that becomes a template interpreter: confined before it runs a byte of Python. */
#pragma once

#include <stdbool.h>

#include "launch/box.h"

struct zygote_child {
	int sock;         /* to the launcher */
	int lib_fd;       /* holt-warm.so */
	int mount_ns;     /* the template's */
	bool on_host_net; /* else in a new and empty one */
	const char *preload;
	struct box_plan plan; /* limits and filter; uid_base is who it runs as */
};

/* In a fork of the launcher. */
_Noreturn void zygote_child_run(const struct zygote_child *how);
