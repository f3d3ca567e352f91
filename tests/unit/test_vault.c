/* Secrets over the registry and a store in memory. */
#include "check.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "fault.h"
#include "sandbox/quota.h"
#include "sandbox/registry.h"
#include "sandbox/vault.h"
#include "sandbox_rig.h"

static const struct jv_pair pairs[] = { { "for", "tests" }, { "of", "\"ann\"" } };
static const struct vault_wish wish = { .name = "Key",
					.value = "hush \"\n\x01",
					.metadata = { pairs, 2 } };

struct secret_told {
	int calls;
	struct object *o;
	struct err err;
};

static void on_secret(void *user, struct object *o, const struct err *err)
{
	struct secret_told *t = user;

	t->calls++;
	t->o = o;
	t->err = err ? *err : (struct err){ 0 };
	assert_true(!err || !strstr(err->text, "hush"));
}

static struct secret_told add(struct sandbox_rig *g, const char *owner, const struct vault_wish *w)
{
	struct secret_told told = { 0 };

	vault_add(g->all, owner, w, on_secret, &told);
	rig_run(g);
	assert_int_equal(told.calls, 1);
	return told;
}

static void live_again(struct sandbox_rig *g)
{
	rig_death(g);
	rig_birth(g);
	rig_ready(g);
	rig_run(g);
}

/* What the store has is what was said, whoever will read it. */
static void assert_kept(const struct object *o, uint64_t version, const char *value)
{
	const struct vault_secret *s = o->data;
	struct jv_doc *doc = NULL;

	assert_int_equal(s->version, version);
	assert_int_equal(s->bytes, strlen(o->text));
	assert_int_equal(jv_parse(o->text, strlen(o->text), OBJECT_TEXT_MAX, &doc, NULL), 0);
	assert_string_equal(jv_text(jv_get(jv_root(doc), "value")), value);
	(void)jv_free(doc);
}

static void a_secret_outlives_its_daemon(void **state)
{
	struct vault_wish next = { .value = "hush 2", .metadata.len = VAULT_UNSAID };
	char id[ID_LEN + 1], full[ID_LEN + 8];
	struct secret_told told = { 0 };
	struct vault_secret *s;
	struct sandbox_rig g;

	(void)state;
	rig_open(&g);
	(void)str_copy(id, sizeof(id), add(&g, "ann", &wish).o->id);
	live_again(&g);
	assert_kept(vault_find(g.all, "ann", "key"), 1, wish.value);
	vault_change(g.all, id, &next, on_secret, &told);
	rig_run(&g);
	assert_int_equal(told.err.code, 0);
	live_again(&g);
	assert_int_equal(str_format(full, sizeof(full), VAULT_ID_PREFIX "%s", id), 0);
	assert_ptr_equal(vault_find(g.all, "ann", full), vault_find(g.all, "ann", "KEY"));
	assert_kept(vault_find(g.all, "ann", full), 2, "hush 2");
	s = vault_find(g.all, "ann", full)->data;
	assert_int_equal(s->metadata.len, 2);
	assert_string_equal(s->metadata.items[1].value, "\"ann\"");
	assert_null(vault_find(g.all, "bob", full));
	assert_null(vault_find(g.all, "bob", "key"));
	assert_null(vault_find(g.all, "ann", id)); /* without the prefix it is a name */
	assert_null(vault_find(g.all, "ann", ""));
	rig_close(&g);
}

static void a_change_that_fails_leaves_the_version(void **state)
{
	struct vault_wish next = { .value = "hush 2", .metadata = { 0 } };
	struct secret_told told = { 0 };
	struct object *o;
	struct sandbox_rig g;

	(void)state;
	rig_open(&g);
	o = add(&g, "ann", &wish).o;
	g.faults.fail_in = 1;
	g.faults.fail_with = ENOSPC;
	vault_change(g.all, o->id, &next, on_secret, &told);
	rig_run(&g);
	assert_int_equal(told.err.code, ENOSPC);
	assert_kept(o, 1, wish.value);
	vault_change(g.all, o->id, &next, on_secret, &told);
	rig_run(&g);
	assert_kept(told.o, 2, "hush 2");
	assert_int_equal(((struct vault_secret *)told.o->data)->metadata.len, 0);
	vault_change(g.all, "nobody", &next, on_secret, &told);
	assert_int_equal(told.err.code, ENOENT);
	rig_close(&g);
}

