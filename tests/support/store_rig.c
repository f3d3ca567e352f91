#include "store_rig.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "check.h"

#define WAIT_MS 20000

void store_rig_done(void *user, int r)
{
	struct store_results *results = user;

	assert_true(results->n < STORE_RIG_RESULTS);
	results->r[results->n++] = r;
}

void store_rig_dir(struct store_rig *rig)
{
	*rig = (struct store_rig){ .dir = "/tmp/holt-store-XXXXXX" };
	assert_non_null(mkdtemp(rig->dir));
}

void store_rig_open(struct store_rig *rig)
{
	struct err err = { 0 };

	if (store_open_sqlite(&(struct store_options){ .dir = rig->dir }, &rig->st, &err) < 0)
		fail_msg("%s", err.text);
}

void store_rig_open_memory(struct store_rig *rig)
{
	struct err err = { 0 };

	*rig = (struct store_rig){ 0 };
	if (store_open_memory(&rig->faults, &rig->st, &err) < 0)
		fail_msg("%s", err.text);
}

static void remove_dir(const char *path)
{
	_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = opendir(path);
	struct dirent *e;

	assert_true(fd >= 0 && d);
	while ((e = readdir(d)))
		(void)unlinkat(fd, e->d_name, 0);
	(void)closedir(d);
	assert_int_equal(rmdir(path), 0);
}

void store_rig_end(struct store_rig *rig)
{
	store_close(&rig->st);
	if (rig->dir[0])
		remove_dir(rig->dir);
}

sqlite3 *store_rig_beside(const struct store_rig *rig)
{
	char path[128];
	sqlite3 *db;

	assert_int_equal(str_format(path, sizeof(path), "%s/holt.db", rig->dir), 0);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_busy_timeout(db, 5000), SQLITE_OK);
	return db;
}

void store_rig_wait(const struct store *st, const size_t *count, size_t want)
{
	uint64_t end = clock_now_ms() + WAIT_MS;

	while (*count < want) {
		struct pollfd p = { .fd = store_fd(st), .events = POLLIN };
		uint64_t now = clock_now_ms();

		if (now >= end)
			fail_msg("%zu of %zu callbacks came", *count, want);
		(void)poll(&p, 1, (int)(end - now));
		if (p.revents & POLLIN)
			store_dispatch(st);
	}
}

static int wait_one(const struct store *st, struct store_results *results, int r)
{
	assert_int_equal(r, 0);
	store_rig_wait(st, &results->n, 1);
	assert_int_equal(results->n, 1);
	return results->r[0];
}

int store_rig_put_key(const struct store *st, const struct key_row *row)
{
	struct store_results results = { .n = 0 };

	return wait_one(st, &results, store_put_key(st, row, store_rig_done, &results));
}

int store_rig_put_sandbox(const struct store *st, const struct sandbox_row *row)
{
	struct store_results results = { .n = 0 };

	return wait_one(st, &results, store_put_sandbox(st, row, store_rig_done, &results));
}

int store_rig_put_execution(const struct store *st, const struct execution_row *row)
{
	struct store_results results = { .n = 0 };

	return wait_one(st, &results, store_put_execution(st, row, store_rig_done, &results));
}

int store_rig_probe(const struct store *st)
{
	struct store_results results = { .n = 0 };

	return wait_one(st, &results, store_probe(st, store_rig_done, &results));
}

static void note_sandbox(void *user, int r, const struct sandbox_row *rows, size_t n, bool more)
{
	(void)more;
	assert_true(r == -ENOENT || (r == 0 && n == 1 && rows));
	store_rig_done(user, r);
}

bool store_rig_has_sandbox(const struct store *st, const char *id)
{
	struct store_results results = { .n = 0 };

	return wait_one(st, &results, store_get_sandbox(st, id, note_sandbox, &results)) == 0;
}

struct key_row store_rig_key(const char *id)
{
	struct key_row row = {
		.id = id,
		.name = "laptop",
		.owner = "ada",
		.role = 2,
		.created_ms = 1,
		.expires_ms = 2,
		.revoked_ms = 3,
		.last_used_ms = 4,
		.scopes = 0x80000005,
		.sandbox_id = "s9",
	};

	for (size_t i = 0; i < STORE_HASH_LEN; i++)
		row.hash[i] = (uint8_t)(id[i % strlen(id)] + i);
	return row;
}

struct sandbox_row store_rig_sandbox(const char *id)
{
	return (struct sandbox_row){
		.id = id,
		.owner = "ada",
		.name = "",
		.box_id = "abcdefghij0123456789",
		.template = "python",
		.key_id = "k9",
		.reason = "none",
		.state = 1,
		.level = 200,
		.is_live = true,
		.flags = 0xfedcba98,
		.spec = "{\"memory\":1}",
		.env = "{\"A\":\"b\"}",
		.metadata = "{\"team\":\"red\",\"quote\":\"a\\\"b\"}",
		.created_ms = 1700000000001,
		.updated_ms = 1700000000002,
		.ended_ms = 3,
		.expires_ms = 4,
		.remaining_ms = 5,
		.timeout_ms = 6,
		.idle_ms = 7,
	};
}

