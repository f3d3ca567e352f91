/* Other kinds of boxes: the high level, the machine's network, warm interpreters. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "attack.h"
#include "base/err.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define TEMPLATE_OTHER 5u
#define TEMPLATE_WARM 6u

/* Every probe of the list in a box of this template. */
static void attack_template(struct world *w, const struct template_spec *t,
			    const char *const *probes, size_t n)
{
	struct err err = { 0 };

	if (launcher_template_sync(w->launcher, t, -1, &err) < 0)
		fail_msg("template: %s", err.text);
	box_open(w, &w->box, t->id, NULL);
	box_upload(w, &w->box);
	for (size_t i = 0; i < n; i++)
		box_expect_held(w, &w->box, probes[i], 0);
	box_expect_answer(&w->box);
	box_close(w, &w->box, NULL);
}

static void high_level_is_closer(struct world *w, const struct attack *a)
{
	static const char *const probes[] = {
		"mounts",
		"by-unshare",
		"by-clone3",
		"keys",
		"bpf",
		"io-uring",
		"transports",
		"families",
		"netlink",
		"nothing-held",
		"sysctls",
		"all-sysctls",
		"kernel-files",
		"sys-tree",
		"cgroups",
		"init-files",
		"descriptors",
		"from-memory",
		"reach @port @addresses",
		"leak-search @secrets",
		"own-files",
		"dev-list",
		"write-lower /usr/bin/env",
		"trace 1",
		"steal-fd",
	};
	struct template_spec t = {
		.id = TEMPLATE_OTHER, .root = ROOT_HOST, .level = LEVEL_HIGH, .preload = ""
	};

	(void)a;
	attack_template(w, &t, probes, COUNT(probes));
}

/* A box on the machine's network shares its addresses and nothing else. */
static void host_network_is_only_addresses(struct world *w, const struct attack *a)
{
	static const char *const probes[] = {
		"abstract @abstract",
		"netlink",
		"families",
		"transports",
		"netfilter",
		"nothing-held",
		"services",
		"find-socket",
		"find-socket-files",
		"signal-outside @pids",
		"sys-tree",
		"join",
		"by-unshare",
		"processes",
		"names",
	};
	struct template_spec t = {
		.id = TEMPLATE_OTHER, .root = ROOT_HOST, .net = NET_HOST, .preload = ""
	};

	if (launcher_info(w->launcher)->landlock_abi <
	    6) /* what keeps abstract sockets apart there */
		world_skip(w, "this kernel's Landlock has no scopes");
	(void)a;
	attack_template(w, &t, probes, COUNT(probes));
}

/* Runs a piece of Python in the box; it must say "held". Whether a waiting interpreter ran it. */
static bool expect_python(struct world *w, const char *code, struct buf *ret)
{
	struct guest_exec e = {
		.kind = EXEC_PYTHON, .timeout_ms = 20000, .user = "", .cwd = "", .code = code
	};
	struct op op;

	e.output_limit = 1u << 20;
	box_start_argv(&w->box, &e, &op);
	assert_true(box_wait(&w->box, &op, 30000));
	if (op.code)
		fail_msg("python: %s", op.text);
	if (op.exit.code != 0 || !strstr(buf_str(&op.out), "held"))
		fail_msg("python: code %u: %s%s", op.exit.code, buf_str(&op.out), buf_str(&op.err));
	if (ret)
		(void)buf_append(ret, buf_str(&op.out), op.out.len);
	op_done(&op);
	return op.warm;
}