static void they_go_with_their_owner_and_only_with_them(void **state)
{
	struct sandbox_rig g;

	(void)state;
	rig_open(&g);
	assert_int_equal(add(&g, "ann", &wish).err.code, 0);
	assert_int_equal(add(&g, "bob", &wish).err.code, 0);
	sandboxes_end_owner(g.all, "ann", "gone");
	rig_run(&g);
	live_again(&g);
	assert_null(vault_find(g.all, "ann", "key"));
	assert_non_null(vault_find(g.all, "bob", "key"));
	rig_close(&g);
}

static void those_on_their_way_go_with_their_owner_too(void **state)
{
	struct vault_wish other = { .name = "other", .value = "hush", .metadata = { 0 } };
	struct secret_told made = { 0 }, changed = { 0 };
	struct sandbox_rig g;
	struct object *o;

	(void)state;
	rig_open(&g);
	o = add(&g, "ann", &wish).o;
	g.faults.is_held = true;
	vault_add(g.all, "ann", &other, on_secret, &made);
	vault_change(g.all, o->id, &other, on_secret, &changed);
	vault_end_owner(g.all, "ann");
	assert_int_equal(made.calls + changed.calls, 0);
	g.faults.is_held = false;
	rig_run(&g);
	assert_int_equal(made.calls + changed.calls, 2);
	assert_null(vault_find(g.all, "ann", "key"));
	assert_null(vault_find(g.all, "ann", "other"));
	live_again(&g);
	assert_null(vault_find(g.all, "ann", "key"));
	assert_null(vault_find(g.all, "ann", "other"));
	rig_close(&g);
}

static void a_store_that_refuses_keeps_them_and_is_asked_once(void **state)
{
	struct sandbox_rig g;

	(void)state;
	rig_open(&g);
	assert_int_equal(add(&g, "ann", &wish).err.code, 0);
	g.faults.refuse_in = 1;
	vault_end_owner(g.all, "ann");
	rig_run(&g);
	assert_non_null(vault_find(g.all, "ann", "key"));
	vault_end_owner(g.all, "ann");
	rig_run(&g);
	assert_null(vault_find(g.all, "ann", "key"));
	rig_close(&g);
}

static void they_count_on_their_owners_disk(void **state)
{
	struct quota used;
	struct sandbox_rig g;
	struct object *o;

	(void)state;
	rig_open(&g);
	o = add(&g, "ann", &wish).o;
	quota_of(g.all, "ann", NULL, &used);
	assert_int_equal(used.v[QUOTA_DISK], strlen(o->text));
	g.all->settings.quota.v[QUOTA_DISK] = strlen(o->text) - 1;
	assert_int_equal(add(&g, "bob", &wish).err.code, QUOTA_ERRNO);
	assert_null(vault_find(g.all, "bob", "key"));
	rig_close(&g);
}

static void what_is_damaged_is_no_secret(void **state)
{
	static const char *const bad[] = {
		"",
		"[]",
		"{}",
		"{\"version\":1}",
		"{\"value\":\"v\"}",
		"{\"version\":0,\"value\":\"v\"}",
		"{\"version\":1,\"value\":1}",
		"{\"version\":1,\"value\":\"v\",\"metadata\":{\"a\":1}}",
	};
	void *data = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(vault_kind.parse(bad[i], &data), -EINVAL);
	assert_int_equal(vault_kind.parse("{\"version\":1,\"value\":\"v\",\"new\":1}", &data), 0);
	vault_kind.free(data);
}

static void without_memory_nothing_is_kept(void **state)
{
	struct sandbox_rig g;

	(void)state;
	rig_open(&g);
	for (size_t n = 1;; n++) {
		struct secret_told told = { 0 };
		bool is_failed;

		fault_arm(n);
		vault_add(g.all, "ann", &wish, on_secret, &told);
		is_failed = fault_disarm();
		rig_run(&g);
		assert_int_equal(told.calls, 1);
		if (told.err.code == 0)
			break;
		assert_true(is_failed);
		assert_null(vault_find(g.all, "ann", "key"));
	}
	assert_non_null(vault_find(g.all, "ann", "key"));
	rig_close(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_secret_outlives_its_daemon),
		cmocka_unit_test(a_change_that_fails_leaves_the_version),
		cmocka_unit_test(they_go_with_their_owner_and_only_with_them),
		cmocka_unit_test(those_on_their_way_go_with_their_owner_too),
		cmocka_unit_test(a_store_that_refuses_keeps_them_and_is_asked_once),
		cmocka_unit_test(they_count_on_their_owners_disk),
		cmocka_unit_test(what_is_damaged_is_no_secret),
		cmocka_unit_test(without_memory_nothing_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
