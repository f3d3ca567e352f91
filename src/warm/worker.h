/* The Pythons of one box: the in-box template, which never runs foreign code, and its children,
 * each of which runs one program and ends. */
#pragma once

struct python;

/* Serves holt-init on `sock` until it is gone: parks children on demand, the first one at once. The
 * caller is already confined as the template is to be. Ends the process. */
_Noreturn void worker_serve(struct python *py, int sock);
