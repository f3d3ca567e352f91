/* Boxes that outlive the launcher that made them and the client that claimed them: killed at any
 * time, the next launcher finds every one of them again, and nothing else is left. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/str.h"
#include "launch/process.h"
#include "launch/record.h"
#include "persist_rig.h"

#define NOBODY 65534
/* tail keeps all of it until the end. */
#define HOLD_64M "head -c 64M /dev/zero | tail -c 64M >/dev/null && echo fits"
#define OTHER "zzzzzzzzzz0123456789" /* no box has this name */

/* NOTE: cmocka gives a group's setup nothing: which kind of control groups this run is about. */
static const char *kind;

static int open_rig(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	if (!r)
		return -1;
	*state = r;
	if (rig_open(r, kind))
		return 0;
	free(r);
	*state = NULL;
	return 0;
}

static int close_rig(void **state)
{
	if (*state)
		rig_close(*state);
	free(*state);
	return 0;
}

static struct rig *need(void **state)
{
	if (!*state)
		skip();
	return *state;
}

static bool lacks(const struct rig *r, unsigned controllers)
{
	return launcher_info(r->launcher)->cgroup_missing & controllers;
}

static void claim(struct rig *r, const char *tag, struct held *ret)
{
	rig_claim(r, &(struct launch_spec){ .template_id = HOST, .tag = tag }, ret);
}

static void a_box_outlives_a_killed_launcher_and_is_found_again(void **state)
{
	struct rig *r = need(state);
	struct limits limits = { .memory_bytes = 64u << 20, .pids = 32 };
	struct launch_spec spec = { .template_id = HOST, .limits = limits, .tag = "first-1" };
	struct listed found;
	struct held h;
	pid_t pid;

	rig_claim(r, &spec, &h);
	pid = h.box.pid;
	found = rig_only(r);
	assert_int_equal(found.info.adopted, 0);
	rig_expect(r, &h, "echo kept >/tmp/x; cat /tmp/x", "kept\n");
	rig_kill(r);
	rig_drop(&h);
	assert_true(rig_is_alive(pid));
	rig_start(r);
	found = rig_only(r);
	assert_string_equal(found.id, h.box.id);
	assert_string_equal(found.tag, "first-1");
	assert_int_equal(found.info.adopted, 1);
	assert_int_equal(found.info.frozen, 0);
	assert_int_equal(found.info.pid, pid);
	assert_memory_equal(&found.info.limits, &h.box.limits, sizeof(struct limits));
	rig_attach(r, found.id, &h);
	assert_int_equal(h.box.pid, pid);
	assert_memory_equal(&found.info.limits, &h.box.limits, sizeof(struct limits));
	rig_expect(r, &h, "cat /tmp/x", "kept\n");
	rig_destroy(r, found.id);
	assert_false(rig_is_alive(pid));
	assert_int_equal(rig_count_files(r), 0);
	rig_drop(&h);
}

static void claimed_boxes_stay_when_the_client_goes_and_others_do_not(void **state)
{
	struct rig *r = need(state);
	struct pool_spec pool = { HOST, 3, 3, 1000, 0 };
	struct pool_state s = { 0 };
	struct held h;
	pid_t pids[8];

	claim(r, "stays", &h);
	assert_int_equal(launcher_pool_sync(r->launcher, &pool, &r->err), 0);
	for (int i = 0; i < 1000 && s.ready < 3; i++) {
		(void)usleep(10000);
		assert_int_equal(launcher_pool_state_sync(r->launcher, HOST, &s, &r->err), 0);
	}
	assert_int_equal(s.ready, 3);
	if (rig_has_cgroups(r))
		assert_int_equal(rig_boxes(r, pids, 8), 4);
	rig_stop(r);
	assert_true(rig_is_alive(h.box.pid));
	/* On its own connection it goes on as if nothing had happened. */
	rig_expect(r, &h, "echo here", "here\n");
	rig_start(r);
	if (rig_has_cgroups(r)) {
		assert_int_equal(rig_boxes(r, pids, 8), 1);
		assert_int_equal(pids[0], h.box.pid);
	}
	assert_string_equal(rig_only(r).tag, "stays");
	rig_destroy(r, h.box.id);
	rig_drop(&h);
}

/* A client that claims, tells us, and is killed together with its launcher or before it. */
struct told {
	pid_t launcher, box;
	char id[ID_LEN + 1];
};

