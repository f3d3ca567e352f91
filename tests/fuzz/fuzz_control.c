/* What the control plane reads of foreign texts. A filter gives no more pairs than it may, and
 * what a note has taken it tells again; the same text as a version, and as a note. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "e2b/client.h"
#include "e2b/filter.h"
#include "e2b/note.h"
#include "fuzz.h"
#include "sandbox/lifecycle.h"
#include "json/jw.h"

static void check_filter(const char *text, struct arena *a)
{
	struct sandbox_pair pairs[FILTER_PAIRS_MAX];
	size_t n = 0;

	if (filter_pairs(text, a, pairs, &n) < 0)
		return;
	MUST(n <= FILTER_PAIRS_MAX);
	for (size_t i = 0; i < n; i++)
		MUST(pairs[i].name && pairs[i].value);
}

static void check_note(const char *text, size_t n, struct arena *a)
{
	struct buf first = { 0 }, second = { 0 };
	struct note_traffic traffic;
	struct jv_doc *doc = NULL;
	struct err err = { 0 };
	struct note note = { .template = "base", .internet = -1 };

	note_traffic(text, &traffic);
	if (jv_parse(text, n, 1 << 20, &doc, NULL) < 0)
		return;
	note.network = jv_root(doc);
	if (note_write(&note, a, &first, &err) == 0) {
		MUST(first.len <= SANDBOX_NOTE_MAX);
		MUST(note_is_of(buf_str(&first), "e2b", "base"));
		if (note_update(buf_str(&first), jv_root(doc), a, &second, &err) == 0)
			MUST(second.len <= SANDBOX_NOTE_MAX);
	} else {
		MUST(err.code != 0);
	}
	buf_done(&first);
	buf_done(&second);
	(void)jv_free(doc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *a = arena_create(1 << 20);
	char *text = malloc(size + 1);
	struct err err = { 0 };

	MUST(a && text);
	memcpy(text, data, size);
	text[size] = '\0';
	(void)client_check(text, NULL, &err);
	(void)client_check(NULL, text, &err);
	check_filter(text, a);
	check_note(text, strlen(text), a);
	free(text);
	(void)arena_free(a);
	return 0;
}
