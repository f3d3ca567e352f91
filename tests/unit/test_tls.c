#include "net/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/str.h"
#include "check.h"
#include "net_rig.h"

#define H "Host: a\r\n"
#define GET "GET /x HTTP/1.1\r\n" H "\r\n"

struct test {
	struct net_rig g;
	struct tls *tls;
	char dir[32], cert[64], key[64];
	char *big; /* of /big: 5 MB */
	bool ended;
};

#define BIG ((size_t)5 << 20)

/* The other end: OpenSSL over memory, carried by a raw client. */
struct peer {
	struct net_client c;
	SSL_CTX *ctx;
	SSL *ssl;
	BIO *in, *out;
	struct buf got;
	bool failed;
};

static void got(void *user, struct http_request *r, const char *data, size_t n)
{
	((struct test *)user)->ended = true;
	http_reply(r, 200, "text/plain", data, n);
}

static void handle(void *user, struct http_request *r)
{
	struct test *t = user;

	assert_true(http_is_tls(r));
	if (strcmp(http_path(r), "/echo") == 0)
		http_body_collect(r, BIG, got, t);
	else if (strcmp(http_path(r), "/big") == 0)
		http_reply(r, 200, "application/octet-stream", t->big, BIG);
	else
		http_reply(r, 200, "text/plain", "secret", 6);
}

/* A key and its own certificate for `name`. */
static void make_cert(const char *cert_path, const char *key_path, const char *name)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *x = X509_new();
	X509_NAME *subject = X509_get_subject_name(x);
	FILE *f;

	assert_non_null(key);
	(void)X509_set_version(x, 2);
	(void)ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
	(void)X509_gmtime_adj(X509_getm_notBefore(x), -60);
	(void)X509_gmtime_adj(X509_getm_notAfter(x), 3600);
	(void)X509_set_pubkey(x, key);
	(void)X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name,
					 -1, -1, 0);
	(void)X509_set_issuer_name(x, subject);
	assert_true(X509_sign(x, key, EVP_sha256()) > 0);
	f = fopen(cert_path, "we");
	assert_non_null(f);
	assert_int_equal(PEM_write_X509(f, x), 1);
	assert_int_equal(fclose(f), 0);
	f = fopen(key_path, "we");
	assert_non_null(f);
	assert_int_equal(PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL), 1);
	assert_int_equal(fclose(f), 0);
	X509_free(x);
	EVP_PKEY_free(key);
}

static int setup(void **state)
{
	struct test *t = calloc(1, sizeof(*t));
	struct http_server_options o = { .handle = handle, .user = t };
	struct err err = { 0 };

	assert_non_null(t);
	o.limits.handshake_ms = 2000;
	o.limits.linger_ms = 40;
	(void)str_copy(t->dir, sizeof(t->dir), "/tmp/holt-tls-XXXXXX");
	assert_non_null(mkdtemp(t->dir));
	(void)str_format(t->cert, sizeof(t->cert), "%s/cert.pem", t->dir);
	(void)str_format(t->key, sizeof(t->key), "%s/key.pem", t->dir);
	make_cert(t->cert, t->key, "first");
	t->big = malloc(BIG);
	assert_non_null(t->big);
	memset(t->big, 'b', BIG);
	net_rig_open(&t->g, &o);
	assert_int_equal(tls_create(t->cert, t->key, &t->tls, &err), 0);
	t->g.port = net_listen(t->g.server, "127.0.0.1:0", t->tls, &err);
	assert_true(t->g.port > 0);
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	struct test *t = *state;

	net_rig_close(&t->g);
	t->tls = tls_free(t->tls);
	(void)unlink(t->cert);
	(void)unlink(t->key);
	assert_int_equal(rmdir(t->dir), 0);
	free(t->big);
	free(t);
	return 0;
}

static void peer_open(struct peer *p, struct test *t)
{
	*p = (struct peer){ 0 };
	net_client_open(&p->c, &t->g);
	p->ctx = SSL_CTX_new(TLS_client_method());
	p->ssl = SSL_new(p->ctx);
	p->in = BIO_new(BIO_s_mem());
	p->out = BIO_new(BIO_s_mem());
	SSL_set_bio(p->ssl, p->in, p->out);
	SSL_set_connect_state(p->ssl);
}

static void peer_close(struct peer *p)
{
	SSL_free(p->ssl);
	SSL_CTX_free(p->ctx);
	buf_done(&p->got);
	net_client_close(&p->c);
}

/* What has come goes in, what that makes of it goes out. */
static void peer_pump(struct peer *p)
{
	static char bytes[65536];
	int n, why;
	long left;
	char *data;

	if (p->c.got.len > 0) {
		assert_int_equal(BIO_write(p->in, p->c.got.data, (int)p->c.got.len), p->c.got.len);
		net_client_forget(&p->c);
	}
	while ((n = SSL_read(p->ssl, bytes, sizeof(bytes))) > 0)
		assert_int_equal(buf_append(&p->got, bytes, (size_t)n), 0);
	why = SSL_get_error(p->ssl, n);
	if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_ZERO_RETURN)
		p->failed = true;
	ERR_clear_error();
	left = BIO_get_mem_data(p->out, &data);
	if (left > 0) {
		net_client_send(&p->c, data, (size_t)left);
		(void)BIO_reset(p->out);
	}
	net_rig_run_ms(p->c.g, 1);
}

