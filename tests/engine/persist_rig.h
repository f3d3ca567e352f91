/* A state directory, launchers that come and go with it, and what is left on the machine. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "provider/guest_client.h"
#include "provider/launcher.h"

#define HOST 1u /* template ids */
#define PYTHON 2u
#define BOXES_MAX 64

struct rig {
	const char *cgroup; /* --cgroup of every launcher */
	struct launcher *launcher;
	struct err err;
	char dir[32];
	int dir_fd;
	char instance[ID_LEN + 1];
};

struct held {
	struct launcher_box box;
	struct guest_client *guest;
};

/* A directory and a launcher; false: this machine does not have that kind of control groups. */
bool rig_open(struct rig *r, const char *cgroup);
/* Nothing of any box may be left: processes, groups, files. */
void rig_close(struct rig *r);

bool rig_is_on_disk(void); /* what boxes write */
/* RIG_SKIP, and why is said: this machine has not what that takes. Else 0. */
int rig_check_disk(void);
#define RIG_SKIP 77            /* an exit status that says: skipped */
void rig_start(struct rig *r); /* with the template HOST */
void rig_kill(struct rig *r);  /* as the kernel would: no chance to clear up */
void rig_stop(struct rig *r);  /* as a client that goes */

void rig_claim(struct rig *r, const struct launch_spec *spec, struct held *ret);
void rig_attach(struct rig *r, const char *id, struct held *ret);
/* Our ends of it; the box lives on. */
void rig_drop(struct held *h);
void rig_destroy(struct rig *r, const char *id);
/* Runs a shell line in the box; that must be its output. */
void rig_expect(struct rig *r, struct held *h, const char *line, const char *output);
void rig_run(struct rig *r, struct held *h, const struct guest_exec *e, const char *output);

struct listed {
	char id[ID_LEN + 1], tag[TAG_MAX + 1];
	struct launch_box_info info; /* its strings are not valid */
};
size_t rig_list(struct rig *r, struct listed ret[BOXES_MAX]);
/* The only one. */
struct listed rig_only(struct rig *r);

bool rig_is_alive(pid_t pid);
bool rig_has(const struct rig *r, const char *name); /* in the directory? */
void rig_put(const struct rig *r, const char *name, const void *data, size_t n);
/* Names in the directory that belong to boxes. */
int rig_count_disk(const struct rig *r); /* layers and volumes, half-made ones too */
int rig_count_files(const struct rig *r);
/* First processes of boxes in control groups of the instance. */
size_t rig_boxes(const struct rig *r, pid_t *ret, size_t max);
bool rig_has_cgroups(const struct rig *r);
uint32_t rig_uid_of(pid_t pid); /* outside */
/* Moves the caller into control groups of its own, or removes these once it has ended. */
void rig_enter_groups(pid_t pid);
void rig_remove_groups(pid_t pid);

/* What must happen, however slow the machine is. */
#define UNTIL(cond)                                                      \
	do {                                                             \
		bool is_ = (cond);                                       \
		for (int i_ = 0; !is_ && i_ < 10000; i_++, is_ = (cond)) \
			(void)usleep(1000);                              \
		assert_true(is_);                                        \
	} while (0)