static void kill_both(struct rig *r, bool launcher_too)
{
	struct told *told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t client;
	struct held h;

	assert_true(told != MAP_FAILED);
	rig_stop(r);
	client = fork();
	if (client == 0) {
		rig_start(r);
		claim(r, "orphan", &h);
		memcpy(told->id, h.box.id, sizeof(told->id));
		told->box = h.box.pid;
		__atomic_store_n(&told->launcher, launcher_pid(r->launcher), __ATOMIC_SEQ_CST);
		for (;;)
			(void)pause();
	}
	UNTIL(__atomic_load_n(&told->launcher, __ATOMIC_SEQ_CST) > 0);
	if (launcher_too)
		(void)kill(told->launcher, SIGKILL);
	(void)kill(client, SIGKILL);
	assert_int_equal(waitpid(client, NULL, 0), client);
	rig_start(r);
	assert_string_equal(rig_only(r).id, told->id);
	rig_attach(r, told->id, &h);
	rig_expect(r, &h, "echo alive", "alive\n");
	rig_destroy(r, told->id);
	rig_drop(&h);
	(void)munmap(told, sizeof(*told));
}

static void a_box_outlives_client_and_launcher_killed_at_once(void **state)
{
	kill_both(need(state), true);
}

static void a_box_outlives_a_killed_client(void **state)
{
	kill_both(need(state), false);
}

static void a_box_can_be_handed_on_many_times(void **state)
{
	struct rig *r = need(state);
	struct held h, again;
	char want[8];

	claim(r, "", &h);
	for (int i = 0; i < 5; i++) {
		memset(want, '\n', sizeof(want));
		want[i + 1] = '\0';
		if (i % 2)
			rig_stop(r);
		else
			rig_kill(r);
		rig_start(r);
		rig_attach(r, h.box.id, &again);
		rig_expect(r, &again, "echo >>/tmp/n; cat /tmp/n", want);
		rig_drop(&again);
	}
	rig_destroy(r, h.box.id);
	rig_drop(&h);
}

static void attaching_works_also_for_a_box_of_the_same_launcher(void **state)
{
	struct rig *r = need(state);
	struct held h, again;

	claim(r, "", &h);
	rig_attach(r, h.box.id, &again);
	rig_expect(r, &again, "echo twice", "twice\n");
	rig_destroy(r, h.box.id);
	rig_drop(&h);
	rig_drop(&again);
	assert_int_equal(launcher_attach_sync(r->launcher, h.box.id, &h.box, &r->err), -ENOENT);
}

static void a_paused_box_is_found_paused_and_goes_on(void **state)
{
	struct rig *r = need(state);
	struct held h;

	if (lacks(r, CONTROLLER_FREEZER))
		skip();
	claim(r, "", &h);
	rig_expect(r, &h, "echo before >/tmp/x", "");
	assert_int_equal(launcher_freeze_sync(r->launcher, h.box.id, true, &r->err), 0);
	rig_kill(r);
	rig_drop(&h);
	rig_start(r);
	assert_int_equal(rig_only(r).info.frozen, 1);
	assert_int_equal(launcher_freeze_sync(r->launcher, h.box.id, false, &r->err), 0);
	assert_int_equal(rig_only(r).info.frozen, 0);
	rig_attach(r, h.box.id, &h);
	rig_expect(r, &h, "cat /tmp/x", "before\n");
	assert_int_equal(launcher_freeze_sync(r->launcher, h.box.id, true, &r->err), 0);
	assert_true(guest_ping_sync(h.guest, 200) < 0);
	rig_destroy(r, h.box.id); /* paused */
	rig_drop(&h);
}

static void a_paused_box_that_was_taken_over_can_be_destroyed(void **state)
{
	struct rig *r = need(state);
	struct held h;

	if (lacks(r, CONTROLLER_FREEZER))
		skip();
	claim(r, "", &h);
	assert_int_equal(launcher_freeze_sync(r->launcher, h.box.id, true, &r->err), 0);
	rig_kill(r);
	rig_start(r);
	rig_destroy(r, h.box.id);
	assert_false(rig_is_alive(h.box.pid));
	rig_drop(&h);
}

static uint32_t pids_of(struct rig *r, const char *id)
{
	struct box_usage usage;

	assert_int_equal(launcher_usage_sync(r->launcher, id, &usage, &r->err), 0);
	return usage.pids;
}