/* What an interpreter that was forked from a shared template must not have brought along. */
static const char confined[] =
	"import os, sys, time\n"
	"status = dict(l.split(':\\t', 1) for l in open('/proc/self/status').read().splitlines() "
	"if ':\\t' in l)\n"
	"caps = [status[k] for k in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb')]\n"
	"assert all(int(c, 16) == 0 for c in caps), caps\n"
	"assert status['NoNewPrivs'].strip() == '1' and status['Seccomp'].strip() == '2', status\n"
	"assert os.getuid() == os.geteuid() == 1000, os.getuid()\n"
	"fds = {}\n"
	"for f in os.listdir('/proc/self/fd'):\n"
	"    try:\n"
	"        fds[f] = os.readlink('/proc/self/fd/' + f)\n"
	"    except FileNotFoundError:\n"
	"        pass\n"
	"assert set(fds) <= {'0', '1', '2'}, fds\n"
	"assert 'HOLT_ATTACK_SECRET' not in os.environ, os.environ\n"
	"maps = [l for l in open('/proc/self/maps') if l.split()[1][1] + l.split()[1][3] == 'ws']\n"
	"maps = [l for l in maps if 'memfd:end ' not in l]\n" /* W4 is about that one */
	"assert not maps, maps\n"
	"def readable():\n"
	"    for pid in os.listdir('/proc'):\n"
	"        for name in ('mem', 'environ', 'maps'):\n"
	"            if pid.isdigit() and int(pid) != os.getpid():\n"
	"                try:\n"
	"                    open('/proc/%s/%s' % (pid, name), 'rb').read(1)\n"
	"                except OSError:\n"
	"                    continue\n"
	"                return '/proc/%s/%s' % (pid, name)\n"
	"for i in range(500):\n" /* the run before this one may still be on its way out */
	"    found = readable()\n"
	"    if not found:\n"
	"        break\n"
	"    time.sleep(0.02)\n"
	"assert not found, found\n"
	"print('held')\n";

/* The one page that a run shares, to say how it ends: no way from there to another run's. */
static const char grown[] =
	"import ctypes, os\n"
	"libc = ctypes.CDLL(None, use_errno=True)\n"
	"libc.mremap.restype = ctypes.c_void_p\n"
	"for line in open('/proc/self/maps'):\n"
	"    if line.split()[1][1] + line.split()[1][3] != 'ws':\n"
	"        continue\n"
	"    start, end = (int(x, 16) for x in line.split()[0].split('-'))\n"
	"    assert end - start <= 4096, line\n"
	"    new = libc.mremap(ctypes.c_void_p(start), ctypes.c_size_t(4096), "
	"ctypes.c_size_t(8192), 1)\n"
	"    if new in (None, 2**64 - 1):\n"
	"        continue\n"
	"    pid = os.fork()\n"
	"    if pid == 0:\n"
	"        print(line, hex(new))\n"
	"        ctypes.memset(new + 4096, 65, 1)\n" /* SIGBUS where there is nothing behind it */
	"        os._exit(0)\n"
	"    assert os.waitpid(pid, 0)[1] != 0, 'the page behind ours can be written'\n"
	"print('held')\n";

static const char numbers[] =
	"import os, random, uuid, sys\n"
	"print('held', random.getrandbits(64), uuid.uuid4(), os.urandom(8).hex(),\n"
	"      hash('a string'), id(object()) * 0)\n";

static void define_warm(struct world *w)
{
	struct template_spec t = { .id = TEMPLATE_WARM,
				   .root = ROOT_HOST,
				   .flags = TEMPLATE_WARM_PYTHON,
				   .preload = "json,random,uuid" };
	struct err err = { 0 };

	if (access("/usr/bin/python3", X_OK) < 0)
		world_skip(w, "there is no python3");
	if (launcher_template_sync(w->launcher, &t, -1, &err) < 0)
		fail_msg("template: %s", err.text);
}

/* A box with a Python waiting in it; the first ones may come before the template interpreter is up.
 */
static void open_warm(struct world *w)
{
	for (int i = 0; i < 100; i++) {
		box_open(w, &w->box, TEMPLATE_WARM, NULL);
		if (w->box.l.flags & BOX_WARM_PYTHON)
			return;
		box_close(w, &w->box, NULL);
		(void)usleep(100000);
	}
	fail_msg("no box has a waiting Python");
}

