/* The Pythons of one box: the in-box template, which never runs foreign code, and its children,
 * each of which runs one program and ends. */
#pragma once

struct err;
struct python;

/* Where children say how they end. */
struct worker_ends {
	char *slots; /* WARM_SLOTS pages, shared */
	int fd;      /* owned: for holt-init */
	unsigned next;
};

/* Before the caller is confined. */
int worker_make_ends(struct worker_ends *ret, struct err *err);
/* Serves holt-init on `sock` until it is gone: parks children on demand, the first one at once. The
 * caller is already confined as the template is to be. Ends the process. */
_Noreturn void worker_serve(struct python *py, int sock, struct worker_ends *ends);
