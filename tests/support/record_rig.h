/* What a client of a persistent guest records of one execution, whatever connections that takes. */
#pragma once

#include "base/buf.h"
#include "guest_rig.h"
#include "spec/guest.h"

struct record {
	struct buf stream[2];
	struct guest_exit exit;
	unsigned exits;
	uint64_t uncredited; /* of this connection */
	uint32_t pid;
};

void record_done(struct record *r);
/* /bin/sh -c script with EXEC_KEEP. */
struct guest_exec record_script(const char *script, const char *tag);
/* One frame of the id, which must be the next; true when it was its end. Output goes on where the
 * record ends, or repeats what it has. */
bool record_frame(struct guest_rig *rig, uint32_t id, struct record *r);
void record_credit(struct guest_rig *rig, uint32_t id, struct record *r, uint64_t n);
/* To its end, crediting everything. */
void record_all(struct guest_rig *rig, uint32_t id, struct record *r);
/* A new connection, on which nothing but this execution is told. */
void record_connect(struct guest_rig *rig, uint32_t id, struct record *r, struct guest_live *ret);

/* A new connection, on which nothing is told. */
void rig_expect_nothing(struct guest_rig *rig);
/* The connection ends with an error of id 0. */
void rig_expect_refusal(struct guest_rig *rig);
bool rig_is_running(uint32_t pid); /* a zombie does not */
bool rig_dies_soon(uint32_t pid);
