/* OCI bundles for the peers that want one: this system's /usr, read-only, in an empty root. */
#pragma once

struct err;

struct bundle {
	char dir[64]; /* holds true/, python/ and state/ */
	char state[80];
};

/* Also sweeps away what benchmarks that were killed have left behind. */
int bundle_make(struct bundle *b, struct err *err);
void bundle_remove_tree(const char *dir); /* all that is in it, and itself */
void bundle_remove(const struct bundle *b);
/* Removes the bundles in the directory (in tests not /tmp) that are ours and that nobody uses:
 * those whose process has ended, and those of no process that are older than an hour. */
void bundle_sweep(const char *tmp);
