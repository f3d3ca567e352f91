#include "net/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "net/tls_session.h"

#define RECORD_MAX 16384

struct tls {
	SSL_CTX *ctx;               /* owned; sessions hold a reference of their own */
	char *cert_path, *key_path; /* owned */
};

struct tls_session {
	SSL *ssl;      /* owned, with both BIOs */
	BIO *in, *out; /* borrowed from ssl */
};

static void free_ctx(SSL_CTX **ctx)
{
	SSL_CTX_free(*ctx);
}

/* The library's last words, which name the line of the file that is wrong. */
static int ssl_error(struct err *err, const char *what, const char *path)
{
	unsigned long code = ERR_peek_last_error();
	const char *reason = ERR_reason_error_string(code);
	int r = err_set(err, EINVAL, "%s '%.120s': %s", what, path, reason ? reason : "not usable");

	ERR_clear_error();
	return r;
}

static int choose_protocol(SSL *ssl, const unsigned char **ret, unsigned char *ret_n,
			   const unsigned char *offered, unsigned n, void *user)
{
	static const unsigned char ours[] = "\x08http/1.1";
	unsigned char *chosen;

	(void)ssl;
	(void)user;
	if (SSL_select_next_proto(&chosen, ret_n, ours, sizeof(ours) - 1, offered, n) !=
	    OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*ret = chosen;
	return SSL_TLSEXT_ERR_OK;
}

static int load(const char *cert_path, const char *key_path, SSL_CTX **ret, struct err *err)
{
	_cleanup_(free_ctx) SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

	if (!ctx)
		return err_sys(err, ENOMEM, "TLS");
	if (SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1)
		return ssl_error(err, "TLS with", cert_path);
	(void)SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
					       SSL_OP_CIPHER_SERVER_PREFERENCE |
					       SSL_OP_PRIORITIZE_CHACHA);
	(void)SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
					    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
					    SSL_MODE_RELEASE_BUFFERS);
	/* Sessions are resumed by tickets; a cache on our side would only hold memory. */
	(void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
	if (SSL_CTX_use_certificate_chain_file(ctx, cert_path) != 1)
		return ssl_error(err, "certificate", cert_path);
	if (SSL_CTX_use_PrivateKey_file(ctx, key_path, SSL_FILETYPE_PEM) != 1)
		return ssl_error(err, "private key", key_path);
	if (SSL_CTX_check_private_key(ctx) != 1)
		return ssl_error(err, "private key is not the certificate's:", key_path);
	*ret = TAKE(ctx);
	return 0;
}

int tls_create(const char *cert_path, const char *key_path, struct tls **ret, struct err *err)
{
	struct tls *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return err_sys(err, ENOMEM, "TLS");
	t->cert_path = str_dup(str_of(cert_path));
	t->key_path = str_dup(str_of(key_path));
	if (t->cert_path && t->key_path)
		r = load(cert_path, key_path, &t->ctx, err);
	else
		r = err_sys(err, ENOMEM, "TLS");
	if (r < 0) {
		(void)tls_free(t);
		return r;
	}
	*ret = t;
	return 0;
}

struct tls *tls_free(struct tls *t)
{
	if (!t)
		return NULL;
	SSL_CTX_free(t->ctx);
	free(t->cert_path);
	free(t->key_path);
	free(t);
	return NULL;
}

int tls_reload(struct tls *t, struct err *err)
{
	SSL_CTX *ctx = NULL;
	int r = load(t->cert_path, t->key_path, &ctx, err);

	if (r < 0)
		return r;
	SSL_CTX_free(t->ctx);
	t->ctx = ctx;
	return 0;
}

struct tls_session *tls_session_create(struct tls *t)
{
	struct tls_session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->ssl = SSL_new(t->ctx);
	s->in = BIO_new(BIO_s_mem());
	s->out = BIO_new(BIO_s_mem());
	if (!s->ssl || !s->in || !s->out) {
		BIO_free(s->in);
		BIO_free(s->out);
		s->in = s->out = NULL;
		return tls_session_free(s);
	}
	SSL_set_bio(s->ssl, s->in, s->out); /* both are the SSL's from here on */
	SSL_set_accept_state(s->ssl);
	return s;
}

struct tls_session *tls_session_free(struct tls_session *s)
{
	if (!s)
		return NULL;
	SSL_free(s->ssl);
	free(s);
	return NULL;
}

int tls_session_feed(struct tls_session *s, const void *data, size_t n)
{
	return BIO_write(s->in, data, (int)n) == (int)n ? 0 : -ENOMEM;
}

/* What a failed call means. The error queue is the thread's: an old entry would be taken for new.
 */
static ssize_t result(const struct tls_session *s, int code)
{
	int why = SSL_get_error(s->ssl, code);

	ERR_clear_error();
	if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)
		return 0;
	return why == SSL_ERROR_ZERO_RETURN ? -EPIPE : -EPROTO;
}

ssize_t tls_session_read(struct tls_session *s, void *dst, size_t size)
{
	int n = SSL_read(s->ssl, dst, (int)size);

	return n > 0 ? n : result(s, n);
}

ssize_t tls_session_write(struct tls_session *s, const void *data, size_t n)
{
	int sent;

	if (n > RECORD_MAX)
		n = RECORD_MAX;
	sent = SSL_write(s->ssl, data, (int)n);
	return sent > 0 ? sent : result(s, sent);
}

int tls_session_take(struct tls_session *s, struct buf *records)
{
	char *data;
	long n = BIO_get_mem_data(s->out, &data);
	int r;

	if (n <= 0)
		return 0;
	r = buf_append(records, data, (size_t)n);
	(void)BIO_reset(s->out);
	return r;
}

bool tls_session_is_ready(const struct tls_session *s)
{
	return SSL_is_init_finished(s->ssl);
}

void tls_session_end(struct tls_session *s)
{
	if (SSL_is_init_finished(s->ssl))
		(void)SSL_shutdown(s->ssl);
	ERR_clear_error();
}
