/* A template Python outside any box: python3 with holt-warm.so preloaded, as the in-box template.
 */
#pragma once

#include <sys/types.h>

struct python_rig {
	pid_t pid; /* of the template; 0: none */
	int sock;  /* what holt-init would have on its Python descriptor; owned until taken */
};

/* -ENOENT when the machine has no /usr/bin/python3 or the object was not built. */
int python_rig_start(struct python_rig *rig, const char *program, const char *modules);
void python_rig_stop(struct python_rig *rig);
