/* What clients write into headers, queries and bodies. The first byte says which. */
#include <string.h>

#include "api/bodies.h"
#include "api/cursor.h"
#include "api/exec_plan.h"
#include "api/range.h"
#include "api/text.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/utf8.h"
#include "config/config.h"
#include "fuzz.h"

static void fuzz_range(const char *text, uint64_t size)
{
	struct range r = { 0 };

	if (range_parse(text, size, &r) != RANGE_PART)
		return;
	MUST(r.length > 0 && r.first < size && r.length <= size - r.first);
}

static void fuzz_etag(const char *text)
{
	char etag[ETAG_SIZE];

	etag_format(etag, 1, 2, 3);
	/* What counts as the same version strictly does so weakly too. */
	MUST(!etag_in(text, etag, false) || etag_in(text, etag, true));
}

static void fuzz_cursor(const char *text)
{
	struct cursor c, again;
	char out[CURSOR_SIZE];

	if (cursor_parse(text, &c) < 0)
		return;
	MUST(cursor_format(c.before_ms, c.before_id, out) == 0);
	MUST(cursor_parse(out, &again) == 0);
	MUST(again.before_ms == c.before_ms && strcmp(again.before_id, c.before_id) == 0);
}

/* Every byte comes out, in order, and what is whole is not torn. */
static void fuzz_text(const char *data, size_t n, size_t step)
{
	struct text_tail t = { 0 };
	struct buf all = { 0 };

	for (size_t at = 0; at < n; at += step) {
		size_t piece = n - at < step ? n - at : step;
		bool cut = false;

		MUST(text_feed(&t, data + at, piece, &all) == 0);
		MUST(t.len < sizeof(t.data) && all.len + t.len == at + piece);
		MUST(t.len == 0 || (utf8_prefix(t.data, t.len, &cut) == 0 && cut));
	}
	MUST(text_end(&t, &all) == 0);
	MUST(all.len == n && (n == 0 || memcmp(all.data, data, n) == 0));
	buf_done(&all);
}

static void fuzz_body(const char *data, size_t n, unsigned which)
{
	static const struct route_body *const bodies[] = {
		&body_sandbox, &body_patch,  &body_execute, &body_execution,
		&body_signal,  &body_resize, &body_file,    &body_key,
	};
	const struct route_body *body = bodies[which % (sizeof(bodies) / sizeof(bodies[0]))];
	struct config config = { .exec_timeout_max_ms = 3600000 };
	struct jv_problem problem = { 0 };
	struct jv_doc *doc = NULL;
	struct arena *a = arena_create(4 << 20);
	struct exec_plan plan;
	void *dst = a ? arena_alloc(a, body->size) : NULL;
	int r;

	MUST(dst);
	if (body->defaults)
		memcpy(dst, body->defaults, body->size);
	if (jv_parse(data, n, 64 << 10, &doc, NULL) == 0) {
		r = jv_decode(jv_root(doc), body->fields, body->count, a, dst, &problem);
		MUST(r == 0 || problem.text[0]);
		if (r == 0 && (body == &body_execute || body == &body_execution)) {
			r = exec_plan(dst, &config, a, &plan, &problem);
			MUST(r == 0 || problem.field[0]);
			MUST(r < 0 || plan.req.timeout_ms <= config.exec_timeout_max_ms);
		}
	}
	(void)jv_free(doc);
	(void)arena_free(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (size < 2)
		return 0;
	text = strndup((const char *)data + 2, size - 2);
	MUST(text);
	switch (data[0] % 5) {
	case 0:
		fuzz_range(text, (uint64_t)data[1] << (data[1] % 56));
		break;
	case 1:
		fuzz_etag(text);
		break;
	case 2:
		fuzz_cursor(text);
		break;
	case 3:
		fuzz_text((const char *)data + 2, size - 2, data[1] % 7 + 1);
		break;
	default:
		fuzz_body((const char *)data + 2, size - 2, data[1]);
	}
	free(text);
	return 0;
}
