/* What a template says, as it is checked, kept and handed on. */
#include "sandbox/makeup.h"

#include "check.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "sandbox/kit.h"
#include "sandbox/recipe.h"
#include "sandbox/template_own.h"
#include "spec/launch.h"
#include "json/jv.h"
#include "json/jw.h"

static const char *const paths[] = { "/opt/a", "/var/b" };
static const char *const modules[] = { "json", "os.path" };

static struct makeup example(void)
{
	return (struct makeup){ .user = "root",
				.workdir = "/srv",
				.writable = { paths, 2 },
				.preload = { modules, 2 },
				.start = { .command = "exec serve",
					   .ready_port = 80,
					   .ready_http = "/up",
					   .timeout_ms = 1500 },
				.root = ROOT_LAYERS,
				.profile = 2,
				.strict = TEMPLATE_STRICT_PROC };
}

static void assert_same(const struct makeup *a, const struct makeup *b)
{
	assert_string_equal(a->user, b->user);
	assert_string_equal(a->workdir, b->workdir);
	assert_int_equal(a->writable_root, b->writable_root);
	assert_int_equal(a->writable.len, b->writable.len);
	for (size_t i = 0; i < a->writable.len; i++)
		assert_string_equal(a->writable.items[i], b->writable.items[i]);
	assert_int_equal(a->preload.len, b->preload.len);
	for (size_t i = 0; i < a->preload.len; i++)
		assert_string_equal(a->preload.items[i], b->preload.items[i]);
	assert_string_equal(a->start.command, b->start.command);
	assert_string_equal(a->start.ready_http, b->start.ready_http);
	assert_null(b->start.ready_command);
	assert_int_equal(a->start.ready_port, b->start.ready_port);
	assert_int_equal(a->start.timeout_ms, b->start.timeout_ms);
	assert_int_equal(a->root, b->root);
	assert_int_equal(a->profile, b->profile);
	assert_int_equal(a->strict, b->strict);
}

static struct jv_doc *parse(const char *text)
{
	struct jv_doc *doc = NULL;

	assert_int_equal(jv_parse(text, strlen(text), 1 << 20, &doc, NULL), 0);
	return doc;
}

static void what_is_said_comes_back_from_the_store(void **state)
{
	struct kit k = { .runtime = "python", .make = example() }, back = { 0 }, copy = { 0 };
	struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	struct jv_doc *doc;

	(void)state;
	(void)layers_push(&k.layers, "aaaaaaaaaaaaaaaaaaaa");
	jw_object_begin(&w);
	kit_write(&k, &w);
	jw_object_end(&w);
	assert_int_equal(jw_end(&w), 0);
	doc = parse(buf_str(&b));
	assert_int_equal(kit_read(jv_root(doc), &back), 0);
	(void)jv_free(doc);
	buf_done(&b);
	assert_string_equal(back.runtime, "python");
	assert_true(layers_are_same(&k.layers, &back.layers));
	assert_same(&k.make, &back.make);
	assert_int_equal(kit_copy(&back, &copy), 0);
	kit_done(&back);
	assert_same(&k.make, &copy.make);
	kit_done(&copy);
}

static void old_records_say_nothing(void **state)
{
	static const char old[] =
		"{\"about\":\"x\",\"base\":\"bash\",\"limits\":{\"memory\":268435456},"
		"\"env\":{\"A\":\"1\"},\"layers\":[]}";
	struct template_own *t = NULL;
	void *data = NULL;

	(void)state;
	assert_int_equal(template_kind.parse(old, &data), 0);
	t = data;
	assert_true(makeup_is_plain(&t->make));
	assert_true(makeup_needs_no_box(&t->make));
	assert_string_equal(t->source, "");
	assert_int_equal(t->env.len, 1);
	template_kind.free(t);
}

static void damaged_records_are_refused(void **state)
{
	static const char *const bad[] = {
		"{\"about\":\"\",\"base\":\"bash\",\"root\":9}",
		"{\"about\":\"\",\"base\":\"bash\",\"profile\":9}",
		"{\"about\":\"\",\"base\":\"bash\",\"user\":7}",
		"{\"about\":\"\",\"base\":\"bash\",\"start\":{}}",
		"{\"about\":\"\",\"base\":\"bash\",\"writablePaths\":\"/a\"}",
		"{\"about\":\"\",\"base\":\"bash\",\"start\":{\"command\":\"x\",\"readyPort\":0}}",
		"{\"base\":\"bash\"}",
		"[]",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		void *data = NULL;

		assert_int_equal(template_kind.parse(bad[i], &data), -EINVAL);
		assert_null(data);
	}
}

static void boxes_are_told_what_concerns_them(void **state)
{
	struct kit k = { .runtime = "python", .make = example() };
	struct recipe r;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(kit_recipe(&k, &r, &err), 0);
	assert_int_equal(r.root, ROOT_LAYERS);
	assert_string_equal(r.preload, "json,os.path");
	assert_string_equal(r.writable, "/opt/a:/var/b");
	assert_true(r.flags & TEMPLATE_WRITABLE_ROOT);
	assert_true(r.flags & TEMPLATE_STRICT_PROC);
	assert_int_equal(kit_snapshot_flags(&k), SNAPSHOT_ROOT);
	k.make.writable_root = true; /* then all of it can be written to */
	assert_int_equal(kit_recipe(&k, &r, &err), 0);
	assert_string_equal(r.writable, "");
	k.make = (struct makeup){ .user = "x", .workdir = "/", .start.command = "y" };
	assert_true(makeup_needs_no_box(&k.make));
	assert_int_equal(kit_recipe(&k, &r, &err), 0);
	assert_false(r.flags & TEMPLATE_WRITABLE_ROOT);
	(void)str_copy(k.runtime, sizeof(k.runtime), "cobol");
	assert_int_equal(kit_recipe(&k, &r, &err), -EINVAL);
}

static void a_template_with_many_layers_leaves_room_on_top(void **state)
{
	struct template_own t = { .base = "bash" };
	struct layers rest = { 0 };
	struct kit k;
	char id[ID_LEN + 1] = "aaaaaaaaaaaaaaaaaaaa";

	(void)state;
	for (int i = 0; i < LAYERS_MAX; i++) {
		id[0] = (char)('a' + i);
		assert_int_equal(layers_push(&t.layers, id), 0);
	}
	k = kit_of_template(&t, &rest);
	assert_int_equal(k.layers.n, KIT_LAYERS_MAX);
	assert_int_equal(rest.n, LAYERS_MAX - KIT_LAYERS_MAX);
	assert_string_equal(rest.ids[0], t.layers.ids[KIT_LAYERS_MAX]);
	t.layers.n = 3;
	k = kit_of_template(&t, &rest);
	assert_int_equal(k.layers.n, 3);
	assert_int_equal(rest.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_said_comes_back_from_the_store),
		cmocka_unit_test(old_records_say_nothing),
		cmocka_unit_test(damaged_records_are_refused),
		cmocka_unit_test(boxes_are_told_what_concerns_them),
		cmocka_unit_test(a_template_with_many_layers_leaves_room_on_top),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