static void limits_and_usage_go_on_where_they_were(void **state)
{
	struct rig *r = need(state);
	struct launch_spec spec = { .template_id = HOST,
				    .limits = { .memory_bytes = 32u << 20, .cpu_milli = 2000 } };
	struct limits more = { .memory_bytes = 128u << 20 };
	struct box_usage before, after;
	struct held h;

	if (lacks(r, CONTROLLER_MEMORY | CONTROLLER_PIDS))
		skip();
	rig_claim(r, &spec, &h);
	rig_expect(r, &h, "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done", "");
	assert_int_equal(launcher_limits_sync(r->launcher, h.box.id, &more, &r->err), 0);
	assert_int_equal(launcher_usage_sync(r->launcher, h.box.id, &before, &r->err), 0);
	rig_kill(r);
	rig_drop(&h);
	rig_start(r);
	assert_int_equal(rig_only(r).info.limits.memory_bytes, 128u << 20);
	assert_int_equal(launcher_usage_sync(r->launcher, h.box.id, &after, &r->err), 0);
	assert_true(after.cpu_us >= before.cpu_us && after.memory_peak_bytes > 0);
	UNTIL(pids_of(r, h.box.id) == 1); /* what the dead launcher had in there goes too */
	rig_attach(r, h.box.id, &h);
	rig_expect(r, &h, HOLD_64M, "fits\n");
	more = (struct limits){ .memory_bytes = 48u << 20, .pids = 5 };
	assert_int_equal(launcher_limits_sync(r->launcher, h.box.id, &more, &r->err), 0);
	rig_expect(r, &h, HOLD_64M " || echo refused", "refused\n");
	assert_int_equal(launcher_usage_sync(r->launcher, h.box.id, &after, &r->err), 0);
	assert_int_equal(after.oom_kills, 1);
	rig_destroy(r, h.box.id);
	rig_drop(&h);
}

static void an_adopted_box_that_dies_is_reported_without_a_status(void **state)
{
	struct rig *r = need(state);
	char id[ID_LEN + 1] = "";
	struct held h;
	int status = 0;

	claim(r, "", &h);
	rig_kill(r);
	rig_start(r);
	assert_int_equal(kill(h.box.pid, SIGKILL), 0);
	UNTIL(launcher_next_death(r->launcher, id, &status, NULL));
	assert_string_equal(id, h.box.id);
	assert_int_equal((uint32_t)status, DIED_UNKNOWN);
	assert_int_equal(rig_count_files(r), 0);
	assert_int_equal(launcher_destroy_sync(r->launcher, h.box.id, NULL, &r->err), -ENOENT);
	rig_drop(&h);
}

static void a_box_that_died_meanwhile_leaves_nothing(void **state)
{
	struct rig *r = need(state);
	struct listed boxes[BOXES_MAX];
	struct held h;

	claim(r, "", &h);
	rig_kill(r);
	assert_true(rig_has(r, h.box.id));
	assert_int_equal(kill(h.box.pid, SIGKILL), 0);
	UNTIL(!rig_is_alive(h.box.pid));
	rig_start(r);
	assert_int_equal(rig_list(r, boxes), 0);
	assert_int_equal(rig_count_files(r), 0);
	rig_drop(&h);
}

static void a_second_launcher_is_refused(void **state)
{
	struct rig *r = need(state);
	struct launcher_options o = { .program = getenv("HOLT_LAUNCH"),
				      .cgroup = r->cgroup,
				      .persistent = true,
				      .state_fd = r->dir_fd };
	struct launcher *second = NULL;
	struct held h;

	claim(r, "", &h);
	assert_int_equal(launcher_start(&o, &second, &r->err), -EBUSY);
	assert_non_null(strstr(r->err.text, "another launcher"));
	rig_expect(r, &h, "echo unharmed", "unharmed\n");
	rig_destroy(r, h.box.id);
	rig_drop(&h);
}

static void a_directory_that_others_can_look_into_is_refused(void **state)
{
	struct rig *r = need(state);
	struct launcher_options o = { .program = getenv("HOLT_LAUNCH"),
				      .cgroup = r->cgroup,
				      .persistent = true,
				      .state_fd = r->dir_fd };
	struct launcher *second = NULL;

	rig_stop(r);
	assert_int_equal(fchmod(r->dir_fd, 0750), 0);
	assert_int_equal(launcher_start(&o, &second, &r->err), -EPERM);
	assert_int_equal(fchmod(r->dir_fd, 0700), 0);
	rig_start(r);
}

