/* A Node that was started ahead and waits for its program (node_bootstrap.js is what it runs). */
#pragma once

struct err;
struct guest_exec;
struct spawned;
struct user;
struct warm;

/* As warm_take(), with the environment complete. */
int node_take(struct warm *w, const struct guest_exec *e, const struct user *u, struct spawned *ret,
	      struct err *err);
