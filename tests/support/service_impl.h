/* The inside of service_fake.h, shared by its files. */
#pragma once

#include "loop/loop.h"
#include "service_fake.h"

struct sandbox {
	struct list node;
	struct sandboxes *all;
	char id[ID_LEN + 1], owner[64], name[64], template[32];
	enum sandbox_state state;
	bool is_existing;
	struct sandbox_pair pairs[4]; /* owned texts */
	size_t n_pairs;
	uint64_t timeout_ms;
	int64_t created_ms;
};

/* Calls back from the loop. */
struct service_call {
	struct loop_task task;
	void (*run)(struct service_call *c);
	struct sandboxes *all;
	struct sandbox *sb;
	struct execution *x;
	union {
		sandbox_cb sandbox;
		exec_cb exec;
		void (*info)(void *user, const struct sandbox_info *info, const struct err *err);
		void (*list)(void *user, const struct sandbox_info *infos, size_t n, bool more,
			     const struct err *err);
		void (*pool)(void *user, const struct pool_state *s, const struct err *err);
		void (*exec_info)(void *user, const struct exec_info *info,
				  const struct output *output, const struct err *err);
		void (*exec_list)(void *user, const struct exec_info *infos, size_t n, bool more,
				  const struct err *err);
	} cb;
	void *user;
	struct err err;
};

/* NULL when the test wants the call to fail: err is then filled. */
struct service_call *service_call(struct sandboxes *all, void (*run)(struct service_call *c),
				  void *user);
const struct err *service_err(const struct service_call *c);
void service_execs_done(struct sandboxes *s);
void service_files_done(struct sandboxes *s);