/* Until text has come, or without one until the handshake is over. False when it never does. */
static bool peer_until(struct peer *p, const char *text)
{
	for (int i = 0; i < 5000 && !p->failed; i++) {
		peer_pump(p);
		if (text ? memmem(buf_str(&p->got), p->got.len, text, strlen(text)) != NULL
			 : SSL_is_init_finished(p->ssl))
			return true;
		if (p->c.closed && p->c.got.len == 0)
			return false;
	}
	return false;
}

static void peer_send(struct peer *p, const void *data, size_t n)
{
	for (size_t sent = 0; sent < n; sent += 16384) {
		size_t piece = n - sent < 16384 ? n - sent : 16384;

		assert_int_equal(SSL_write(p->ssl, (const char *)data + sent, (int)piece), piece);
		peer_pump(p);
	}
}

static const char *peer_cert_name(struct peer *p)
{
	static char name[64];
	X509 *x = SSL_get1_peer_certificate(p->ssl);

	assert_non_null(x);
	(void)X509_NAME_get_text_by_NID(X509_get_subject_name(x), NID_commonName, name,
					sizeof(name));
	X509_free(x);
	return name;
}

static void requests_are_served_over_tls(void **state)
{
	struct test *t = *state;
	const unsigned char *chosen;
	unsigned n;
	struct peer p;

	peer_open(&p, t);
	assert_int_equal(
		SSL_set_alpn_protos(p.ssl, (const unsigned char *)"\x02h2\x08http/1.1", 12), 0);
	assert_true(peer_until(&p, NULL));
	assert_int_equal(SSL_version(p.ssl), TLS1_3_VERSION);
	SSL_get0_alpn_selected(p.ssl, &chosen, &n);
	assert_int_equal(n, 8);
	assert_memory_equal(chosen, "http/1.1", 8);
	for (int i = 0; i < 3; i++) {
		buf_clear(&p.got);
		peer_send(&p, GET, sizeof(GET) - 1);
		assert_true(peer_until(&p, "\r\n\r\nsecret"));
	}
	peer_close(&p);
}

static void large_bodies_go_both_ways(void **state)
{
	struct test *t = *state;
	char head[100];
	struct peer p;

	peer_open(&p, t);
	assert_true(peer_until(&p, NULL));
	assert_int_equal(str_format(head, sizeof(head),
				    "POST /echo HTTP/1.1\r\n" H "Content-Length: %zu\r\n\r\n", BIG),
			 0);
	peer_send(&p, head, strlen(head));
	peer_send(&p, t->big, BIG);
	for (int i = 0; i < 5000 && p.got.len < BIG + 100; i++)
		peer_pump(&p);
	assert_true(t->ended);
	assert_true(p.got.len > BIG + 100);
	assert_memory_equal(p.got.data + p.got.len - BIG, t->big, BIG);
	buf_clear(&p.got);
	peer_send(&p, "GET /big HTTP/1.1\r\n" H "\r\n", 30);
	for (int i = 0; i < 5000 && p.got.len < BIG + 100; i++)
		peer_pump(&p);
	assert_memory_equal(p.got.data + p.got.len - BIG, t->big, BIG);
	peer_close(&p);
}

static void records_may_come_byte_by_byte(void **state)
{
	struct test *t = *state;
	struct peer p;
	char *data;
	long n;

	peer_open(&p, t);
	assert_true(peer_until(&p, NULL));
	assert_int_equal(SSL_write(p.ssl, GET, sizeof(GET) - 1), sizeof(GET) - 1);
	n = BIO_get_mem_data(p.out, &data);
	for (long i = 0; i < n; i++) {
		net_client_send(&p.c, data + i, 1);
		net_rig_run_ms(&t->g, 1);
	}
	(void)BIO_reset(p.out);
	assert_true(peer_until(&p, "secret"));
	peer_close(&p);
}

static void old_versions_are_refused(void **state)
{
	struct test *t = *state;
	struct peer p;

	peer_open(&p, t);
	SSL_set_security_level(p.ssl, 0);
	(void)SSL_set_max_proto_version(p.ssl, TLS1_1_VERSION);
	(void)SSL_set_min_proto_version(p.ssl, TLS1_VERSION);
	assert_false(peer_until(&p, NULL));
	peer_close(&p);
	peer_open(&p, t);
	(void)SSL_set_max_proto_version(p.ssl, TLS1_2_VERSION);
	assert_true(peer_until(&p, NULL));
	peer_close(&p);
}

static void a_client_that_speaks_only_other_protocols_is_refused(void **state)
{
	struct test *t = *state;
	struct peer p;

	peer_open(&p, t);
	assert_int_equal(SSL_set_alpn_protos(p.ssl, (const unsigned char *)"\x02h2", 3), 0);
	assert_false(peer_until(&p, NULL));
	peer_close(&p);
}