struct execution_row store_rig_execution(const char *id, const char *sandbox_id)
{
	return (struct execution_row){
		.id = id,
		.sandbox_id = sandbox_id,
		.owner = "ada",
		.kind = 1,
		.state = 3,
		.is_live = true,
		.flags = 0x80000001,
		.guest_id = 0xffffffff,
		.pid = 0xfffffffe,
		.exit_code = -1,
		.signal = 9,
		.reason = "killed",
		.started_ms = 11,
		.ended_ms = 12,
		.wall_us = 13,
		.cpu_us = 14,
		.peak_bytes = UINT64_MAX,
		.output_bytes = 16,
		.output_start = 17,
		.content = "{\"code\":\"print(1)\"}",
		.output = "a\0b",
		.output_len = 3,
	};
}

int store_rig_setup_disk(void **state)
{
	struct store_rig *rig = malloc(sizeof(*rig));

	assert_non_null(rig);
	store_rig_dir(rig);
	store_rig_open(rig);
	*state = rig;
	return 0;
}

int store_rig_setup_memory(void **state)
{
	struct store_rig *rig = malloc(sizeof(*rig));

	assert_non_null(rig);
	store_rig_open_memory(rig);
	*state = rig;
	return 0;
}

int store_rig_teardown(void **state)
{
	store_rig_end(*state);
	free(*state);
	return 0;
}

const struct store *store_rig_of(void **state)
{
	struct store_rig *rig = *state;

	return &rig->st;
}

char *store_rig_text(size_t n)
{
	char *text = malloc(n + 1);

	assert_non_null(text);
	memset(text, 'x', n);
	text[n] = '\0';
	return text;
}

void store_rig_same_sandbox(const struct sandbox_row *a, const struct sandbox_row *b)
{
	assert_string_equal(a->id, b->id);
	assert_string_equal(a->owner, b->owner);
	assert_string_equal(a->name, b->name);
	assert_string_equal(a->box_id, b->box_id);
	assert_string_equal(a->template, b->template);
	assert_string_equal(a->key_id, b->key_id);
	assert_string_equal(a->reason, b->reason);
	assert_int_equal(a->state, b->state);
	assert_int_equal(a->level, b->level);
	assert_int_equal(a->is_live, b->is_live);
	assert_int_equal(a->flags, b->flags);
	assert_string_equal(a->spec, b->spec);
	assert_string_equal(a->env, b->env);
	assert_string_equal(a->metadata, b->metadata);
	assert_int_equal(a->created_ms, b->created_ms);
	assert_int_equal(a->updated_ms, b->updated_ms);
	assert_int_equal(a->ended_ms, b->ended_ms);
	assert_int_equal(a->expires_ms, b->expires_ms);
	assert_int_equal(a->remaining_ms, b->remaining_ms);
	assert_int_equal(a->timeout_ms, b->timeout_ms);
	assert_int_equal(a->idle_ms, b->idle_ms);
}

void store_rig_same_execution(const struct execution_row *a, const struct execution_row *b)
{
	assert_string_equal(a->id, b->id);
	assert_string_equal(a->sandbox_id, b->sandbox_id);
	assert_string_equal(a->owner, b->owner);
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->state, b->state);
	assert_int_equal(a->is_live, b->is_live);
	assert_int_equal(a->flags, b->flags);
	assert_int_equal(a->guest_id, b->guest_id);
	assert_int_equal(a->pid, b->pid);
	assert_int_equal(a->exit_code, b->exit_code);
	assert_int_equal(a->signal, b->signal);
	assert_string_equal(a->reason, b->reason);
	assert_int_equal(a->started_ms, b->started_ms);
	assert_int_equal(a->ended_ms, b->ended_ms);
	assert_true(a->wall_us == b->wall_us && a->cpu_us == b->cpu_us);
	assert_true(a->peak_bytes == b->peak_bytes && a->output_bytes == b->output_bytes);
	assert_true(a->output_start == b->output_start);
	assert_string_equal(a->content, b->content);
}

void store_rig_note(struct store_seen *s, const char *id)
{
	size_t at = strlen(s->ids);

	assert_int_equal(str_format(s->ids + at, sizeof(s->ids) - at, "%s ", id), 0);
	s->rows++;
}

void store_rig_see_sandboxes(void *user, int r, const struct sandbox_row *rows, size_t n, bool more)
{
	struct store_seen *s = user;

	for (size_t i = 0; i < n; i++)
		store_rig_note(s, rows[i].id);
	if (n > 0 && s->want.id)
		store_rig_same_sandbox(&rows[n - 1], &s->want);
	s->r = r;
	s->more = more;
	s->calls++;
}

void store_rig_see_executions(void *user, int r, const struct execution_row *rows, size_t n,
			      bool more)
{
	struct store_seen *s = user;

	for (size_t i = 0; i < n; i++) {
		store_rig_note(s, rows[i].id);
		assert_null(rows[i].output);
		assert_int_equal(rows[i].output_len, 0);
	}
	s->r = r;
	s->more = more;
	s->calls++;
}
