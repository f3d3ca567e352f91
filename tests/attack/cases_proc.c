/* F1 to F6, F9, F11, F13: files that lead out, and what /proc, /sys and /dev show. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "attack.h"
#include "base/cleanup.h"
#include "base/fd.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static uint64_t checksum(const char *path)
{
	_cleanup_(buf_done) struct buf b = { .max = 64u << 20 };
	_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t h = 1469598103934665603u;

	if (fd < 0 || fd_slurp(fd, &b) < 0)
		return 0;
	for (size_t i = 0; i < b.len; i++)
		h = (h ^ (unsigned char)b.data[i]) * 1099511628211u;
	return h;
}

/* The launcher's and the guest's programs, asked for by their own names from inside. */
static void own_programs_stay_whole(struct world *w, const struct attack *a)
{
	static const char script[] = "#!/proc/self/exe\nexec 9>/proc/self/exe\n";
	const char *launcher = getenv("HOLT_ATTACK_LAUNCHER");
	uint64_t before = checksum(launcher);
	struct guest_exec e = { .argc = 2,
				.timeout_ms = 5000,
				.user = "",
				.cwd = "",
				.code = "",
				.argv = { "/proc/self/exe", "--python" } };
	struct op op;

	(void)a;
	assert_true(before != 0);
	box_open(w, &w->box, TEMPLATE_PLAIN, NULL);
	box_upload(w, &w->box);
	for (int i = 0; i < 20; i++) { /* PID 1's program, started as the box's user */
		box_start_argv(&w->box, &e, &op);
		assert_true(box_wait(&w->box, &op, 10000));
		op_done(&op);
	}
	assert_int_equal(api_put(&w->box,
				 &(struct guest_file){ .op = FILE_WRITE,
						       .mode = 0755,
						       .user = "",
						       .path = "/tmp/script",
						       .target = "" },
				 script, strlen(script), NULL),
			 0);
	e.argv[0] = "/tmp/script";
	box_start_argv(&w->box, &e, &op);
	assert_true(box_wait(&w->box, &op, 10000));
	op_done(&op);
	box_expect_held(w, &w->box, "own-exe", 0);
	box_expect_held(w, &w->box, "own-exe", AS_ROOT);
	box_expect_held(w, &w->box, "write-self /proc/1/exe", AS_ROOT);
	box_expect_answer(&w->box);
	box_close(w, &w->box, NULL);
	assert_true(checksum(launcher) == before);
	box_open(w, &w->box, TEMPLATE_PLAIN, NULL); /* and the next one still works */
	box_expect_answer(&w->box);
	box_close(w, &w->box, NULL);
}

/* Working directories that lead, or seem to lead, out of the root. */
static void odd_directories_stay_inside(struct world *w, const struct attack *a)
{
	static const char *const places[] = {
		"/proc/self/fd/3",
		"/proc/self/fd/3/..",
		"/proc/self/cwd",
		"/proc/self/root",
		"/proc/1/cwd",
		"/proc/1/root",
		"/..",
		"/../../../..",
		"../../../../../..",
		"/proc/self/fd/7",
		"/proc/self/fd/4",
		"/proc/1/fd/3",
		"/workspace/gone",
		"/proc/thread-self/root/..",
		"",
	};

	(void)a;
	box_open(w, &w->box, TEMPLATE_PLAIN, NULL);
	box_upload(w, &w->box);
	for (size_t i = 0; i < COUNT(places); i++) {
		struct guest_exec e = { .argc = 2,
					.timeout_ms = 5000,
					.user = "",
					.cwd = places[i],
					.code = "",
					.argv = { ATTACK_PROBE, "inside-root" } };
		struct op op;

		box_start_argv(&w->box, &e, &op);
		assert_true(box_wait(&w->box, &op, 10000));
		if (op.code == 0) /* refusing the directory is fine too */
			op_expect_held(places[i], &op, 0);
		op_done(&op);
	}
	box_close(w, &w->box, NULL);
}

#define PLAIN(name, probe)                     \
	{                                      \
		name, probe, 0, 0, { 0 }, NULL \
	}
#define BOTH(name, probe)                                                      \
	{ name, probe, 0, 0, { 0 }, NULL },                                    \
	{                                                                      \
		name ", by the box's root too", probe, AS_ROOT, 0, { 0 }, NULL \
	}

static const struct attack rows[] = {
	{ "F1 no program of ours can be overwritten from inside",
	  NULL,
	  0,
	  0,
	  { 0 },
	  own_programs_stay_whole },
	PLAIN("F2 a process has three descriptors and none leads out", "descriptors"),
	{ "F2 a process on a terminal has three descriptors and none leads out",
	  "descriptors",
	  ON_TERMINAL,
	  0,
	  { 0 },
	  NULL },
	PLAIN("F2 O_PATH and magic links open nothing more", "magic"),
	{ "F3 no working directory lies outside the root",
	  NULL,
	  0,
	  0,
	  { 0 },
	  odd_directories_stay_inside },
	BOTH("F4 core_pattern, modprobe, sysrq and their like take no write", "sysctls"),
	BOTH("F4 nothing in /proc/sys opens for writing", "all-sysctls"),
	PLAIN("F4 id maps and PID 1's files take no write", "own-files"),
	BOTH("F5 control groups are not there", "cgroups"),
	BOTH("F6 /sys is not there", "sys-tree"),
	BOTH("F6 files of /proc tell nothing about the kernel", "kernel-files"),
	BOTH("F9 no file of the system can be linked", "hard-links"),
	PLAIN("F11 /dev holds only what is harmless", "dev-list"),
	BOTH("F11 no device of the machine opens", "dev-machine"),
	BOTH("F11 no device can be made", "dev-make"),
	PLAIN("F13 a whiteout leads nowhere", "dev-whiteout"),
	BOTH("F13 no overlay mark sticks", "overlay-marks"),
	BOTH("F15 a file of the lower layer cannot be changed in any way",
	     "write-lower /usr/bin/env"),
	PLAIN("F15 mincore and cachestat do not tell what others read", "cached /usr/bin/env"),
	PLAIN("F7 files of the machine are on no path", "paths-absent @canary @dir"),
};

const struct attack_table attacks_proc = { rows, COUNT(rows) };
