#include "telemetry/audit.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/str.h"

static int add_number(struct hash *h, uint64_t v)
{
	uint8_t bytes[8];

	for (int i = 0; i < 8; i++)
		bytes[i] = (uint8_t)(v >> (56 - 8 * i));
	return hash_update(h, bytes, sizeof(bytes));
}

static int add_text(struct hash *h, const char *text)
{
	size_t n = strlen(text);
	int r = add_number(h, n);

	return r < 0 ? r : hash_update(h, text, n);
}

int audit_hash(const uint8_t prev[HASH_LEN], const struct audit_record *rec, uint8_t ret[HASH_LEN])
{
	_cleanup_(hash_free_p) struct hash *h = hash_create();
	int r;

	if (!h)
		return -ENOMEM;
	r = hash_update(h, prev, HASH_LEN);
	if (r == 0)
		r = add_number(h, rec->seq);
	if (r == 0)
		r = add_number(h, (uint64_t)rec->at_ms);
	if (r == 0)
		r = add_text(h, rec->owner);
	if (r == 0)
		r = add_text(h, rec->kind);
	if (r == 0)
		r = add_text(h, rec->text);
	return r < 0 ? r : hash_final(h, ret);
}

int audit_check(struct audit_chain *chain, const struct audit_record *rec,
		const uint8_t hash[HASH_LEN], struct err *err)
{
	uint8_t want[HASH_LEN];
	int r;

	if (rec->seq != chain->seq + 1)
		return err_set(err, EBADMSG, "line %" PRIu64 ": want line %" PRIu64 " here",
			       rec->seq, chain->seq + 1);
	if (rec->at_ms < chain->at_ms)
		return err_set(err, EBADMSG, "line %" PRIu64 " is older than the one before it",
			       rec->seq);
	r = audit_hash(chain->hash, rec, want);
	if (r < 0)
		return err_sys(err, r, "line %" PRIu64, rec->seq);
	if (memcmp(want, hash, HASH_LEN) != 0)
		return err_set(err, EBADMSG,
			       "line %" PRIu64 " is not what was written: its hash does not fit",
			       rec->seq);
	chain->seq = rec->seq;
	chain->at_ms = rec->at_ms;
	memcpy(chain->hash, want, HASH_LEN);
	return 0;
}

void audit_head_format(const struct audit_chain *chain, char dst[AUDIT_HEAD_SIZE])
{
	char hex[2 * HASH_LEN + 1];

	encode_hex(chain->hash, HASH_LEN, hex);
	(void)str_format(dst, AUDIT_HEAD_SIZE, "%" PRIu64 ":%s", chain->seq, hex);
}

int audit_head_parse(const char *text, struct audit_chain *ret)
{
	struct audit_chain c = { 0 };
	const char *colon = strchr(text, ':');
	char number[24];

	if (!colon || strlen(colon + 1) != 2 * HASH_LEN ||
	    decode_hex(colon + 1, 2 * HASH_LEN, c.hash, HASH_LEN) != HASH_LEN ||
	    str_format(number, sizeof(number), "%.*s", (int)(colon - text), text) < 0 ||
	    parse_u64(number, 0, INT64_MAX, &c.seq) < 0)
		return -EINVAL;
	*ret = c;
	return 0;
}
