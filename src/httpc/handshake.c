#include "httpc/handshake.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include <openssl/evp.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/encode.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/str.h"

#define GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11" /* the standard's */
#define BODY_MAX (64u << 10)

void handshake_make_key(struct handshake *h)
{
	unsigned char nonce[16];

	if (getrandom(nonce, sizeof(nonce), 0) != (ssize_t)sizeof(nonce))
		abort(); /* the kernel's source answers small requests whole */
	(void)encode_base64(nonce, sizeof(nonce), h->key);
}

int handshake_write(struct buf *b, const struct handshake *h)
{
	(void)buf_printf(b,
			 "GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\n"
			 "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
			 "Sec-WebSocket-Key: %s\r\nUser-Agent: holt/" HOLT_VERSION "\r\n",
			 h->target, h->host, h->key);
	if (h->bearer)
		(void)buf_printf(b, "Authorization: Bearer %s\r\n", h->bearer);
	(void)buf_puts(b, "\r\n");
	return b->failed ? -E2BIG : 0;
}

/* What the server must have made of our key. */
static bool is_accepted(const struct handshake *h, struct str value)
{
	unsigned char sum[EVP_MAX_MD_SIZE];
	char text[HANDSHAKE_KEY + sizeof(GUID)], want[BASE64_SIZE(EVP_MAX_MD_SIZE)];
	unsigned int n = 0;

	if (str_format(text, sizeof(text), "%s" GUID, h->key) < 0 ||
	    EVP_Digest(text, strlen(text), sum, &n, EVP_sha1(), NULL) != 1)
		return false;
	(void)encode_base64(sum, n, want);
	return str_is(value, want);
}

static bool is_word(struct str a, const char *word)
{
	return a.len == strlen(word) && strncasecmp(a.data, word, a.len) == 0;
}

static bool has_word(struct str list, const char *word)
{
	struct str part;

	while (str_split(&list, ',', &part))
		if (is_word(str_trim(part), word))
			return true;
	return false;
}

/* What the headers said. */
struct facts {
	bool upgrade, connection, accept, extra;
	size_t body_length;
};

static void on_header(const struct handshake *h, struct str name, struct str value, struct facts *f)
{
	char number[16];
	uint64_t n;

	if (is_word(name, "upgrade"))
		f->upgrade = is_word(value, "websocket");
	else if (is_word(name, "connection"))
		f->connection = has_word(value, "upgrade");
	else if (is_word(name, "sec-websocket-accept"))
		f->accept = is_accepted(h, value);
	else if (is_word(name, "sec-websocket-extensions") ||
		 is_word(name, "sec-websocket-protocol"))
		f->extra = true; /* we asked for none: its frames would not be what we read */
	else if (is_word(name, "content-length") &&
		 str_format(number, sizeof(number), "%.*s", (int)value.len, value.data) == 0 &&
		 parse_u64(number, 0, BODY_MAX, &n) == 0)
		f->body_length = (size_t)n;
}

/* "HTTP/1.1 101 ...": the number, or -EPROTO. */
static int status_of(struct str line)
{
	char number[4];
	uint32_t status;

	if (line.len < 12 || !str_starts(line, "HTTP/1.") || line.data[8] != ' ' ||
	    (line.len > 12 && line.data[12] != ' '))
		return -EPROTO;
	(void)str_format(number, sizeof(number), "%.3s", line.data + 9);
	return parse_u32(number, 100, 599, &status) < 0 ? -EPROTO : (int)status;
}

static bool take_line(struct str *rest, struct str *ret)
{
	if (!str_split(rest, '\n', ret))
		return false;
	if (ret->len > 0 && ret->data[ret->len - 1] == '\r')
		ret->len--;
	return true;
}

static int judge(int status, const struct facts *f, struct err *err)
{
	if (status != 101)
		return 0;
	if (!f->upgrade || !f->connection || !f->accept || f->extra)
		return err_set(err, EPROTO,
			       "the server's WebSocket handshake is not an answer to "
			       "ours: something else stands between");
	return 0;
}

int handshake_read(const struct handshake *h, const char *data, size_t n,
		   struct handshake_answer *ret, struct err *err)
{
	const char *end = n > 0 ? memmem(data, n, "\r\n\r\n", 4) : NULL;
	struct str rest, line = { 0 };
	struct facts f = { 0 };
	int status;

	if (!end && n < HANDSHAKE_MAX)
		return -EAGAIN;
	if (!end || (size_t)(end - data) + 4 > HANDSHAKE_MAX)
		return err_set(err, E2BIG, "the server's answer has too long a head");
	rest = (struct str){ data, (size_t)(end - data) };
	(void)take_line(&rest, &line);
	status = status_of(line);
	if (status < 0)
		return err_set(err, EPROTO, "the server does not speak HTTP");
	while (take_line(&rest, &line)) {
		struct str name;

		if (str_split(&line, ':', &name))
			on_header(h, name, str_trim(line), &f);
	}
	*ret = (struct handshake_answer){ status, (size_t)(end - data) + 4, f.body_length };
	return judge(status, &f, err);
}
