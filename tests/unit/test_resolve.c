/* Names that are looked up where name servers do not answer. The servers are sockets of the test's
 * own, on the loopback device. */
#include "loop/resolve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/str.h"
#include "check.h"
#include "loop/loop.h"
#include "own_net.h"

#define SOON_MS 300u
#define NEVER_MS 600000u

struct rig {
	struct loop *loop;
	struct resolver *resolver;
	int server; /* a socket that nobody reads */
	char servers[40];
};

struct heard {
	struct loop *loop;
	unsigned calls;
	int code;
	size_t n;
	union resolve_address first;
};

static void hear(void *user, int code, const union resolve_address *a, size_t n)
{
	struct heard *h = user;

	h->calls++;
	h->code = code;
	h->n = n;
	if (n > 0)
		h->first = a[0];
	loop_stop(h->loop);
}

static void open_resolver(struct rig *r, uint32_t timeout_ms)
{
	struct resolve_options o = { r->servers, timeout_ms };
	struct err err = { 0 };

	r->resolver = resolver_free(r->resolver);
	if (resolver_create(r->loop, &o, &r->resolver, &err) < 0)
		fail_msg("%s", err.text);
}

static int setup(void **state)
{
	static struct rig r;
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(at);

	r = (struct rig){ .server = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0) };
	assert_int_equal(bind(r.server, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(getsockname(r.server, (struct sockaddr *)&at, &size), 0);
	(void)str_format(r.servers, sizeof(r.servers), "127.0.0.1:%u", ntohs(at.sin_port));
	assert_int_equal(loop_create(&r.loop, NULL), 0);
	open_resolver(&r, NEVER_MS);
	*state = &r;
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;

	r->resolver = resolver_free(r->resolver);
	r->loop = loop_free(r->loop);
	(void)close(r->server);
	return 0;
}

static int ask(struct rig *r, const char *owner, const char *host, struct heard *h)
{
	struct resolve *q;

	h->loop = r->loop;
	return resolver_ask(r->resolver, owner, host, 443, hear, h, &q, NULL);
}

static void addresses_and_names_of_the_machine_need_no_server(void **state)
{
	static const char *const hosts[] = { "192.0.2.7", "localhost" };
	static const char *const addresses[] = { "192.0.2.7", "127.0.0.1" };
	struct rig *r = *state;
	char question;

	for (size_t i = 0; i < 2; i++) {
		struct heard h = { 0 };
		struct in_addr want;

		assert_int_equal(inet_pton(AF_INET, addresses[i], &want), 1);
		assert_int_equal(ask(r, "a", hosts[i], &h), 0);
		assert_int_equal(h.calls, 0); /* never from inside the call */
		loop_run(r->loop);
		assert_int_equal(h.calls, 1);
		assert_int_equal(h.code, 0);
		assert_true(h.n > 0);
		if (h.first.any.sa_family != AF_INET)
			continue; /* ::1 comes first */
		assert_int_equal(h.first.v4.sin_addr.s_addr, want.s_addr);
		assert_int_equal(ntohs(h.first.v4.sin_port), 443);
	}
	assert_int_equal(recv(r->server, &question, 1, MSG_DONTWAIT), -1);
}

static void a_server_that_says_nothing_does_not_hold_a_lookup_for_ever(void **state)
{
	struct rig *r = *state;
	struct heard h = { 0 };

	open_resolver(r, SOON_MS);
	assert_int_equal(ask(r, "a", "silent.test", &h), 0);
	loop_run(r->loop);
	assert_int_equal(h.calls, 1);
	assert_int_equal(h.code, -ETIMEDOUT);
	assert_int_equal(h.n, 0);
}

static void one_owner_has_so_many_and_takes_nothing_from_another(void **state)
{
	struct rig *r = *state;
	struct heard mine[RESOLVE_OWNER_MAX] = { 0 }, other = { 0 };
	struct err err = { 0 };
	struct resolve *q;

	for (unsigned i = 0; i < RESOLVE_OWNER_MAX; i++)
		assert_int_equal(ask(r, "a", "silent.test", &mine[i]), 0);
	assert_int_equal(resolver_ask(r->resolver, "a", "silent.test", 1, hear, &other, &q, &err),
			 -EAGAIN);
	assert_non_null(strstr(err.text, "owner"));
	assert_int_equal(ask(r, "b", "localhost", &other), 0);
	loop_run(r->loop); /* ends by the only one that can be answered */
	assert_int_equal(other.code, 0);
	for (unsigned i = 0; i < RESOLVE_OWNER_MAX; i++)
		assert_int_equal(mine[i].calls, 0);
}

static void all_owners_together_have_so_many(void **state)
{
	struct rig *r = *state;
	static struct heard heard[RESOLVE_MAX + 1];
	char owner[16];

	for (unsigned i = 0; i <= RESOLVE_MAX; i++) {
		(void)str_format(owner, sizeof(owner), "o%u", i / RESOLVE_OWNER_MAX);
		assert_int_equal(ask(r, owner, "silent.test", &heard[i]),
				 i < RESOLVE_MAX ? 0 : -EAGAIN);
	}
}

static void who_has_cancelled_hears_nothing(void **state)
{
	struct rig *r = *state;
	struct heard first = { .loop = r->loop }, second = { 0 };
	struct resolve *q;

	assert_int_equal(resolver_ask(r->resolver, "a", "silent.test", 1, hear, &first, &q, NULL),
			 0);
	resolve_cancel(q);
	assert_int_equal(resolver_ask(r->resolver, "a", "localhost", 1, hear, &first, &q, NULL), 0);
	resolve_cancel(q);
	assert_int_equal(ask(r, "a", "localhost", &second), 0);
	loop_run(r->loop);
	assert_int_equal(second.calls, 1);
	assert_int_equal(first.calls, 0);
}

/* The header of an answer that denies the name of the question. */
static void deny_next(struct rig *r)
{
	struct sockaddr_in from;
	socklen_t size = sizeof(from);
	uint8_t m[512];
	ssize_t n =
		recvfrom(r->server, m, sizeof(m), MSG_DONTWAIT, (struct sockaddr *)&from, &size);

	if (n < 12)
		return;
	m[2] |= 0x80; /* an answer */
	m[3] = (uint8_t)((m[3] & 0xf0) | 3);
	(void)sendto(r->server, m, (size_t)n, 0, (struct sockaddr *)&from, size);
}

struct denier {
	struct rig *rig;
	struct loop_io *io;
};

static void on_question(void *user, unsigned events)
{
	struct denier *d = user;

	(void)events;
	deny_next(d->rig);
}

static void a_name_that_does_not_exist_is_told_as_such(void **state)
{
	struct rig *r = *state;
	struct denier d = { .rig = r };
	struct heard h = { 0 };

	assert_int_equal(loop_io_create(r->loop, r->server, on_question, &d, &d.io), 0);
	assert_int_equal(loop_io_want(d.io, LOOP_READ), 0);
	assert_int_equal(ask(r, "a", "nobody.test.", &h), 0);
	loop_run(r->loop);
	assert_int_equal(h.code, -ENOENT);
	d.io = loop_io_free(d.io);
}

static void what_is_no_name_is_refused(void **state)
{
	struct rig *r = *state;
	struct heard h = { 0 };
	char text[RESOLVE_NAME_MAX + 2];

	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(ask(r, "a", "", &h), -EINVAL);
	assert_int_equal(ask(r, "a", text, &h), -EINVAL);
}

static void servers_that_are_none_are_refused(void **state)
{
	struct rig *r = *state;
	struct resolver *none = NULL;
	struct err err = { 0 };

	assert_int_equal(resolver_create(r->loop, &(struct resolve_options){ .servers = "x y" },
					 &none, &err),
			 -EINVAL);
	assert_null(none);
}

/* A file with this text and mode is the machine's configuration from here on. */
static void put_config(char path[], const char *text, mode_t mode)
{
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	(void)close(fd);
	if (mount(path, "/etc/resolv.conf", NULL, MS_BIND, NULL) < 0)
		fail_msg("%s: %s", path, strerror(errno));
}

/* NOTE: the last, because the process is in namespaces of its own afterwards. */
static void a_configuration_that_cannot_be_read_changes_nothing(void **state)
{
	struct rig *r = *state;
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(53) };
	char first[] = "/tmp/test-resolve.XXXXXX", second[] = "/tmp/test-resolve.XXXXXX";
	struct heard h = { 0 };
	char question;
	int server;

	if (geteuid() != 0 || !own_net_enter() || unshare(CLONE_NEWNS) < 0)
		skip();
	assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	server = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(inet_pton(AF_INET, "127.0.0.77", &at.sin_addr), 1);
	assert_int_equal(bind(server, (struct sockaddr *)&at, sizeof(at)), 0);
	put_config(first, "nameserver 127.0.0.77\n", 0644);
	r->resolver = resolver_free(r->resolver);
	assert_int_equal(resolver_create(r->loop,
					 &(struct resolve_options){ .timeout_ms = SOON_MS },
					 &r->resolver, NULL),
			 0);
	put_config(second, "nameserver 127.0.0.78\n", 0);
	assert_int_equal(seteuid(65534), 0);
	assert_int_equal(ask(r, "a", "name.example", &h), 0);
	loop_run(r->loop);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(umount("/etc/resolv.conf") | umount("/etc/resolv.conf"), 0);
	assert_int_equal(unlink(first) | unlink(second), 0);
	assert_int_equal(h.calls, 1);
	assert_int_equal(recv(server, &question, 1, MSG_DONTWAIT), 1);
	(void)close(server);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(addresses_and_names_of_the_machine_need_no_server),
		TEST(a_server_that_says_nothing_does_not_hold_a_lookup_for_ever),
		TEST(one_owner_has_so_many_and_takes_nothing_from_another),
		TEST(all_owners_together_have_so_many),
		TEST(who_has_cancelled_hears_nothing),
		TEST(a_name_that_does_not_exist_is_told_as_such),
		TEST(what_is_no_name_is_refused),
		TEST(servers_that_are_none_are_refused),
		TEST(a_configuration_that_cannot_be_read_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
