/* User ids outside: each box of a privileged launcher owns a range nobody else has. The ranges lie
 * where systemd's map of ids leaves a hole, and are shared between launchers by locking bytes of
 * one file: a launcher that dies gives its ranges back.
 *
 * Where boxes outlive their launcher, the lock does not say it all. Such a launcher also writes a
 * mark for each chunk of ranges that it takes. A chunk with another instance's mark is left alone
 * as long as a process with one of its ids lives; marks of an earlier boot mean nothing. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/id.h"

struct err;

#define IDS_FIRST 0x70000000u
#define IDS_CHUNK 256u  /* ranges locked at a time */
#define IDS_CHUNKS 248u /* what is left of the hole is for files: LAYER_BASE, in disk.h */

struct ids {
	int lock_fd;               /* owned */
	int proc_fd;               /* borrowed: the machine's /proc */
	char instance[ID_LEN + 1]; /* "": nothing outlives us */
	uint64_t boot;             /* which boot of the machine this is */
	uint32_t pid_ns;           /* whose processes we see */
	uint8_t held[IDS_CHUNKS / 8];
	uint8_t foreign[IDS_CHUNKS / 8]; /* marked, and in use when we last looked */
	uint8_t used[IDS_CHUNKS * IDS_CHUNK / 8];
};

struct ids_options {
	const char *dir; /* of the file; NULL: /run/holt */
	int proc_fd;
	const char *instance; /* of boxes that outlive us; NULL: none do */
};

int ids_init(struct ids *ids, const struct ids_options *o, struct err *err);
/* Takes the marks off chunks of which nothing is in use. */
void ids_done(struct ids *ids);
/* First id of a free range of BOX_ID_COUNT. */
int ids_take(struct ids *ids, uint32_t *ret_base, struct err *err);
void ids_give(struct ids *ids, uint32_t base);
bool ids_is_base(uint32_t base); /* the first id of a range? */
/* The range of a box that lives already. -EBUSY when it is another's, also of ours. */
int ids_retake(struct ids *ids, uint32_t base, struct err *err);
