/* What the machine has and what of it is in use: the numbers that ceilings and admission are made
 * of. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct machine {
	uint64_t memory_bytes; /* as far as our own control group may use it */
	uint32_t cpus;         /* that we may run on */
	uint32_t processes;    /* processes and threads that can exist at once */
};

/* What cannot be read is told as its largest value: then nothing is derived from it. */
void machine_read(struct machine *ret);

/* Bytes that stay the machine's own, whatever sandboxes ask for: a tenth, from 128 MiB to 4 GiB. */
uint64_t machine_reserve(const struct machine *m);

struct machine_use {
	uint64_t memory_left; /* bytes that can be used without swapping */
	uint32_t processes;   /* that there are */
};

/* Files that are read again and again; opened once, because a confined process may not be able to
 * open them later. -1: not there. */
struct machine_gauge {
	int meminfo, loadavg;
};

struct machine_gauge machine_gauge_open(void);
void machine_gauge_close(struct machine_gauge *g);
/* False: what is in use cannot be read. */
bool machine_gauge_read(const struct machine_gauge *g, struct machine_use *ret);

/* ---- for tests: the texts of /proc ---- */

/* The number behind "NAME:" of /proc/meminfo, in bytes; false: there is none. */
bool machine_parse_meminfo(const char *text, const char *name, uint64_t *ret);
/* The threads of all the machine in /proc/loadavg: the number behind the slash. */
bool machine_parse_loadavg(const char *text, uint32_t *ret);