static void a_launcher_without_a_directory_attaches_nothing(void **state)
{
	struct rig *r = need(state);
	struct launcher_options o = { .program = getenv("HOLT_LAUNCH"), .cgroup = r->cgroup };
	struct template_spec host = { .id = HOST, .preload = "" };
	struct launcher *plain = NULL;
	struct launcher_box box, again;

	assert_int_equal(launcher_start(&o, &plain, &r->err), 0);
	assert_int_equal(launcher_info(plain)->persistent, 0);
	assert_int_equal(launcher_template_sync(plain, &host, -1, &r->err), 0);
	assert_int_equal(launcher_claim_sync(plain, &(struct launch_spec){ .template_id = HOST },
					     &box, &r->err),
			 0);
	assert_int_equal(launcher_attach_sync(plain, box.id, &again, &r->err), -ENOTSUP);
	plain = launcher_stop(plain);
	UNTIL(!rig_is_alive(box.pid));
	launcher_box_done(&box);
}

static struct record example(const struct rig *r, pid_t pid)
{
	static char boot[64];
	struct record rec = { .id = OTHER, .tag = "", .boot_id = boot, .pid = (uint32_t)pid };
	_close_ int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd_read_file_at(proc, "sys/kernel/random/boot_id", boot, sizeof(boot)) > 0);
	boot[BOOT_ID_LEN] = '\0';
	assert_int_equal(process_start(proc, pid, &rec.start_ticks), 0);
	rec.group.kind = launcher_info(r->launcher)->cgroup;
	memcpy(rec.group.name, "0", 2);
	rec.uid_base = launcher_info(r->launcher)->rootless ? 0 : 0x70000000u;
	assert_int_equal(spec_fill_limits(&rec.limits, NULL, NULL), 0);
	return rec;
}

/* Starts a launcher on a directory with this record and a socket; nothing may come of it. */
static void offer(struct rig *r, const struct record *rec)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	_close_ int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct listed boxes[BOXES_MAX];
	char data[RECORD_MAX];
	long n = record_put(data, sizeof(data), rec);

	assert_true(n > 0);
	rig_stop(r);
	rig_put(r, OTHER, data, (size_t)n);
	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s/" OTHER ".sock", r->dir);
	assert_int_equal(bind(sock, (struct sockaddr *)&a, sizeof(a)), 0);
	rig_start(r);
	assert_int_equal(rig_list(r, boxes), 0);
	assert_int_equal(rig_count_files(r), 0);
}

static void a_record_of_what_is_no_box_is_not_believed(void **state)
{
	struct rig *r = need(state);
	pid_t child = fork();
	struct record rec;

	if (child == 0) {
		(void)close_range(3, ~0u, 0); /* the launcher's socket must be ours alone */
		for (;;)
			(void)pause();
	}
	rec = example(r, child);
	offer(r, &rec);
	rec.start_ticks++;
	offer(r, &rec);
	rec.start_ticks--;
	rec.boot_id = "00000000-0000-0000-0000-000000000000";
	offer(r, &rec);
	assert_int_equal(waitpid(child, NULL, WNOHANG), 0); /* and nobody was harmed */
	(void)kill(child, SIGKILL);
	(void)waitpid(child, NULL, 0);
}

static void damaged_files_do_no_harm_and_are_removed(void **state)
{
	struct rig *r = need(state);
	char data[RECORD_MAX];
	struct record rec;
	struct held h;
	int fd;
	ssize_t n;

	claim(r, "whole", &h);
	rec = example(r, h.box.pid);
	rig_kill(r);
	/* The record of a box that lives, under another's name; half of it; something else. */
	fd = openat(r->dir_fd, h.box.id, O_RDONLY | O_CLOEXEC);
	n = fd_read_all(fd, data, sizeof(data));
	(void)close(fd);
	assert_true(n > 40);
	rig_put(r, "aaaaaaaaaa0123456789", data, (size_t)n);
	rig_put(r, "bbbbbbbbbb0123456789", data, (size_t)n / 2);
	rig_put(r, "cccccccccc0123456789", "nonsense", 8);
	rig_put(r, "dddddddddd0123456789", "", 0);
	rig_put(r, "eeeeeeeeee0123456789.tmp", data, (size_t)n);
	rig_put(r, "ffffffffff0123456789.sock", "", 0);
	assert_int_equal(symlinkat("/etc/passwd", r->dir_fd, "gggggggggg0123456789"), 0);
	assert_int_equal(mkfifoat(r->dir_fd, "hhhhhhhhhh0123456789", 0600), 0);
	rig_put(r, "notes", "not ours", 8);
	rig_start(r);
	assert_string_equal(rig_only(r).id, h.box.id);
	assert_int_equal(rig_count_files(r), 3); /* its record, its socket, and what is not ours */
	assert_true(rig_has(r, "notes"));
	(void)unlinkat(r->dir_fd, "notes", 0);
	(void)rec;
	rig_destroy(r, h.box.id);
	rig_drop(&h);
}

