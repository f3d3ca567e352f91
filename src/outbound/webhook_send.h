/* What is sent to a webhook: the event as JSON, and the headers that prove where it comes from. */
#pragma once

#include <stdint.h>

#include "base/buf.h"

struct courier_request;
struct journal_row;

#define WEBHOOK_HEADERS 6u
#define WEBHOOK_HEADER_MAX 192u

struct webhook_message {
	struct buf body;
	char headers[WEBHOOK_HEADERS][WEBHOOK_HEADER_MAX];
	const char *list[WEBHOOK_HEADERS + 1];
};

/* The event as a stream gives it, and how many were missed before it when any were. */
int webhook_write_body(const struct journal_row *row, uint64_t missed, struct buf *b);
/* Signed for that moment: `v1=` and the HMAC-SHA-256 of "SECONDS.BODY" in hex. The row's seq and
 * the webhook's id name the delivery, so that all tries of it have the same name. */
int webhook_message_make(const struct journal_row *row, const char *webhook_id, const char *secret,
			 uint64_t missed, int64_t wall_ms, struct webhook_message *ret);
void webhook_message_done(struct webhook_message *m);
