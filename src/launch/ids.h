/* User ids outside: each box of a privileged launcher owns a range nobody else has. The ranges lie
 * where systemd's map of ids leaves a hole, and are shared between launchers by locking bytes of
 * one file: a launcher that dies gives its ranges back. */
#pragma once

#include <stdint.h>

struct err;

#define IDS_FIRST 0x70000000u
#define IDS_CHUNK 256u /* ranges locked at a time */
#define IDS_CHUNKS 256u

struct ids {
	int lock_fd; /* owned */
	uint8_t held[IDS_CHUNKS / 8];
	uint8_t used[IDS_CHUNKS * IDS_CHUNK / 8];
};

int ids_init(struct ids *ids, struct err *err);
void ids_done(struct ids *ids);
/* First id of a free range of BOX_ID_COUNT. */
int ids_take(struct ids *ids, uint32_t *ret_base, struct err *err);
void ids_give(struct ids *ids, uint32_t base);
