/* Images of good tools and of enemies: what comes out is one clean tar, or a reason. */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "image/image.h"
#include "image_rig.h"

#define LIMITS                \
	{                     \
		1 << 20, 1000 \
	}

/* Reads all of it; 0 or the errno. The members, one a line: kind, owner, path, target. */
static int read_image(const struct image_rig *g, const char *name, enum image_kind kind,
		      struct filter_limits limits, struct buf *tar, struct err *err)
{
	_cleanup_(image_free_p) struct image *i = NULL;
	char piece[1000];
	ssize_t n = 0;
	int r = image_open(&(struct image_wish){ g->dir, name, kind, limits }, &i, err);

	while (r == 0 && (r = image_check(i, err)) > 0)
		r = 0;
	while (r == 0 && (n = image_read(i, piece, sizeof(piece), err)) > 0)
		assert_int_equal(buf_append(tar, piece, (size_t)n), 0);
	r = r < 0 ? r : (int)n;
	if (r < 0) {
		assert_int_equal(err->code, -r);
		assert_true(err->text[0] != '\0');
	}
	return -r;
}

static void list(const struct buf *tar, struct buf *ret)
{
	static const char kinds[] = {
		[TAR_FILE] = 'f', [TAR_DIR] = 'd', [TAR_SYMLINK] = 's', [TAR_HARDLINK] = 'h'
	};
	_cleanup_(tar_reader_done) struct tar_reader t;
	const uint8_t *p = (const uint8_t *)tar->data;
	size_t n = tar->len;
	int r;

	tar_reader_init(&t);
	while ((r = tar_read(&t, &p, &n, NULL)) > 0) {
		if (r == TAR_MEMBER)
			(void)buf_printf(ret, "%c%u %s%s%s\n", kinds[t.member.type], t.member.uid,
					 t.member.path, t.member.link[0] ? ">" : "", t.member.link);
		if (r == TAR_DATA)
			(void)buf_printf(ret, "=%.*s\n", (int)t.data_len, (const char *)t.data);
	}
	assert_int_equal(r, 0);
	assert_int_equal(tar_read_finish(&t, NULL), 0);
}

static void expect(const struct image_rig *g, const char *name, enum image_kind kind,
		   const char *want)
{
	_cleanup_(buf_done) struct buf tar = { 0 }, seen = { 0 };
	struct err err = { 0 };
	int r = read_image(g, name, kind, (struct filter_limits)LIMITS, &tar, &err);

	if (r != 0)
		fail_msg("%s: %s", name, err.text);
	list(&tar, &seen);
	assert_string_equal(buf_str(&seen), want);
}

static void refuse(const struct image_rig *g, const char *name, enum image_kind kind, int code,
		   const char *why)
{
	_cleanup_(buf_done) struct buf tar = { 0 };
	struct err err = { 0 };
	int r = read_image(g, name, kind, (struct filter_limits)LIMITS, &tar, &err);

	if (r != code || !strstr(err.text, why))
		fail_msg("%s: %d '%s', wanted %d '%s'", name, r, err.text, code, why);
}

static void two_layers(struct buf *l)
{
	image_dir(&l[0], "etc");
	image_file(&l[0], "etc/old", "1");
	image_file(&l[0], "etc/new", "2");
	image_file(&l[1], "./etc/new", "3");
	image_file(&l[1], "etc/.wh.old", "");
	image_file(&l[1], "opt/.wh..wh..opq", "");
	image_link(&l[1], TAR_HARDLINK, "b", "/etc/new");
}

#define TWO_LAYERS                                                                         \
	"d0 etc\nf0 etc/old\n=1\nf0 etc/new\n=2\nf0 etc/.wh.old\nf0 opt/.wh..wh..opq\nf0 " \
	"etc/new\n=3\nh0 b>etc/new\n"

static void archives_of_docker_and_oci_are_read(void **state)
{
	static const struct image_shape shapes[] = {
		{ .is_docker = true },
		{ .is_docker = true, .is_gzip = true },
		{ 0 },
		{ .is_gzip = true },
	};
	struct image_rig *g = *state;

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct buf l[2] = { { 0 } };

		two_layers(l);
		image_save(g, "a.tar", l, 2, &shapes[i]);
		expect(g, "a.tar", IMAGE_OCI, TWO_LAYERS);
	}
}

static void a_layer_may_be_a_link_to_another(void **state)
{
	struct image_rig *g = *state;
	struct buf l[2] = { { 0 } };

	image_file(&l[0], "a", "x");
	image_file(&l[1], "a", "x");
	image_save(g, "a.tar", l, 2, &(struct image_shape){ .is_docker = true, .is_link = true });
	expect(g, "a.tar", IMAGE_OCI, "f0 a\n=x\nf0 a\n=x\n");
}