static void a_box_that_another_version_recorded_is_ended(void **state)
{
	struct rig *r = need(state);
	struct listed boxes[BOXES_MAX];
	char data[RECORD_MAX];
	struct wire_head head;
	struct held h;
	ssize_t n;
	int fd;

	if (!rig_has_cgroups(r))
		skip(); /* nothing else says that it was ours */
	claim(r, "", &h);
	rig_kill(r);
	fd = openat(r->dir_fd, h.box.id, O_RDONLY | O_CLOEXEC);
	n = fd_read_all(fd, data, sizeof(data));
	(void)close(fd);
	assert_true(n > (ssize_t)sizeof(head));
	memcpy(&head, data, sizeof(head));
	assert_int_equal(head.version, WIRE_VERSION);
	head.version++;
	memcpy(data, &head, sizeof(head));
	assert_int_equal(unlinkat(r->dir_fd, h.box.id, 0), 0);
	rig_put(r, h.box.id, data, (size_t)n);
	rig_start(r);
	assert_int_equal(rig_list(r, boxes), 0);
	assert_false(rig_is_alive(h.box.pid));
	assert_int_equal(rig_count_files(r), 0);
	rig_drop(&h);
}

static void a_box_whose_record_is_lost_is_ended(void **state)
{
	struct rig *r = need(state);
	struct listed boxes[BOXES_MAX];
	struct held h;

	if (!rig_has_cgroups(r))
		skip(); /* nothing else says that it was ours */
	claim(r, "", &h);
	rig_kill(r);
	assert_int_equal(unlinkat(r->dir_fd, h.box.id, 0), 0);
	rig_start(r);
	assert_int_equal(rig_list(r, boxes), 0);
	assert_false(rig_is_alive(h.box.pid));
	assert_int_equal(rig_count_files(r), 0);
	rig_drop(&h);
}

static void ids_of_a_living_box_are_nobody_elses(void **state)
{
	struct rig *r = need(state);
	struct launcher_options o = { .program = getenv("HOLT_LAUNCH"), .cgroup = r->cgroup };
	struct template_spec host = { .id = HOST, .preload = "" };
	struct launch_spec spec = { .template_id = HOST };
	struct launcher *plain = NULL;
	struct launcher_box other;
	struct held a, b;

	if (launcher_info(r->launcher)->rootless)
		skip();
	claim(r, "", &a);
	rig_kill(r);
	assert_int_equal(launcher_start(&o, &plain, &r->err), 0);
	assert_int_equal(launcher_template_sync(plain, &host, -1, &r->err), 0);
	assert_int_equal(launcher_claim_sync(plain, &spec, &other, &r->err), 0);
	assert_true(rig_is_alive(a.box.pid));
	assert_int_not_equal(rig_uid_of(a.box.pid), rig_uid_of(other.pid));
	assert_int_not_equal((rig_uid_of(a.box.pid) - 0x70000000u) >> 20,
			     (rig_uid_of(other.pid) - 0x70000000u) >> 20);
	plain = launcher_stop(plain);
	launcher_box_done(&other);
	rig_start(r);
	claim(r, "", &b);
	assert_int_not_equal(rig_uid_of(a.box.pid), rig_uid_of(b.box.pid));
	rig_destroy(r, a.box.id);
	rig_destroy(r, b.box.id);
	rig_drop(&a);
	rig_drop(&b);
}

/* As a service manager starts the next launcher where it likes. 0: all is well. */
static int take_over_elsewhere(struct rig *r, const char *id)
{
	struct launcher_options o = { .program = getenv("HOLT_LAUNCH"),
				      .cgroup = r->cgroup,
				      .persistent = true,
				      .state_fd = r->dir_fd };
	struct template_spec host = { .id = HOST, .preload = "" };
	struct launcher_box box;

	rig_enter_groups(getpid());
	if (launcher_start(&o, &r->launcher, &r->err) < 0 ||
	    launcher_template_sync(r->launcher, &host, -1, &r->err) < 0 ||
	    launcher_attach_sync(r->launcher, id, &box, &r->err) < 0 ||
	    launcher_claim_sync(r->launcher, &(struct launch_spec){ .template_id = HOST }, &box,
				&r->err) < 0 ||
	    launcher_destroy_sync(r->launcher, box.id, NULL, &r->err) < 0 ||
	    launcher_destroy_sync(r->launcher, id, NULL, &r->err) < 0) {
		print_error("elsewhere: %s\n", r->err.text);
		return 1;
	}
	(void)launcher_stop(r->launcher);
	return 0;
}

