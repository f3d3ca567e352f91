/* What a box can learn about the machine and about those who use it. */
#include <stdio.h>

#include "attack.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define PLAIN(name, probe)                     \
	{                                      \
		name, probe, 0, 0, { 0 }, NULL \
	}

static const struct attack rows[] = {
	{ "L1 no readable file holds a secret, name or number of the machine",
	  "leak-search @secrets",
	  0,
	  60000,
	  { .cpu_milli = 2000 },
	  NULL },
	{ "L1 nor does one that only the box's root can read",
	  "leak-search @secrets",
	  AS_ROOT,
	  60000,
	  { .cpu_milli = 2000 },
	  NULL },
	PLAIN("L2 the environment is the box's own", "environment"),
	PLAIN("L3 host and domain are the box's own", "names"),
	PLAIN("L4 only the box's own processes are seen", "processes"),
	PLAIN("L5 mounts show no path of the machine", "mounts-seen"),
	PLAIN("L6 only the box's own accounts are listed", "accounts"),
	PLAIN("L7 files about the machine are not there", "etc-files"),
	PLAIN("L8 counters of the whole machine cannot be read", "counters"),
	{ "L8 counters of the whole machine cannot be read by the box's root",
	  "counters",
	  AS_ROOT,
	  0,
	  { 0 },
	  NULL },
	{ "L7 files about the machine are not there for the box's root",
	  "etc-files",
	  AS_ROOT,
	  0,
	  { 0 },
	  NULL },
};

const struct attack_table attacks_leak = { rows, COUNT(rows) };
