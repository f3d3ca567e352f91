/* TLS of listeners: a certificate with its key, that can be replaced while running. TLS 1.2 and
 * 1.3, ALPN http/1.1, no renegotiation, no compression. */
#pragma once

struct err;
struct tls; /* opaque */

/* PEM files: the certificate with its chain, and its private key. They must belong together. */
int tls_create(const char *cert_path, const char *key_path, struct tls **ret, struct err *err);
struct tls *tls_free(struct tls *t);
/* Reads the same files again. Connections made from now on use them; on failure nothing changes. */
int tls_reload(struct tls *t, struct err *err);