static void renegotiation_is_refused(void **state)
{
	struct test *t = *state;
	struct peer p;

	peer_open(&p, t);
	(void)SSL_set_max_proto_version(p.ssl, TLS1_2_VERSION);
	assert_true(peer_until(&p, NULL));
	assert_int_equal(SSL_renegotiate(p.ssl), 1);
	for (int i = 0; i < 100; i++)
		peer_pump(&p);
	assert_true(p.failed || SSL_renegotiate_pending(p.ssl));
	peer_close(&p);
}

static void plain_requests_are_not_answered(void **state)
{
	struct test *t = *state;
	struct net_client c;

	net_client_open(&c, &t->g);
	net_client_puts(&c, GET);
	net_client_until_closed(&c);
	assert_false(net_client_has(&c, "HTTP/1.1"));
	assert_int_equal(http_server_connections(t->g.server), 0);
	net_client_close(&c);
}

static void a_handshake_has_its_time(void **state)
{
	struct test *t = *state;
	struct net_client c;

	net_client_open(&c, &t->g);
	net_client_send(&c, "\x16\x03\x01", 3);
	net_client_until_closed(&c);
	assert_int_equal(c.got.len, 0);
	net_client_close(&c);
}

static void goodbyes_are_said(void **state)
{
	struct test *t = *state;
	struct peer p;

	peer_open(&p, t);
	assert_true(peer_until(&p, NULL));
	peer_send(&p, "GET /x HTTP/1.1\r\n" H "Connection: close\r\n\r\n", 47);
	assert_true(peer_until(&p, "secret"));
	for (int i = 0; i < 1000 && !(SSL_get_shutdown(p.ssl) & SSL_RECEIVED_SHUTDOWN); i++)
		peer_pump(&p);
	assert_true(SSL_get_shutdown(p.ssl) & SSL_RECEIVED_SHUTDOWN);
	peer_close(&p);
	/* And heard. */
	peer_open(&p, t);
	assert_true(peer_until(&p, NULL));
	(void)SSL_shutdown(p.ssl);
	for (int i = 0; i < 1000 && !p.c.closed; i++)
		peer_pump(&p);
	assert_true(p.c.closed);
	peer_close(&p);
}

static void a_new_certificate_is_for_new_connections(void **state)
{
	struct test *t = *state;
	struct err err = { 0 };
	struct peer old, new;

	peer_open(&old, t);
	assert_true(peer_until(&old, NULL));
	assert_string_equal(peer_cert_name(&old), "first");
	make_cert(t->cert, t->key, "second");
	assert_int_equal(tls_reload(t->tls, &err), 0);
	peer_open(&new, t);
	assert_true(peer_until(&new, NULL));
	assert_string_equal(peer_cert_name(&new), "second");
	peer_send(&old, GET, sizeof(GET) - 1);
	assert_true(peer_until(&old, "secret"));
	peer_close(&old);
	peer_close(&new);
}

static void a_bad_certificate_changes_nothing_and_is_told(void **state)
{
	struct test *t = *state;
	struct err err = { 0 };
	struct peer p;
	int fd;

	fd = open(t->cert, O_WRONLY | O_TRUNC | O_CLOEXEC);
	assert_int_equal(write(fd, "garbage\n", 8), 8);
	assert_int_equal(close(fd), 0);
	assert_int_equal(tls_reload(t->tls, &err), -EINVAL);
	assert_non_null(strstr(err.text, t->cert));
	peer_open(&p, t);
	assert_true(peer_until(&p, NULL));
	assert_string_equal(peer_cert_name(&p), "first");
	peer_close(&p);
	assert_int_equal(unlink(t->cert), 0);
	assert_int_equal(tls_reload(t->tls, &err), -EINVAL);
}

static void a_key_of_another_certificate_is_refused(void **state)
{
	struct test *t = *state;
	char cert[64], key[64];
	struct tls *tls = NULL;
	struct err err = { 0 };

	(void)str_format(cert, sizeof(cert), "%s/cert2.pem", t->dir);
	(void)str_format(key, sizeof(key), "%s/key2.pem", t->dir);
	make_cert(cert, key, "other");
	assert_int_equal(tls_create(t->cert, key, &tls, &err), -EINVAL);
	assert_non_null(strstr(err.text, key));
	assert_int_equal(tls_create(cert, "/nonexistent", &tls, &err), -EINVAL);
	assert_null(tls);
	assert_null(tls_free(NULL));
	assert_int_equal(unlink(cert) + unlink(key), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(requests_are_served_over_tls),
		T(large_bodies_go_both_ways),
		T(records_may_come_byte_by_byte),
		T(old_versions_are_refused),
		T(a_client_that_speaks_only_other_protocols_is_refused),
		T(renegotiation_is_refused),
		T(plain_requests_are_not_answered),
		T(a_handshake_has_its_time),
		T(goodbyes_are_said),
		T(a_new_certificate_is_for_new_connections),
		T(a_bad_certificate_changes_nothing_and_is_told),
		T(a_key_of_another_certificate_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
