#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/str.h"
#include "cli/bench.h"

#define BATCH 10        /* runs between two looks at the machine's load */
#define WARM_UP 5       /* runs of each side that are not counted */
#define SAMPLE_MS 60    /* how long one look takes */
#define BUSY_LIMIT 0.17 /* share of all processors; above it we wait */

struct bench_row *bench_add(struct bench *b, const char *group, const char *what)
{
	struct bench_row *row = &b->rows[b->len < BENCH_ROWS_MAX ? b->len++ : BENCH_ROWS_MAX - 1];

	*row = (struct bench_row){ .unit = "ms", .p99 = -1, .ref_p99 = -1 };
	(void)snprintf(row->group, sizeof(row->group), "%s", group);
	(void)snprintf(row->what, sizeof(row->what), "%s", what);
	return row;
}

void bench_judge(struct bench_row *row, double demand, bool at_least)
{
	bool met = at_least ? row->ratio >= demand : row->ratio <= demand;

	row->demand = demand;
	row->at_least = at_least;
	row->verdict = met ? VERDICT_MET : VERDICT_MISSED;
}

void bench_load(char *dst, size_t size)
{
	if (fd_read_file_at(AT_FDCWD, "/proc/loadavg", dst, size) < 0)
		(void)str_copy(dst, size, "unknown");
	dst[strcspn(dst, "\n")] = '\0';
}

/* Jiffies of all processors since the start: all of them, and those spent idle. */
static int read_cpu(uint64_t *ret_all, uint64_t *ret_idle)
{
	char text[4096], number[24];
	struct str rest, word;
	uint64_t v, all = 0, idle = 0;

	/* Longer than our buffer on machines with many processors: the first line is all we want.
	 */
	_close_ int fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : fd_read_all(fd, text, sizeof(text) - 1);

	if (n <= 0)
		return -EIO;
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	rest = str_of(text);
	for (int field = -1; str_split(&rest, ' ', &word);) {
		if (word.len == 0 || str_starts(word, "cpu"))
			continue;
		if (str_format(number, sizeof(number), "%.*s", (int)word.len, word.data) < 0 ||
		    parse_u64(number, 0, UINT64_MAX, &v) < 0)
			return -EIO;
		field++;
		all += v;
		idle += field == 3 || field == 4 ? v : 0;
	}
	*ret_all = all;
	*ret_idle = idle;
	return 0;
}

static void nap_ms(long ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	(void)nanosleep(&t, NULL);
}

static double busy_share(void)
{
	uint64_t all0, idle0, all1, idle1;

	if (read_cpu(&all0, &idle0) < 0)
		return 0;
	nap_ms(SAMPLE_MS);
	if (read_cpu(&all1, &idle1) < 0 || all1 <= all0)
		return 0;
	return 1.0 - (double)(idle1 - idle0) / (double)(all1 - all0);
}

void bench_quiet(struct bench *b)
{
	while (b->patience_ms > 0 && busy_share() > BUSY_LIMIT) {
		uint64_t step = b->patience_ms < 250 ? b->patience_ms : 250;

		nap_ms((long)step);
		b->patience_ms -= step;
		b->waited_ms += step;
	}
}

static int run_batch(const struct probe *p, uint32_t n, struct samples *s, struct err *err)
{
	for (uint32_t i = 0; i < n; i++) {
		uint64_t ns;
		int r = p->once(p->self, &ns, err);

		if (r == 0 && s)
			r = samples_add(s, ns);
		if (r < 0)
			return r;
	}
	return 0;
}

static int run_both(struct bench *b, const struct probe *subject, const struct probe *reference,
		    uint32_t n, struct samples sets[2], struct err *err)
{
	int r = run_batch(subject, WARM_UP, NULL, err);

	if (r == 0)
		r = run_batch(reference, WARM_UP, NULL, err);
	for (uint32_t done = 0; r == 0 && done < n; done += BATCH) {
		uint32_t part = n - done < BATCH ? n - done : BATCH;

		bench_quiet(b);
		r = run_batch(subject, part, &sets[0], err);
		if (r == 0)
			r = run_batch(reference, part, &sets[1], err);
	}
	return r;
}

int bench_pair(struct bench *b, struct bench_row *row, const struct probe *subject,
	       const struct probe *reference, uint32_t n, struct err *err)
{
	struct samples sets[2] = { { 0 } };
	int r = run_both(b, subject, reference, n, sets, err);

	if (r == 0) {
		row->n = sets[0].len;
		row->p50 = samples_ms(&sets[0], 0.5);
		row->p99 = samples_ms(&sets[0], 0.99);
		row->ref_p50 = samples_ms(&sets[1], 0.5);
		row->ref_p99 = samples_ms(&sets[1], 0.99);
		row->ratio = row->ref_p50 > 0 ? row->p50 / row->ref_p50 : 0;
		(void)snprintf(row->reference, sizeof(row->reference), "%s", reference->name);
	}
	samples_done(&sets[0]);
	samples_done(&sets[1]);
	return r;
}
