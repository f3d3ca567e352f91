/* A Python that has run a template's own code: what it says first, and what is believed of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "guest/python.h"
#include "guest/warm.h"
#include "spec/warm.h"

#define SHORT_MS 10

/* What python_wait() makes of one message; n 0: the other end hangs up. */
static int hear(const void *message, size_t n, struct err *err)
{
	int pair[2], r;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	if (n > 0)
		assert_int_equal(send(pair[1], message, n, 0), n);
	else
		(void)close(pair[1]);
	*err = (struct err){ 0 };
	r = python_wait(pair[0], SHORT_MS, err);
	if (n > 0)
		(void)close(pair[1]);
	(void)close(pair[0]);
	return r;
}

static int fail_with(int code, const char *text, struct err *err)
{
	struct warm_failed f = { .code = code };

	memset(f.text, 'x', sizeof(f.text)); /* without an end of its own */
	memcpy(f.text, text, strlen(text) < sizeof(f.text) ? strlen(text) + 1 : sizeof(f.text));
	return hear(&f, sizeof(f), err);
}

static void its_first_word_is_left_for_who_takes_it(void **state)
{
	struct warm_parked parked = { 7 };
	struct err err = { 0 };
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(send(pair[1], &parked, sizeof(parked), 0), sizeof(parked));
	assert_int_equal(python_wait(pair[0], SHORT_MS, &err), 0);
	assert_int_equal(recv(pair[0], &parked, sizeof(parked), MSG_DONTWAIT), sizeof(parked));
	(void)close(pair[0]);
	(void)close(pair[1]);
}

static void a_module_that_cannot_be_imported_is_told_from_other_failures(void **state)
{
	struct err err;

	(void)state;
	assert_int_equal(fail_with(ENOPKG, "preload: no x", &err), -ENOPKG);
	assert_string_equal(err.text, "preload: no x");
	assert_int_equal(fail_with(EIO, "start Python", &err), -EIO);
	assert_int_equal(fail_with(0, "", &err), -EIO);
	assert_int_equal(fail_with(-1, "", &err), -EIO);
}

static void what_it_says_is_shown_in_plain_letters(void **state)
{
	char big[sizeof(((struct warm_failed *)0)->text) + 1];
	struct err err;

	(void)state;
	assert_int_equal(fail_with(ENOPKG, "a\n\x1b[31m\xc3\xa9", &err), -ENOPKG);
	assert_string_equal(err.text, "a??[31m??");
	memset(big, 'y', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	assert_int_equal(fail_with(ENOPKG, big, &err), -ENOPKG);
	assert_int_equal(strlen(err.text), WHY_MAX);
}

static void silence_nonsense_and_an_end_are_failures(void **state)
{
	static char nonsense[4096];
	struct err err = { 0 };
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(python_wait(pair[0], SHORT_MS, &err), -ETIMEDOUT);
	(void)close(pair[0]);
	(void)close(pair[1]);
	assert_int_equal(hear(NULL, 0, &err), -ECHILD);
	assert_int_equal(hear(nonsense, 1, &err), -EPROTO);
	assert_int_equal(hear(nonsense, sizeof(struct warm_failed) - 1, &err), -EPROTO);
}

/* ---- what it says of those that wait ---- */

static int page(off_t size, int seals)
{
	int fd = memfd_create("end", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, size), 0);
	if (seals)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

/* A template that names this pid, with a socket and, if there is one, a page. */
static int adopt(struct warm *w, pid_t pid, int end)
{
	struct warm_parked parked = { pid };
	int pair[2], fds[WARM_PARKED_FDS], r;

	warm_init(w);
	w->is_foreign = true;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	fds[WARM_PARKED_SOCK] = pair[1];
	fds[WARM_PARKED_END] = end;
	assert_int_equal(fd_send(pair[1], &parked, sizeof(parked), fds, end < 0 ? 1 : 2),
			 sizeof(parked));
	r = warm_adopt_python(w, pair[0], NULL);
	(void)close(pair[1]);
	if (end >= 0)
		(void)close(end);
	return r;
}

static pid_t child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)pause();
		_exit(0);
	}
	assert_true(pid > 0);
	return pid;
}

static void end_child(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void only_a_child_of_ours_can_be_waiting(void **state)
{
	pid_t pid = child();
	struct warm w;

	(void)state;
	assert_int_equal(adopt(&w, pid, -1), 0);
	assert_int_equal(w.parked_pid, pid);
	warm_done(&w);
	for (int i = 0; i < 4; i++) {
		const pid_t bad[] = { 1, getpid(), getppid(), INT32_MAX };

		assert_int_equal(adopt(&w, bad[i], -1), -ENOENT);
		assert_int_equal(w.python_fd, -1); /* nothing more is heard of it */
		warm_done(&w);
	}
	end_child(pid);
	assert_int_equal(adopt(&w, pid, -1), -ENOENT);
	warm_done(&w);
}

static void a_page_that_could_shrink_is_not_looked_at(void **state)
{
	const struct {
		off_t size;
		int seals;
		bool good;
	} rows[] = { { WARM_END_SIZE, F_SEAL_SHRINK, true },
		     { WARM_END_SIZE, 0, false },
		     { WARM_END_SIZE, F_SEAL_GROW, false },
		     { WARM_END_SIZE - 1, F_SEAL_SHRINK, false },
		     { 0, F_SEAL_SHRINK, false } };
	pid_t pid = child();
	struct warm w;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(adopt(&w, pid, page(rows[i].size, rows[i].seals)), 0);
		assert_int_equal(w.parked_end != NULL, rows[i].good);
		warm_done(&w);
	}
	assert_int_equal(adopt(&w, pid, open("/dev/zero", O_RDWR | O_CLOEXEC)), 0);
	assert_null(w.parked_end);
	warm_done(&w);
	end_child(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(its_first_word_is_left_for_who_takes_it),
		cmocka_unit_test(a_module_that_cannot_be_imported_is_told_from_other_failures),
		cmocka_unit_test(what_it_says_is_shown_in_plain_letters),
		cmocka_unit_test(silence_nonsense_and_an_end_are_failures),
		cmocka_unit_test(only_a_child_of_ours_can_be_waiting),
		cmocka_unit_test(a_page_that_could_shrink_is_not_looked_at),
	};

	return cmocka_run_group_tests_name("guest_python", tests, NULL, NULL);
}
