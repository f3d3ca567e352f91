/* One TLS connection without a socket: records in and out of memory. Inside of net/. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct buf;
struct tls;
struct tls_session; /* opaque */

struct tls_session *tls_session_create(struct tls *t); /* NULL without memory */
struct tls_session *tls_session_free(struct tls_session *s);
/* Records from the peer; 0 or -ENOMEM. */
int tls_session_feed(struct tls_session *s, const void *data, size_t n);
/* What they say: bytes, 0 when there is nothing (yet), -EPIPE when the peer has said goodbye,
 * -EPROTO when this is no TLS of ours. Also does the handshake: see tls_session_take(). */
ssize_t tls_session_read(struct tls_session *s, void *dst, size_t size);
/* Bytes taken for the peer, at most a record; 0 before the handshake is done; -EPROTO. */
ssize_t tls_session_write(struct tls_session *s, const void *data, size_t n);
/* Appends the records that are ready for the peer; 0 or buf's error. */
int tls_session_take(struct tls_session *s, struct buf *records);
bool tls_session_is_ready(const struct tls_session *s);
void tls_session_end(struct tls_session *s); /* says goodbye: a record to take */
