/* The chain of the audit log: each line's hash is that of the line before, followed by the line.
 * Who changes, removes, inserts or moves a line has to change all hashes behind it, and with them
 * the last one, which is also kept elsewhere. No I/O. */
#pragma once

#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>

#include "crypto/hash.h"

struct err;

struct audit_record {
	uint64_t seq;  /* from 1, without holes */
	int64_t at_ms; /* since 1970; does not go back */
	const char *owner, *kind, *text;
};

/* sha256(prev, seq, at_ms, owner, kind, text): numbers as 8 bytes, big-endian, each text behind the
 * number of its bytes. The first line's prev is zeroes. */
int audit_hash(const uint8_t prev[HASH_LEN], const struct audit_record *rec, uint8_t ret[HASH_LEN]);

/* The end of what has been checked. Zeroed: before the first line. */
struct audit_chain {
	uint64_t seq;
	int64_t at_ms;
	uint8_t hash[HASH_LEN];
};

/* The next line: 0, or -EBADMSG and *err names the first line that is not as it was written. */
int audit_check(struct audit_chain *chain, const struct audit_record *rec,
		const uint8_t hash[HASH_LEN], struct err *err);

/* The text of a line that says which lines went because they were old: the last one's number and
 * hash, from which the chain goes on. Such a line is written before they go, so it stands behind
 * them; of a log that begins in the middle it must be there, and be as it was written. */
#define AUDIT_CUT_KIND "cut"
#define AUDIT_CUT_FORMAT "{\"seq\":%" PRIu64 ",\"hash\":\"%s\"}"

/* "42:9f86...": a place in the chain, to be kept elsewhere. */
#define AUDIT_HEAD_SIZE (20 + 1 + 2 * HASH_LEN + 1)
void audit_head_format(const struct audit_chain *chain, char dst[AUDIT_HEAD_SIZE]);
int audit_head_parse(const char *text, struct audit_chain *ret); /* -EINVAL */