static void boxes_are_found_also_from_another_control_group(void **state)
{
	struct rig *r = need(state);
	struct held h;
	pid_t next;
	int status = -1;

	if (geteuid() != 0 || !rig_has_cgroups(r))
		skip();
	claim(r, "", &h);
	rig_kill(r);
	next = fork();
	if (next == 0)
		_exit(take_over_elsewhere(r, h.box.id));
	assert_int_equal(waitpid(next, &status, 0), next);
	rig_remove_groups(next);
	assert_int_equal(status, 0);
	assert_false(rig_is_alive(h.box.pid));
	rig_drop(&h);
}

/* Pools */

/* As when a daemon that was started by hand is started by systemd-run the next time. */
static void a_box_without_groups_lives_on_where_others_have_them(void **state)
{
	struct rig *r = need(state);
	const char *with = r->cgroup;
	struct listed found;
	struct held h;

	if (!rig_has_cgroups(r))
		skip();
	rig_stop(r);
	r->cgroup = "none";
	rig_start(r);
	claim(r, "old", &h);
	rig_expect(r, &h, "echo kept >/tmp/x", "");
	rig_kill(r);
	rig_drop(&h);
	r->cgroup = with;
	rig_start(r);
	found = rig_only(r);
	assert_string_equal(found.tag, "old");
	rig_attach(r, found.id, &h);
	rig_expect(r, &h, "cat /tmp/x", "kept\n");
	rig_destroy(r, found.id);
	rig_drop(&h);
	claim(r, "new", &h); /* has a group, as if there had never been another */
	assert_true(launcher_info(r->launcher)->cgroup != CGROUP_NONE);
	rig_destroy(r, h.box.id);
	rig_drop(&h);
}

/* And the other way round: whoever cannot hold its limits leaves it alone, and says so. */
static void a_box_with_groups_is_not_ended_by_a_launcher_without_them(void **state)
{
	struct rig *r = need(state);
	struct launcher_options o = { .program = getenv("HOLT_LAUNCH"),
				      .cgroup = "none",
				      .persistent = true,
				      .state_fd = r->dir_fd };
	struct held h;
	pid_t pid;

	if (!rig_has_cgroups(r))
		skip();
	claim(r, "old", &h);
	pid = h.box.pid;
	rig_kill(r);
	rig_drop(&h);
	assert_int_equal(launcher_start(&o, &r->launcher, &r->err), -ENOTSUP);
	assert_non_null(strstr(r->err.text, "runs in a control group of v"));
	assert_true(rig_is_alive(pid));
	rig_start(r);
	rig_destroy(r, rig_only(r).id);
}

static void wait_for_pool(struct rig *r, uint32_t ready)
{
	struct pool_state s = { 0 };

	for (int i = 0; i < 1000 && s.ready != ready; i++) {
		(void)usleep(10000);
		assert_int_equal(launcher_pool_state_sync(r->launcher, HOST, &s, &r->err), 0);
	}
	assert_int_equal(s.ready, ready);
}

static void waiting_boxes_that_die_are_not_announced_and_not_replaced_for_ever(void **state)
{
	struct rig *r = need(state);
	struct pool_spec pool = { HOST, 1, 1, 1000, 0 };
	char id[ID_LEN + 1];
	struct held h;
	pid_t pid;
	int status, kills = 0;

	if (!rig_has_cgroups(r))
		skip(); /* they could not be found */
	assert_int_equal(launcher_pool_sync(r->launcher, &pool, &r->err), 0);
	/* Until none comes any more; on a busy machine the next may take its time. */
	for (int quiet = 0; quiet < 200 && kills < 100; quiet++) {
		if (rig_boxes(r, &pid, 1) == 1 && kill(pid, SIGKILL) == 0) {
			kills++;
			quiet = 0;
			UNTIL(!rig_is_alive(pid));
		}
		(void)usleep(10000);
	}
	assert_in_range(kills, 2, 6);
	assert_false(launcher_next_death(r->launcher, id, &status, NULL));
	wait_for_pool(r, 0);
	claim(r, "", &h); /* it works: the pool may try again */
	wait_for_pool(r, 1);
	rig_destroy(r, h.box.id);
	rig_drop(&h);
}

