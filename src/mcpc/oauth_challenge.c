#include <string.h>
#include <strings.h>

#include "mcpc/oauth_impl.h"

/* RFC 9110, 11.6.1: a list of challenges, each a scheme and a list of parameters, both separated by
 * commas; so whether a word begins a challenge or a parameter is told by the '=' behind it. */
struct reader {
	const char *p;
};

static void skip(struct reader *r, const char *bytes)
{
	r->p += strspn(r->p, bytes);
}

static struct str word(struct reader *r)
{
	struct str w = { .data = r->p, .len = strcspn(r->p, " \t,=\"") };

	r->p += w.len;
	return w;
}

/* A token or a quoted text into dst; what does not fit is "". */
static void value(struct reader *r, char *dst, size_t size)
{
	size_t n = 0;
	bool fits = true;

	dst[0] = '\0';
	if (*r->p != '"') {
		struct str w = { .data = r->p, .len = strcspn(r->p, " \t,") };

		r->p += w.len;
		if (w.len < size) {
			memcpy(dst, w.data, w.len);
			dst[w.len] = '\0';
		}
		return;
	}
	for (r->p++; *r->p != '\0' && *r->p != '"'; r->p++) {
		if (*r->p == '\\' && r->p[1] != '\0')
			r->p++;
		fits = fits && n + 1 < size;
		if (fits)
			dst[n++] = *r->p;
	}
	if (*r->p == '"')
		r->p++;
	dst[fits ? n : 0] = '\0';
}

struct place {
	const char *name;
	char *dst;
	size_t size;
};

static void take(struct reader *r, struct str name, const struct place *places, size_t n)
{
	char nowhere[1];

	for (size_t i = 0; i < n; i++) {
		if (name.len == strlen(places[i].name) &&
		    strncasecmp(name.data, places[i].name, name.len) == 0 &&
		    places[i].dst[0] == '\0') {
			value(r, places[i].dst, places[i].size);
			return;
		}
	}
	value(r, nowhere, sizeof(nowhere));
}

void oauth_challenge_parse(const char *text, struct oauth_challenge *ret)
{
	const struct place places[] = {
		{ "error", ret->error, sizeof(ret->error) },
		{ "scope", ret->scope, sizeof(ret->scope) },
		{ "resource_metadata", ret->metadata, sizeof(ret->metadata) },
	};
	struct reader r = { .p = text };
	bool is_bearer = false;

	*ret = (struct oauth_challenge){ 0 };
	while (*r.p != '\0') {
		struct str name;

		skip(&r, " \t,");
		name = word(&r);
		skip(&r, " \t");
		if (*r.p == '=') {
			r.p++;
			skip(&r, " \t");
			take(&r, name, places, is_bearer ? 3 : 0);
		} else if (name.len == 0) {
			r.p += *r.p != '\0'; /* a stray quote */
		} else if (is_bearer) {
			return; /* another challenge begins */
		} else {
			is_bearer = name.len == 6 && strncasecmp(name.data, "Bearer", 6) == 0;
		}
	}
}