static void what_an_image_says_about_its_programs_is_told(void **state)
{
	_cleanup_(image_free_p) struct image *i = NULL;
	struct image_rig *g = *state;
	const struct image_config *c;
	struct buf l = { 0 };
	struct err err = { 0 };

	image_file(&l, "a", "");
	image_save(g, "a.tar", &l, 1,
		   &(struct image_shape){ .config = "{\"User\":\"app:app\",\"WorkingDir\":\"/srv\","
						    "\"Env\":[\"PATH=/bin\",\"A=b\"],"
						    "\"Entrypoint\":[\"/bin/sh\"],\"Cmd\":null,"
						    "\"Labels\":{\"x\":\"y\"}}" });
	assert_int_equal(
		image_open(&(struct image_wish){ g->dir, "a.tar", IMAGE_OCI, LIMITS }, &i, &err),
		0);
	c = image_config(i);
	assert_string_equal(c->user, "app:app");
	assert_string_equal(c->workdir, "/srv");
	assert_int_equal(c->env.len, 2);
	assert_string_equal(c->env.items[1], "A=b");
	assert_int_equal(c->entrypoint.len, 1);
	assert_int_equal(c->cmd.len, 0);
}

static void tars_are_read_plain_and_gzip(void **state)
{
	struct image_rig *g = *state;
	_cleanup_(buf_done) struct buf b = { 0 }, zip = { 0 };

	image_raw(&b, '5', "./");
	image_add(&b, &(struct tar_member){ .type = TAR_FILE, .path = "a", .uid = 33, .gid = 33 },
		  "x", 1);
	image_add(&b, &(struct tar_member){ .type = TAR_FILE, .path = "b", .uid = 100000 }, "", 0);
	image_raw(&b, '3', "dev/sda");
	image_raw(&b, '6', "fifo");
	image_file(&b, ".wh.not-a-whiteout-here", "");
	image_link(&b, TAR_SYMLINK, "l", "../../etc/passwd");
	assert_int_equal(tar_write_end(&b), 0);
	image_rig_write(g, "a.tar", &b);
	expect(g, "a.tar", IMAGE_TAR, "f33 a\n=x\nf65534 b\ns0 l>../../etc/passwd\n");
	image_gzip(&b, &zip);
	image_rig_write(g, "a.tgz", &zip);
	expect(g, "a.tgz", IMAGE_TAR, "f33 a\n=x\nf65534 b\ns0 l>../../etc/passwd\n");
}

static void gzip_in_several_streams_is_one_layer(void **state)
{
	struct image_rig *g = *state;
	_cleanup_(buf_done) struct buf a = { 0 }, b = { 0 }, zip = { 0 };

	image_file(&a, "a", "1");
	image_file(&b, "b", "2");
	assert_int_equal(tar_write_end(&b), 0);
	image_gzip(&a, &zip);
	image_gzip(&b, &zip);
	assert_int_equal(buf_append(&zip, (char[100]){ 0 }, 100), 0);
	image_rig_write(g, "a.tgz", &zip);
	expect(g, "a.tgz", IMAGE_TAR, "f0 a\n=1\nf0 b\n=2\n");
}

static void a_directory_is_read_without_following_links(void **state)
{
	struct image_rig *g = *state;
	_cleanup_(buf_done) struct buf tar = { 0 }, seen = { 0 }, x = { 0 };
	char path[64], to[64];
	struct err err = { 0 };

	(void)snprintf(path, sizeof(path), "%s/root", g->dir);
	assert_int_equal(mkdir(path, 0755), 0);
	(void)snprintf(path, sizeof(path), "%s/root/sub", g->dir);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(buf_puts(&x, "x"), 0);
	image_rig_write(g, "root/sub/a", &x);
	(void)snprintf(path, sizeof(path), "%s/root/sub/a", g->dir);
	(void)snprintf(to, sizeof(to), "%s/root/sub/b", g->dir);
	assert_int_equal(link(path, to), 0);
	(void)snprintf(to, sizeof(to), "%s/root/out", g->dir);
	assert_int_equal(symlink("/etc", to), 0);
	(void)snprintf(to, sizeof(to), "%s/root/fifo", g->dir);
	assert_int_equal(mkfifo(to, 0600), 0);
	assert_int_equal(read_image(g, "root", IMAGE_DIR, (struct filter_limits)LIMITS, &tar, &err),
			 0);
	list(&tar, &seen);
	assert_non_null(strstr(buf_str(&seen), "out>/etc\n"));
	assert_null(strstr(buf_str(&seen), "passwd"));
	assert_null(strstr(buf_str(&seen), "fifo"));
	assert_non_null(strstr(buf_str(&seen), "=x\n"));
	assert_non_null(strstr(buf_str(&seen), "h")); /* the other name */
}

