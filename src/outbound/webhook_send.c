#include "outbound/webhook_send.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/encode.h"
#include "base/str.h"
#include "crypto/hmac.h"
#include "sandbox/journal.h"
#include "store/store.h"
#include "json/jw.h"

#define BODY_MAX (1u << 20)

int webhook_write_body(const struct journal_row *row, uint64_t missed, struct buf *b)
{
	struct jw w = jw_begin(b);

	jw_object_begin(&w);
	journal_write(&w, row);
	if (missed > 0)
		jw_uint_field(&w, "missed", missed);
	jw_object_end(&w);
	return jw_end(&w);
}

static int sign(const char *secret, int64_t seconds, const struct buf *body,
		char ret[2 * HASH_LEN + 1])
{
	_cleanup_(buf_done) struct buf b = { 0 };
	uint8_t mac[HASH_LEN];
	int r;

	(void)buf_printf(&b, "%" PRId64 ".", seconds);
	r = buf_append(&b, body->data, body->len);
	if (r == 0)
		r = hmac_sha256(secret, strlen(secret), b.data, b.len, mac);
	if (r == 0)
		encode_hex(mac, sizeof(mac), ret);
	return r;
}

int webhook_message_make(const struct journal_row *row, const char *webhook_id, const char *secret,
			 uint64_t missed, int64_t wall_ms, struct webhook_message *ret)
{
	char mac[2 * HASH_LEN + 1];
	char(*h)[WEBHOOK_HEADER_MAX] = ret->headers;
	int64_t seconds = wall_ms / 1000;
	int r;

	*ret = (struct webhook_message){ .body.max = BODY_MAX };
	r = webhook_write_body(row, missed, &ret->body);
	if (r == 0)
		r = sign(secret, seconds, &ret->body, mac);
	if (r < 0 || str_format(h[0], sizeof(h[0]), "Holt-Event: %s", row->kind) < 0 ||
	    str_format(h[1], sizeof(h[1]), "Holt-Delivery: %s.%" PRIu64, webhook_id, row->seq) <
		    0 ||
	    str_format(h[2], sizeof(h[2]), "Holt-Timestamp: %" PRId64, seconds) < 0 ||
	    str_format(h[3], sizeof(h[3]), "Holt-Signature: v1=%s", mac) < 0 ||
	    str_format(h[4], sizeof(h[4]), "Holt-Webhook: %s", webhook_id) < 0 ||
	    str_format(h[5], sizeof(h[5]), "User-Agent: Holt/" HOLT_VERSION) < 0) {
		webhook_message_done(ret);
		return r < 0 ? r : -E2BIG;
	}
	for (size_t i = 0; i < WEBHOOK_HEADERS; i++)
		ret->list[i] = ret->headers[i];
	return 0;
}

void webhook_message_done(struct webhook_message *m)
{
	buf_done(&m->body);
}