/* Boxes of a warm interpreter's making are processes like others. */
static void a_box_with_a_waiting_python_is_found_again(void **state)
{
	struct rig *r = need(state);
	struct template_spec t = { .id = PYTHON, .flags = TEMPLATE_WARM_PYTHON, .preload = "" };
	struct pool_spec pool = { PYTHON, 1, 1, 60000, 0 };
	struct guest_exec e = { .kind = EXEC_PYTHON,
				.code = "print(6 * 7)",
				.timeout_ms = 20000,
				.user = "",
				.cwd = "" };
	struct pool_state s = { 0 };
	struct held h;

	if (access("/usr/bin/python3", X_OK) < 0)
		skip();
	assert_int_equal(launcher_template_sync(r->launcher, &t, -1, &r->err), 0);
	assert_int_equal(launcher_pool_sync(r->launcher, &pool, &r->err), 0);
	for (int i = 0; i < 2000 && s.ready < 1; i++) {
		(void)usleep(10000);
		assert_int_equal(launcher_pool_state_sync(r->launcher, PYTHON, &s, &r->err), 0);
	}
	rig_claim(r, &(struct launch_spec){ .template_id = PYTHON, .tag = "py" }, &h);
	rig_kill(r);
	rig_drop(&h);
	rig_start(r);
	assert_int_equal(rig_only(r).info.flags, h.box.flags);
	rig_attach(r, h.box.id, &h);
	rig_run(r, &h, &e, "42\n");
	rig_destroy(r, h.box.id);
	rig_drop(&h);
}

/* Killed somewhere between a claim and its answer, again and again. */
static void a_launcher_may_be_killed_at_any_moment(void **state)
{
	struct rig *r = need(state);
	struct listed boxes[BOXES_MAX];
	struct held h;

	for (unsigned i = 0; i < 24; i++) {
		pid_t killer = fork(), pid = launcher_pid(r->launcher);

		if (killer == 0) {
			(void)usleep(i * 700);
			_exit(kill(pid, SIGKILL) < 0);
		}
		for (int k = 0; k < 8; k++) {
			struct launch_spec spec = { .template_id = HOST };

			if (launcher_claim_sync(r->launcher, &spec, &h.box, &r->err) < 0)
				break;
			launcher_box_done(&h.box);
		}
		assert_int_equal(waitpid(killer, NULL, 0), killer);
		r->launcher = launcher_stop(r->launcher);
		rig_start(r);
		for (size_t k = rig_list(r, boxes); k > 0; k--) {
			struct box_usage usage;
			int e = launcher_destroy_sync(r->launcher, boxes[k - 1].id, &usage,
						      &r->err);

			if (e < 0 && e != -ENOENT) /* it may just have ended by itself */
				fail_msg("destroy: %s", r->err.text);
		}
		assert_int_equal(rig_list(r, boxes), 0);
		assert_int_equal(rig_count_files(r), 0);
	}
}

/* Without privilege the same must hold, with no ids to share out. */
static int become_nobody(void)
{
	if (geteuid() != 0)
		return 0;
	return setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
			       setresuid(NOBODY, NOBODY, NOBODY) < 0
		       ? -errno
		       : 0;
}

/* A client that was taken over can name every directory of the machine, and hand over what it may
 * not read itself. */
static void a_launcher_of_a_daemon_takes_no_directory(void **state)
{
	struct rig *r = need(state);
	struct template_spec t = { .id = PYTHON, .root = ROOT_DIR, .preload = "" };
	_close_ int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	assert_true(root >= 0);
	assert_int_equal(launcher_template_sync(r->launcher, &t, root, &r->err), -EPERM);
}

/* The launcher's own processes: one in each group of v1, where a box that runs out of memory takes
 * it along. */
static size_t end_helpers(pid_t launcher, pid_t ret[32])
{
	char path[64], text[4096];
	struct str rest, word;
	size_t n = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", launcher, launcher);
	assert_true(fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) > 0);
	rest = str_of(text);
	while (n < 32 && str_split(&rest, ' ', &word)) {
		char number[16] = "", name[32] = "";
		uint32_t pid;

		(void)snprintf(number, sizeof(number), "%.*s", (int)word.len, word.data);
		if (parse_u32(number, 1, INT32_MAX, &pid) < 0)
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%u/comm", pid);
		(void)fd_read_file_at(AT_FDCWD, path, name, sizeof(name));
		if (strcmp(name, "holt-launch\n") == 0 && kill((pid_t)pid, SIGKILL) == 0)
			ret[n++] = (pid_t)pid;
	}
	for (size_t i = 0; i < n; i++)
		while (kill(ret[i], 0) == 0)
			(void)usleep(1000);
	return n;
}