static void only_what_is_below_the_directory_can_be_named(void **state)
{
	static const char *const paths[] = { "../etc/passwd", "/etc/passwd", "link", "sub/../../x",
					     "links/passwd" };
	struct image_rig *g = *state;
	char path[64];

	(void)snprintf(path, sizeof(path), "%s/link", g->dir);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	(void)snprintf(path, sizeof(path), "%s/links", g->dir);
	assert_int_equal(symlink("/etc", path), 0);
	(void)snprintf(path, sizeof(path), "%s/sub", g->dir);
	assert_int_equal(mkdir(path, 0755), 0);
	(void)snprintf(path, sizeof(path), "%s/fifo", g->dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		refuse(g, paths[i], IMAGE_TAR, EINVAL, "leads out");
	refuse(g, "none", IMAGE_TAR, ENOENT, "none");
	refuse(g, "sub", IMAGE_TAR, EINVAL, "not a file");
	refuse(g, "fifo", IMAGE_OCI, EINVAL, "not a file");
	refuse(g, "fifo", IMAGE_DIR, ENOTDIR, "fifo");
	refuse(g, "links", IMAGE_DIR, EINVAL, "leads out");
}

struct bad {
	const char *why;
	int code;
	struct image_shape shape;
};

static void images_that_are_not_what_they_say_are_refused(void **state)
{
	static const struct bad table[] = {
		{ "digest says", EBADMSG, { .is_damaged = true } },
		{ "digest says", EBADMSG, { .is_damaged = true, .is_docker = true } },
		{ "gzip data is damaged", EBADMSG, { .is_damaged = true, .is_gzip = true } },
		{ "names 1", EINVAL, { .lacks_diff_id = true } },
		{ "not for linux", EINVAL, { .machine = "vax" } },
		{ "index.json", EINVAL, { .index = "[" } },
		{ "index.json", EINVAL, { .index = "{\"manifests\":{}}" } },
		{ "none in the archive", EINVAL, { .index = "{\"manifests\":[]}" } },
		{ "only sha256", ENOTSUP, { .index = "{\"manifests\":[{\"digest\":\"md5:1\"}]}" } },
		{ "malformed",
		  EINVAL,
		  { .index = "{\"manifests\":[{\"digest\":\"sha256:..\"}]}" } },
		{ "malformed",
		  EINVAL,
		  { .index = "{\"manifests\":[{\"digest\":\"sha256:../../../../etc/passwd\"}]}" } },
		{ "digest is missing", EINVAL, { .index = "{\"manifests\":[{\"digest\":1}]}" } },
		{ "digest is missing", EINVAL, { .manifest = "{\"layers\":[]}" } },
		{ "want a list", EINVAL, { .is_docker = true, .manifest = "{}" } },
		{ "has 2 images", EINVAL, { .is_docker = true, .manifest = "[{},{}]" } },
		{ "a name is missing", EINVAL, { .is_docker = true, .manifest = "[{}]" } },
		{ "no layers",
		  EINVAL,
		  { .is_docker = true, .manifest = "[{\"Config\":\"a\",\"Layers\":[]}]" } },
		{ "there is no",
		  EINVAL,
		  { .is_docker = true, .manifest = "[{\"Config\":\"a\",\"Layers\":[\"b\"]}]" } },
		{ "there is no",
		  EINVAL,
		  { .is_docker = true,
		    .manifest = "[{\"Config\":\"../../etc/passwd\",\"Layers\":[\"b\"]}]" } },
		{ "config.Env", E2BIG, { .config = "{\"Env\":[\"\\u0000\"]}" } },
		{ "config.User", EINVAL, { .config = "{\"User\":7}" } },
	};
	struct image_rig *g = *state;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const struct bad *t = &table[i];
		_cleanup_(buf_done) struct buf tar = { 0 };
		struct buf l[2] = { { 0 } };
		struct err err = { 0 };
		int r;

		two_layers(l);
		image_save(g, "a.tar", l, 2, &t->shape);
		r = read_image(g, "a.tar", IMAGE_OCI, (struct filter_limits)LIMITS, &tar, &err);
		if (r == 0 || !strstr(err.text, t->why) || (r != t->code && r != EINVAL))
			fail_msg("%zu: %d '%s', wanted %d '%s'", i, r, err.text, t->code, t->why);
	}
}

static void too_many_layers_are_refused(void **state)
{
	struct image_rig *g = *state;
	_cleanup_(buf_done) struct buf m = { 0 };
	struct buf l = { 0 };

	(void)buf_puts(&m, "[{\"Config\":\"a\",\"Layers\":[\"0\"");
	for (int i = 0; i < 128; i++)
		(void)buf_puts(&m, ",\"0\"");
	(void)buf_puts(&m, "]}]");
	image_file(&l, "a", "");
	image_save(g, "a.tar", &l, 1,
		   &(struct image_shape){ .is_docker = true, .manifest = m.data });
	refuse(g, "a.tar", IMAGE_OCI, E2BIG, "129 layers");
}

