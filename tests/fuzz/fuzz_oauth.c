/* A server and an authorization server that say anything. Pieces with a NUL between them: the first
 * is a challenge, each other one is what comes next: an answer, whose first byte tells its status,
 * or what a browser comes back with ('!': with the right state). Wherever that leads, only
 * addresses that can be used are fetched or opened, and there is a token only at the end. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "fuzz.h"
#include "mcpc/oauth_impl.h"

#define NOW 1000000

static void answer(struct oauth *o, const char *piece, size_t n)
{
	static const int statuses[] = { 200, 201, 404, 400, 401, 500 };

	if (n == 0) {
		oauth_answer(o, 0, NULL, 0, NOW, NULL);
		return;
	}
	oauth_answer(o, statuses[(unsigned char)piece[0] % 6], piece + 1, n - 1, NOW, NULL);
}

static void come_back(struct oauth *o, const char *piece)
{
	struct buf b = { 0 };
	int r;

	if (piece[0] == '!')
		(void)buf_printf(&b, "state=%s&", o->flow.token_of_state);
	(void)buf_puts(&b, piece + (piece[0] == '!'));
	r = oauth_redirected(o, buf_str(&b), NULL);
	MUST(r == 0 || o->flow.state == OAUTH_AT_OPEN);
	MUST(r == 0 || piece[0] != '!' || strstr(piece, "state=") || strchr(piece, '%') ||
	     strstr(piece, "=") || b.len > OAUTH_QUERY_MAX);
	buf_done(&b);
}

static void check(const struct oauth *o)
{
	struct oauth_todo t;

	oauth_todo(o, &t);
	if (t.step == OAUTH_FETCH || t.step == OAUTH_OPEN) {
		char base[OAUTH_URL_MAX];
		size_t n = strcspn(t.url, "?");

		MUST(n < sizeof(base));
		memcpy(base, t.url, n);
		base[n] = '\0';
		MUST(oauth_url_check("it", base, NULL) == 0);
	}
	MUST(t.step != OAUTH_FAILED || t.err->code != 0);
	MUST(t.step != OAUTH_READY || oauth_token(o, 0));
	MUST(t.step == OAUTH_READY || !oauth_token(o, 0));
}

static void keep(const struct oauth *o, struct oauth *other)
{
	struct buf b = { 0 }, c = { 0 };

	MUST(oauth_save(o, &b) == 0);
	MUST(oauth_load(other, buf_str(&b), b.len, NULL) == 0);
	MUST(oauth_save(other, &c) == 0);
	MUST(strcmp(buf_str(&b), buf_str(&c)) == 0);
	buf_done(&b);
	buf_done(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct oauth_options options = { .server = "https://a/m",
					       .redirect = "http://127.0.0.1/b" };
	struct oauth *o = NULL, *other = NULL;
	char *text = malloc(size + 1);
	size_t at;

	if (!text)
		return 0;
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	MUST(oauth_create(&options, &o, NULL) == 0 && oauth_create(&options, &other, NULL) == 0);
	if (oauth_begin(o, 401, text, NULL) == 0) {
		check(o);
		for (at = strlen(text) + 1; at < size; at += strlen(text + at) + 1) {
			if (o->flow.state == OAUTH_AT_OPEN)
				come_back(o, text + at);
			else
				answer(o, text + at, strlen(text + at));
			check(o);
		}
	}
	keep(o, other);
	(void)oauth_load(other, text, size, NULL);
	oauth_free(o);
	oauth_free(other);
	free(text);
	return 0;
}
