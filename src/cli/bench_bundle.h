/* OCI bundles for the peers that want one: this system's /usr, read-only, in an empty root. */
#pragma once

struct err;

struct bundle {
	char dir[64]; /* holds true/, python/ and state/ */
	char state[80];
};

int bundle_make(struct bundle *b, struct err *err);
void bundle_remove(const struct bundle *b);