/* One tar, and what is wrong with it. */
static void refuse_tar(const struct image_rig *g, struct buf *b, int code, const char *why)
{
	assert_int_equal(tar_write_end(b), 0);
	image_rig_write(g, "bad.tar", b);
	refuse(g, "bad.tar", IMAGE_TAR, code, why);
	buf_done(b);
}

static void names_that_lead_out_and_links_to_outside_are_refused(void **state)
{
	struct image_rig *g = *state;
	struct buf b = { 0 };

	image_file(&b, "../x", "");
	refuse_tar(g, &b, EINVAL, "leads out");
	image_file(&b, "a/../../x", "");
	refuse_tar(g, &b, EINVAL, "leads out");
	image_link(&b, TAR_HARDLINK, "a", "../../etc/shadow");
	refuse_tar(g, &b, EINVAL, "leads out");
	image_link(&b, TAR_HARDLINK, "a", "/");
	refuse_tar(g, &b, EINVAL, "link to nothing");
	image_raw(&b, '2', "/");
	refuse_tar(g, &b, EINVAL, "no name");
}

static void bombs_are_bounded(void **state)
{
	static char zeros[4 << 20];
	struct image_rig *g = *state;
	struct buf b = { 0 }, zip = { 0 };
	char path[3000];

	image_add(&b, &(struct tar_member){ .type = TAR_FILE, .path = "big" }, zeros,
		  sizeof(zeros));
	refuse_tar(g, &b, EFBIG, "more than 1048576 bytes");
	for (int i = 0; i < 1001; i++)
		image_dir(&b, "d");
	refuse_tar(g, &b, EFBIG, "more than 1000 files");
	memset(path, 'a', sizeof(path));
	for (size_t i = 1; i < sizeof(path); i += 2)
		path[i] = '/';
	path[sizeof(path) - 1] = '\0';
	image_file(&b, path, "");
	refuse_tar(g, &b, EFBIG, "too deep");
	/* Zeros behind the end, which gzip makes small. */
	image_file(&b, "a", "");
	assert_int_equal(tar_write_end(&b), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(buf_append(&b, zeros, sizeof(zeros)), 0);
	image_gzip(&b, &zip);
	image_rig_write(g, "bomb.tgz", &zip);
	refuse(g, "bomb.tgz", IMAGE_TAR, EFBIG, "more than its files can be");
	buf_done(&b);
	buf_done(&zip);
}

static void what_is_no_image_is_refused_with_a_reason(void **state)
{
	struct image_rig *g = *state;
	_cleanup_(buf_done) struct buf b = { 0 }, zip = { 0 };
	struct buf l = { 0 };

	image_rig_write(g, "empty", &b);
	refuse(g, "empty", IMAGE_TAR, EBADMSG, "cut off");
	refuse(g, "empty", IMAGE_OCI, EINVAL, "docker save");
	(void)buf_append(&b, "\x28\xb5\x2f\xfd and so on", 14);
	image_rig_write(g, "a.zst", &b);
	refuse(g, "a.zst", IMAGE_TAR, ENOTSUP, "zstd");
	image_file(&l, "a", "1");
	image_gzip(&l, &zip);
	image_rig_write(g, "a.tgz", &zip);
	refuse(g, "a.tgz", IMAGE_TAR, EBADMSG, "cut off");
	refuse(g, "a.tgz", IMAGE_OCI, ENOTSUP, "compressed");
	zip.len -= 8;
	image_rig_write(g, "a.tgz", &zip);
	refuse(g, "a.tgz", IMAGE_TAR, EBADMSG, "cut off");
	image_save(g, "cut.tar", &l, 1, &(struct image_shape){ .is_cut = true });
	refuse(g, "cut.tar", IMAGE_OCI, EINVAL, "");
}

static int open_rig(void **state)
{
	struct image_rig *g = calloc(1, sizeof(*g));

	assert_non_null(g);
	image_rig_open(g);
	*state = g;
	return 0;
}

static int close_rig(void **state)
{
	image_rig_close(*state);
	free(*state);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_rig, close_rig)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(archives_of_docker_and_oci_are_read),
		TEST(a_layer_may_be_a_link_to_another),
		TEST(what_an_image_says_about_its_programs_is_told),
		TEST(tars_are_read_plain_and_gzip),
		TEST(gzip_in_several_streams_is_one_layer),
		TEST(a_directory_is_read_without_following_links),
		TEST(only_what_is_below_the_directory_can_be_named),
		TEST(images_that_are_not_what_they_say_are_refused),
		TEST(too_many_layers_are_refused),
		TEST(names_that_lead_out_and_links_to_outside_are_refused),
		TEST(bombs_are_bounded),
		TEST(what_is_no_image_is_refused_with_a_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
