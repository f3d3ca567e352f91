/* Ports that listen: the kernel's tables, and whose sockets they are. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "check.h"
#include "fileop_rig.h"
#include "guest/proc_net.h"

#define HEADING                                                                               \
	"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  " \
	"timeout inode\n"
#define REST " 00000000:00000000 00:00000000 00000000  1000        0 "
#define LISTEN(n, local, inode) \
	"   " n ": " local " 00000000:0000 0A" REST inode " 1 0 100 0 0 10 0\n"

static int parse(const char *line, struct proc_net_socket *ret)
{
	memset(ret, 0x55, sizeof(*ret));
	return proc_net_parse(str_of(line), ret);
}

static void addresses_are_told_as_people_write_them(void **state)
{
	static const struct {
		const char *local, *address;
		uint16_t port;
	} rows[] = {
		{ "0100007F:1F90", "127.0.0.1", 8080 },
		{ "00000000:0016", "0.0.0.0", 22 },
		{ "0A00020F:FFFF", "15.2.0.10", 65535 },
		{ "00000000000000000000000000000000:0050", "::", 80 },
		{ "00000000000000000000000001000000:0bb8", "::1", 3000 },
		{ "0000000000000000FFFF00000100007F:0001", "::ffff:127.0.0.1", 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct proc_net_socket s;
		char line[256];

		(void)snprintf(line, sizeof(line), "  0: %s 00000000:0000 0A" REST "4711 1",
			       rows[i].local);
		assert_int_equal(parse(line, &s), 0);
		assert_string_equal(s.address, rows[i].address);
		assert_int_equal(s.port, rows[i].port);
		assert_int_equal(s.inode, 4711);
	}
}

static void what_does_not_listen_is_passed_over(void **state)
{
	struct proc_net_socket s;

	(void)state;
	assert_int_equal(parse("  0: 0100007F:1F90 0100007F:0050 01" REST "1 1", &s), -ENOENT);
	assert_int_equal(parse("  0: 0100007F:0000 00000000:0000 0A" REST "1 1", &s), -ENOENT);
	assert_int_equal(s.port, 0x5555);
}

static void what_is_no_line_of_the_table_is_refused(void **state)
{
	static const char *const lines[] = {
		"",
		" ",
		HEADING,
		"0:",
		"0: 0100007F",
		"0: 0100007F: x 0A" REST "1",
		"0: 0100007F:1F900 x 0A" REST "1",
		"0: 0100007F:1F9 x 0A" REST "1",
		"0: 0100007:1F90 x 0A" REST "1",
		"0: 0100007G:1F90 x 0A" REST "1",
		"0: 0100007F0:1F90 x 0A" REST "1",
		"0: 0100007F0100007F:1F90 x 0A" REST "1",
		"0: 000000000000000000000000000000000:1F90 x 0A" REST "1",
		"0: 0100007F:1F90:1 x 0A" REST "1",
		"0: 0100007F:1F90 x 0" REST "1",
		"0: 0100007F:1F90 x 0AA" REST "1",
		"0: 0100007F:1F90 x 0A" REST,
		"0: 0100007F:1F90 x 0A" REST "-1",
		"0: 0100007F:1F90 x 0A" REST "1x",
		"0: 0100007F:1F90 x 0A" REST "18446744073709551616",
		"0: 0100007F:1F90 x 0A 1 2 3 4 5",
	};
	struct proc_net_socket s;

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (parse(lines[i], &s) != -EINVAL)
			fail_msg("'%s' was taken", lines[i]);
}

/* ---- in a box ---- */

static const struct guest_file ask = { .op = FILE_PORTS, .user = "", .path = "/", .target = "" };

static void make_proc(const struct rig *g, const char *tcp, const char *tcp6)
{
	rig_mkdir(g, "proc");
	rig_mkdir(g, "proc/net");
	rig_write(g, "proc/net/tcp", tcp);
	if (tcp6)
		rig_write(g, "proc/net/tcp6", tcp6);
}

static void make_process(const struct rig *g, const char *pid, const char *comm, const char *link)
{
	char name[128];

	(void)snprintf(name, sizeof(name), "proc/%s", pid);
	rig_mkdir(g, name);
	(void)snprintf(name, sizeof(name), "proc/%s/fd", pid);
	rig_mkdir(g, name);
	(void)snprintf(name, sizeof(name), "proc/%s/comm", pid);
	rig_write(g, name, comm);
	(void)snprintf(name, sizeof(name), "proc/%s/fd/3", pid);
	rig_symlink(g, link, name);
}

