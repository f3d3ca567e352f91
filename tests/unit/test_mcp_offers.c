/* Addresses of sandboxes' files, and pages of lists. */
#include "check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "mcp/box.h"
#include "mcp/page.h"
#include "mcp/prompts.h"
#include "json/jw.h"

static void an_address_names_a_sandbox_and_an_absolute_path(void **state)
{
	static const struct {
		const char *uri, *id, *path;
	} rows[] = {
		{ "sandbox://box/files/workspace/a.txt", "box", "/workspace/a.txt" },
		{ "sandbox://box/files/", "box", "/" },
		{ "sandbox://box/files/d/", "box", "/d" },
		{ "sandbox://box/files//", "box", "/" },
		{ "sandbox://b%6fx/files/%C3%BC%20%25", "box", "/\xc3\xbc %" },
		{ "sandbox://box/files/../x", "box", "/../x" }, /* the box's own to resolve */
	};
	struct mcp_box_uri at;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(mcp_box_uri_read(rows[i].uri, &at), 0);
		assert_string_equal(at.id, rows[i].id);
		assert_string_equal(at.path, rows[i].path);
	}
}

static void what_is_no_address_is_refused(void **state)
{
	static const char *const rows[] = { "",
					    "sandbox://",
					    "sandbox:///files/x",
					    "sandbox://box",
					    "sandbox://box/",
					    "sandbox://box/files",
					    "sandbox://box/filesx/y",
					    "sandbox://box/file/x",
					    "sandbox://box/files/%",
					    "sandbox://box/files/%0",
					    "sandbox://box/files/a%00b",
					    "sandbox://b%00x/files/a",
					    "sandbox://box/files/a?b",
					    "sandbox://box/files/a#b",
					    "SANDBOX://box/files/a",
					    "skill://a/SKILL.md" };
	static char longest[5000];
	struct mcp_box_uri at;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (mcp_box_uri_read(rows[i], &at) != -EINVAL)
			fail_msg("'%s' was taken", rows[i]);
	memset(longest, 'a', sizeof(longest) - 1);
	memcpy(longest, "sandbox://", 10);
	memcpy(longest + 10 + sizeof(at.id), "/files/", 7);
	assert_int_equal(mcp_box_uri_read(longest, &at), -EINVAL); /* the id */
	memcpy(longest, "sandbox://box/files/", 20);
	assert_int_equal(mcp_box_uri_read(longest, &at), -EINVAL); /* the path */
	longest[19 + sizeof(at.path) - 1] = '\0';
	assert_int_equal(mcp_box_uri_read(longest, &at), 0);
}

static void an_address_is_written_as_it_can_be_read(void **state)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct mcp_box_uri at;

	(void)state;
	assert_int_equal(mcp_box_uri_write(&b, "box", "/a b/?#%\n\xff"), 0);
	assert_string_equal(buf_str(&b), "sandbox://box/files/a%20b/%3F%23%25%0A%FF");
	assert_int_equal(mcp_box_uri_read(buf_str(&b), &at), 0);
	assert_string_equal(at.path, "/a b/?#%\n\xff");
}

/* ---- pages ---- */

/* The keys of one page of 250, and its cursor ("": none). */
static size_t page(struct arena *a, const char *cursor, char next[128])
{
	_cleanup_(buf_done) struct buf params = { 0 }, out = { 0 };
	static char keys[250][8];
	struct mcp_request q = { .arena = a };
	struct jv_doc *doc = NULL, *written = NULL;
	struct mcp_page p;
	struct jw w = jw_begin(&params);

	jw_object_begin(&w);
	if (cursor[0])
		jw_str_field(&w, "cursor", cursor);
	jw_object_end(&w);
	assert_int_equal(jw_end(&w), 0);
	assert_int_equal(jv_parse(params.data, params.len, 1 << 20, &doc, NULL), 0);
	q.params = jv_root(doc);
	assert_true(mcp_page_begin(&q, &p));
	for (size_t i = 0; i < 250; i++) {
		(void)snprintf(keys[i], sizeof(keys[i]), "k%03zu", i);
		(void)mcp_page_takes(&p, keys[i]);
	}
	w = jw_begin(&out);
	jw_object_begin(&w);
	mcp_page_end(&q, &p, &w);
	jw_object_end(&w);
	assert_int_equal(jw_end(&w), 0);
	assert_int_equal(jv_parse(out.data, out.len, 1 << 20, &written, NULL), 0);
	next[0] = '\0';
	if (jv_text(jv_get(jv_root(written), "nextCursor")))
		(void)snprintf(next, 128, "%s", jv_text(jv_get(jv_root(written), "nextCursor")));
	(void)jv_free(doc);
	(void)jv_free(written);
	return p.n;
}

static void pages_follow_each_other_without_a_gap(void **state)
{
	struct arena *a = arena_create(1 << 20);
	char one[128], two[128], three[128];

	(void)state;
	assert_int_equal(page(a, "", one), MCP_PAGE_MAX);
	assert_string_equal(one, "azA5OQ"); /* k099 */
	assert_int_equal(page(a, one, two), MCP_PAGE_MAX);
	assert_int_equal(page(a, two, three), 50);
	assert_string_equal(three, "");
	assert_int_equal(page(a, "eg", three), 0); /* behind all of them */
	assert_string_equal(three, "");
	(void)arena_free(a);
}

static void every_prompt_of_ours_has_what_a_list_needs(void **state)
{
	(void)state;
	assert_true(mcp_n_own_prompts > 0);
	for (size_t i = 0; i < mcp_n_own_prompts; i++) {
		const struct mcp_prompt *p = &mcp_own_prompts[i];

		assert_true(p->name && p->title && p->about && p->get);
		for (const struct mcp_prompt_arg *a = p->args; a && a->name; a++)
			assert_non_null(a->about);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_names_a_sandbox_and_an_absolute_path),
		cmocka_unit_test(what_is_no_address_is_refused),
		cmocka_unit_test(an_address_is_written_as_it_can_be_read),
		cmocka_unit_test(pages_follow_each_other_without_a_gap),
		cmocka_unit_test(every_prompt_of_ours_has_what_a_list_needs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
