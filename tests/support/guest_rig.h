/* A guest in a process of its own, without a box around it, and the client's side of its socket. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "spec/guest.h"

struct guest_rig {
	pid_t pid;
	int sock;                      /* -1 after rig_hang_up() */
	char path[64];                 /* of the listening socket, with rig_persist() */
	uint8_t frame[WIRE_FRAME_MAX]; /* of the last rig_recv() */
};

/* What came for one id until its last frame. */
struct rig_result {
	struct buf out, err;
	struct guest_exit exit; /* with is_exit */
	bool is_exit;
	int code; /* of a G_ERROR */
	char text[256];
	uint32_t pid;
	uint64_t taken;
	uint64_t entries, done;
	unsigned ends; /* last frames seen; one is right */
};

/* Starts it and has seen its G_READY. */
void rig_start(struct guest_rig *rig);
/* The same, but its n-th allocation fails, once; 0: none does. */
void rig_start_faulty(struct guest_rig *rig, size_t n);
/* The same as PID 1 of a pid namespace; false where the machine allows none. */
bool rig_start_boxed(struct guest_rig *rig);
/* Hangs up, waits for its end, and checks that it ended well (0) or as told (status). */
void rig_stop(struct guest_rig *rig, int want_status);

/* From now on the guest outlives its connections; rig_end() and not rig_stop() ends it. */
void rig_persist(struct guest_rig *rig);
void rig_hang_up(struct guest_rig *rig);
int rig_dial(const struct guest_rig *rig); /* one more connection, of the caller */
/* Connects, and has seen its G_READY. */
void rig_connect(struct guest_rig *rig, struct guest_ready *ret);
/* The next frame, which must be a G_LIVE. */
void rig_expect_live(struct guest_rig *rig, struct guest_live *ret);
/* Ends all executions and then the guest, which must have lived until now. */
void rig_end(struct guest_rig *rig);

/* A request with argv (NULL-terminated) and an empty environment. */
struct guest_exec rig_command(const char *const *argv);
void rig_exec(struct guest_rig *rig, uint32_t id, const struct guest_exec *e);
void rig_raw(struct guest_rig *rig, uint16_t type, uint32_t id, const void *data, size_t n);
void rig_u64(struct guest_rig *rig, uint16_t type, uint32_t id, uint64_t v);
void rig_signal(struct guest_rig *rig, uint32_t id, uint32_t signo, bool is_tree);
/* The next frame, within ten seconds; false at the end of the socket. */
bool rig_recv(struct guest_rig *rig, struct wire_head *head, struct rd *payload);
/* True when nothing comes within this time. */
bool rig_is_quiet(struct guest_rig *rig, int ms);
/* Takes frames of this id, crediting output when told, until its last one. */
void rig_collect(struct guest_rig *rig, uint32_t id, bool do_credit, struct rig_result *ret);
/* One frame into the result; true when it was the last of the id. */
bool rig_take(struct guest_rig *rig, uint32_t id, const struct wire_head *head, struct rd *payload,
	      bool do_credit, struct rig_result *ret);
void rig_file(struct guest_rig *rig, uint32_t id, const struct guest_file *f);
void rig_result_done(struct rig_result *r);
struct guest_exec rig_script(const char *script); /* /bin/sh -c script */
/* Runs it and takes all it gives. */
void rig_run(struct guest_rig *rig, uint32_t id, const struct guest_exec *e,
	     struct rig_result *ret);
void rig_shell(struct guest_rig *rig, uint32_t id, const char *script, struct rig_result *ret);