/* A stranger by that number. */
static void start_as(pid_t pid)
{
	struct clone_args a = { .exit_signal = SIGCHLD,
				.set_tid = (uint64_t)(uintptr_t)&pid,
				.set_tid_size = 1 };
	long r = syscall(SYS_clone3, &a, sizeof(a));

	if (r == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)syscall(SYS_close_range, 3, ~0u, 0); /* our end of the launcher's socket */
		for (;;)
			(void)pause();
	}
}

static void a_number_that_is_anothers_by_now_is_not_killed(void **state)
{
	struct rig *r = need(state);
	pid_t pids[32];
	struct held h;
	size_t n;

	if (geteuid() != 0 || launcher_info(r->launcher)->cgroup != CGROUP_V1)
		skip();
	claim(r, "", &h);
	n = end_helpers(launcher_pid(r->launcher), pids);
	assert_true(n > 0);
	for (size_t i = 0; i < n; i++)
		start_as(pids[i]);
	rig_destroy(r, h.box.id);
	rig_drop(&h);
	rig_stop(r);
	for (size_t i = 0; i < n; i++) {
		pid_t ended = waitpid(pids[i], NULL, WNOHANG);

		if (ended < 0) /* somebody else got the number first */
			continue;
		(void)kill(pids[i], SIGKILL);
		assert_int_equal(ended, 0);
		(void)waitpid(pids[i], NULL, 0);
	}
	rig_start(r);
}

/* Nor are its boxes where the machine's sockets without a file are, which it may not reach either.
 */
static void a_launcher_of_a_daemon_gives_no_network(void **state)
{
	struct rig *r = need(state);
	struct template_spec t = {
		.id = PYTHON, .root = ROOT_HOST, .net = NET_HOST, .preload = ""
	};

	assert_int_equal(launcher_template_sync(r->launcher, &t, -1, &r->err), -EPERM);
}

/* usage: test_persist [root|nobody [KIND [PATTERN]]] */
#define CASE(f) cmocka_unit_test_setup_teardown(f, open_rig, close_rig)

int main(int argc, char **argv)
{
	static const char *const kinds[] = { "auto", "v2", "none" };
	const struct CMUnitTest tests[] = {
		CASE(a_box_outlives_a_killed_launcher_and_is_found_again),
		CASE(claimed_boxes_stay_when_the_client_goes_and_others_do_not),
		CASE(a_box_outlives_client_and_launcher_killed_at_once),
		CASE(a_box_outlives_a_killed_client),
		CASE(a_box_can_be_handed_on_many_times),
		CASE(attaching_works_also_for_a_box_of_the_same_launcher),
		CASE(a_paused_box_is_found_paused_and_goes_on),
		CASE(a_paused_box_that_was_taken_over_can_be_destroyed),
		CASE(limits_and_usage_go_on_where_they_were),
		CASE(an_adopted_box_that_dies_is_reported_without_a_status),
		CASE(a_box_that_died_meanwhile_leaves_nothing),
		CASE(a_second_launcher_is_refused),
		CASE(a_directory_that_others_can_look_into_is_refused),
		CASE(a_launcher_of_a_daemon_takes_no_directory),
		CASE(a_launcher_of_a_daemon_gives_no_network),
		CASE(a_number_that_is_anothers_by_now_is_not_killed),
		CASE(a_launcher_without_a_directory_attaches_nothing),
		CASE(a_record_of_what_is_no_box_is_not_believed),
		CASE(damaged_files_do_no_harm_and_are_removed),
		CASE(a_box_whose_record_is_lost_is_ended),
		CASE(a_box_that_another_version_recorded_is_ended),
		CASE(ids_of_a_living_box_are_nobody_elses),
		CASE(boxes_are_found_also_from_another_control_group),
		CASE(a_box_without_groups_lives_on_where_others_have_them),
		CASE(a_box_with_groups_is_not_ended_by_a_launcher_without_them),
		CASE(waiting_boxes_that_die_are_not_announced_and_not_replaced_for_ever),
		CASE(a_box_with_a_waiting_python_is_found_again),
		CASE(a_launcher_may_be_killed_at_any_moment),
	};
	int failed = 0;

	if (argc > 1 && strcmp(argv[1], "nobody") == 0 && become_nobody() < 0)
		return 1;
	if (rig_check_disk())
		return RIG_SKIP;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		kind = kinds[i];
		if (argc > 2 && strcmp(argv[2], kind) != 0)
			continue;
		if (argc > 3)
			cmocka_set_test_filter(argv[3]);
		failed += cmocka_run_group_tests_name(kind, tests, NULL, NULL);
	}
	return failed;
}