static void check_found(const struct rig_found *f, unsigned port, const char *address, unsigned pid,
			const char *command)
{
	assert_int_equal(f->f.kind, FOUND_PORT);
	assert_int_equal(f->f.number, port);
	assert_string_equal(f->path, address);
	assert_int_equal(f->f.column, pid);
	assert_string_equal(f->text, command);
}

static void ports_are_told_by_number_with_whose_they_are(void **state)
{
	struct rig *g = *state;
	struct rig_answer a;

	make_proc(g, HEADING LISTEN("0", "00000000:1F91", "77") LISTEN("1", "0100007F:0050", "55"),
		  HEADING LISTEN("0", "00000000000000000000000001000000:0050", "66"));
	make_process(g, "12", "server\n", "socket:[55]");
	make_process(g, "13", "other\n", "socket:[66]");
	make_process(g, "self", "never\n", "socket:[77]");
	make_process(g, "0x14", "never\n", "socket:[77]");
	rig_run(g, &ask, NULL, 0, &a);
	assert_int_equal(a.error, 0);
	assert_int_equal(a.done, 3);
	assert_int_equal(a.found_count, 3);
	check_found(&a.found[0], 80, "127.0.0.1", 12, "server");
	check_found(&a.found[1], 80, "::1", 13, "other");
	check_found(&a.found[2], 8081, "0.0.0.0", 0, "");
	rig_answer_done(&a);
}

static void links_that_are_no_sockets_name_nobody(void **state)
{
	static const char *const links[] = { "socket:[]",   "socket:[55",   "socket:55]",
					     "pipe:[55]",   "socket:[-55]", "socket:[55]x",
					     "/etc/passwd", "socket:[ 55]" };
	struct rig *g = *state;
	struct rig_answer a;
	char pid[8];

	make_proc(g, LISTEN("0", "0100007F:0050", "55"), NULL);
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		(void)snprintf(pid, sizeof(pid), "%zu", 100 + i);
		make_process(g, pid, "liar\n", links[i]);
	}
	rig_run(g, &ask, NULL, 0, &a);
	assert_int_equal(a.found_count, 1);
	check_found(&a.found[0], 80, "127.0.0.1", 0, "");
	rig_answer_done(&a);
}

static void a_long_name_and_a_long_table_are_cut(void **state)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct rig *g = *state;
	struct rig_answer a;
	char comm[2000];

	memset(comm, 'x', sizeof(comm));
	comm[sizeof(comm) - 1] = '\0';
	for (unsigned i = 0; i < 40000; i++)
		assert_int_equal(buf_printf(&b,
					    "%u: 0100007F:%04X 00000000:0000 0A" REST "%u 1 0\n", i,
					    1 + i % 65535, 55 + i),
				 0);
	make_proc(g, buf_str(&b), NULL);
	make_process(g, "12", comm, "socket:[55]");
	rig_run(g, &ask, NULL, 0, &a);
	assert_int_equal(a.error, 0);
	assert_int_equal(a.found_count, GUEST_PORTS_MAX);
	assert_true(a.done > GUEST_PORTS_MAX && a.done <= 40000);
	assert_int_equal(a.found[0].len, 64);
	rig_answer_done(&a);
}

static void a_box_without_proc_says_so(void **state)
{
	assert_int_equal(rig_do(*state, &ask, NULL, 0), ENOENT);
}

static void an_empty_proc_has_no_ports(void **state)
{
	struct rig *g = *state;
	struct rig_answer a;

	rig_mkdir(g, "proc");
	rig_run(g, &ask, NULL, 0, &a);
	assert_int_equal(a.error, 0);
	assert_int_equal(a.found_count, 0);
	rig_answer_done(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_are_told_as_people_write_them),
		cmocka_unit_test(what_does_not_listen_is_passed_over),
		cmocka_unit_test(what_is_no_line_of_the_table_is_refused),
		cmocka_unit_test_setup_teardown(ports_are_told_by_number_with_whose_they_are,
						rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(links_that_are_no_sockets_name_nobody, rig_setup,
						rig_teardown),
		cmocka_unit_test_setup_teardown(a_long_name_and_a_long_table_are_cut, rig_setup,
						rig_teardown),
		cmocka_unit_test_setup_teardown(a_box_without_proc_says_so, rig_setup,
						rig_teardown),
		cmocka_unit_test_setup_teardown(an_empty_proc_has_no_ports, rig_setup,
						rig_teardown),
	};

	return cmocka_run_group_tests(tests, rig_drop_root, NULL);
}