static void warm_python_is_confined(struct world *w, const struct attack *a)
{
	(void)a;
	define_warm(w);
	for (int i = 0; i < 5; i++) {
		open_warm(w);
		assert_true(expect_python(w, confined, NULL));
		assert_true(expect_python(w, confined,
					  NULL)); /* the second fork of the box's own template */
		box_close(w, &w->box, NULL);
	}
}

static void shared_pages_do_not_grow(struct world *w, const struct attack *a)
{
	(void)a;
	define_warm(w);
	open_warm(w);
	for (int i = 0; i < 3; i++)
		assert_true(expect_python(w, grown, NULL));
	box_close(w, &w->box, NULL);
}

/* Two runs, in one box and in another: no random state, seed or name in common. */
static void warm_pythons_share_nothing(struct world *w, const struct attack *a)
{
	struct buf seen[6] = { 0 };
	size_t n = 0;

	(void)a;
	define_warm(w);
	while (n < COUNT(seen)) {
		open_warm(w);
		assert_true(expect_python(w, numbers, &seen[n++]));
		assert_true(expect_python(w, numbers, &seen[n++]));
		assert_true(expect_python(
			w,
			"import builtins, json\nassert not hasattr(builtins, 'mark')\n"
			"builtins.mark = json.mark = 1\nprint('held')\n",
			NULL));
		assert_true(expect_python(
			w,
			"import builtins, json\nassert not hasattr(builtins, 'mark')\n"
			"assert not hasattr(json, 'mark')\nprint('held')\n",
			NULL));
		box_close(w, &w->box, NULL);
	}
	for (size_t i = 0; i < COUNT(seen); i++) {
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(buf_str(&seen[i]), buf_str(&seen[k]));
	}
	for (size_t i = 0; i < COUNT(seen); i++)
		buf_done(&seen[i]);
}

/* One that ends badly takes nothing along: the next box's Python is a fresh one. */
static void broken_pythons_break_alone(struct world *w, const struct attack *a)
{
	static const char *const ends[] = {
		"import os\nos._exit(9)\n",
		"import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n",
		"import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n",
		"import os, signal\nos.kill(-1, signal.SIGKILL)\n",
		"import ctypes\nctypes.string_at(0)\n",
		"import sys\nsys.setrecursionlimit(10**9)\ndef f(): f()\nf()\n",
	};

	(void)a;
	define_warm(w);
	for (size_t i = 0; i < COUNT(ends); i++) {
		struct guest_exec e = { .kind = EXEC_PYTHON,
					.timeout_ms = 10000,
					.user = "",
					.cwd = "",
					.code = ends[i] };
		struct op op;

		open_warm(w);
		box_start_argv(&w->box, &e, &op);
		assert_true(box_wait(&w->box, &op, 20000));
		op_done(&op);
		box_expect_answer(&w->box);
		(void)expect_python(w, confined,
				    NULL); /* cold where it has killed the waiting one */
		box_close(w, &w->box, NULL);
	}
}

static const struct attack rows[] = {
	{ "H1 a box of the high level holds against the same attacks",
	  NULL,
	  0,
	  0,
	  { 0 },
	  high_level_is_closer },
	{ "H2 a box on the machine's network shares addresses and nothing else",
	  NULL,
	  0,
	  0,
	  { 0 },
	  host_network_is_only_addresses },
	{ "W1 a warm Python is confined like any program and holds no descriptor of its template",
	  NULL,
	  0,
	  0,
	  { 0 },
	  warm_python_is_confined },
	{ "W2 warm Pythons share no random state, seed or object",
	  NULL,
	  0,
	  0,
	  { 0 },
	  warm_pythons_share_nothing },
	{ "W4 a warm Python cannot reach from its own shared page to another's",
	  NULL,
	  0,
	  0,
	  { 0 },
	  shared_pages_do_not_grow },
	{ "W3 a warm Python that breaks breaks alone",
	  NULL,
	  0,
	  0,
	  { 0 },
	  broken_pythons_break_alone },
};

const struct attack_table attacks_level = { rows, COUNT(rows) };
