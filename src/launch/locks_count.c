#include "launch/locks_count.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/str.h"

#define KIND_FIELD 2
#define PID_FIELD 5 /* "1: POSIX  ADVISORY  WRITE 4711 fe:00:23 0 EOF", blanks doubled or not */

static pid_t parse_pid(struct str line)
{
	struct str word = { 0 };
	char text[16];
	uint32_t pid;
	int n = 0;

	while (n < PID_FIELD && str_split(&line, ' ', &word)) {
		n += word.len > 0 && !str_is(word, "->"); /* one that waits for another */
		if (n == KIND_FIELD && str_is(word, "FLOCK"))
			return 0;
	}
	if (n < PID_FIELD || str_format(text, sizeof(text), "%.*s", (int)word.len, word.data) < 0 ||
	    parse_u32(text, 1, INT32_MAX, &pid) < 0)
		return 0;
	return (pid_t)pid;
}

size_t locks_parse(const char *text, size_t size, pid_t *pids, size_t *n, size_t max)
{
	size_t done = 0;

	while (*n < max) {
		const char *end = memchr(text + done, '\n', size - done);

		if (!end)
			break;
		pids[(*n)++] = parse_pid((struct str){ text + done, (size_t)(end - text) - done });
		done = (size_t)(end - text) + 1;
	}
	return done;
}

static int compare_pids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

size_t locks_count(pid_t *pids, size_t n, struct lock_holder *ret)
{
	size_t rows = 0;

	qsort(pids, n, sizeof(pids[0]), compare_pids);
	for (size_t i = 0; i < n; i++) {
		if (pids[i] == 0)
			continue;
		if (rows == 0 || ret[rows - 1].pid != pids[i])
			ret[rows++] = (struct lock_holder){ .pid = pids[i] };
		ret[rows - 1].count++;
	}
	return rows;
}

static int compare_holders(const void *a, const void *b)
{
	uint64_t x = ((const struct lock_holder *)a)->pid_ns;
	uint64_t y = ((const struct lock_holder *)b)->pid_ns;

	return (x > y) - (x < y);
}

uint64_t locks_judge(struct lock_holder *holders, size_t n, size_t most)
{
	uint64_t found = 0;

	qsort(holders, n, sizeof(holders[0]), compare_holders);
	for (size_t i = 0, sum = 0; i < n; i++) {
		bool goes_on = i > 0 && holders[i - 1].pid_ns == holders[i].pid_ns;

		sum = (goes_on ? sum : 0) + holders[i].count;
		if (holders[i].pid_ns == 0 || sum <= most)
			continue;
		most = sum;
		found = holders[i].pid_ns;
	}
	return found;
}
