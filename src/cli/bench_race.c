#include "cli/bench_race.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/str.h"
#include "cli/bench_daemon.h"

#define ROUNDS 15
#define ROUNDS_QUICK 3
#define CONNECTIONS "32"

int race_init(struct race *race, struct bench_row *row, struct err *err)
{
	*race = (struct race){ 0 };
	if (!bare_is_there("wrk", race->wrk, sizeof(race->wrk)) ||
	    (!bare_is_there("nginx", race->nginx, sizeof(race->nginx)) &&
	     !bare_is_there("/usr/sbin/nginx", race->nginx, sizeof(race->nginx)))) {
		row->verdict = VERDICT_ABSENT;
		(void)snprintf(row->note, sizeof(row->note), "nginx and wrk are not both there");
		return 0;
	}
	if (bench_cpus(&race->server_cpu, &race->client_cpu) < 0)
		return err_set(err, EIO, "no processor to be kept on");
	return 1;
}

void race_done(struct race *race)
{
	samples_done(&race->ours.rates);
	samples_done(&race->ours.cpu_ns);
	samples_done(&race->theirs.rates);
	samples_done(&race->theirs.cpu_ns);
	samples_done(&race->ratios);
}

/* ---- wrk ---- */

static _Noreturn void become_wrk(const struct race *race, const struct race_side *s, int out)
{
	char url[256];

	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%u%s", s->port, s->path);
	if (dup2(out, STDOUT_FILENO) < 0 || bench_pin(getpid(), race->client_cpu) < 0)
		_exit(126);
	if (s->header)
		(void)execl(race->wrk, "wrk", "-t1", "-c" CONNECTIONS, "-d1s", "-H", s->header, url,
			    (char *)NULL);
	(void)execl(race->wrk, "wrk", "-t1", "-c" CONNECTIONS, "-d1s", url, (char *)NULL);
	_exit(127);
}

static int run_wrk(const struct race *race, const struct race_side *s, struct buf *to,
		   struct err *err)
{
	int out[2], status = 0, r;
	pid_t pid;

	if (pipe2(out, O_CLOEXEC) < 0)
		return err_sys(err, errno, "pipe");
	pid = fork();
	if (pid == 0)
		become_wrk(race, s, out[1]);
	(void)close(out[1]);
	r = pid < 0 ? -errno : fd_slurp(out[0], to);
	(void)close(out[0]);
	if (r < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		return err_set(err, EIO, "wrk failed with status %#x", status);
	return 0;
}

/* "  116102 requests in 1.00s, 20.1MB read" and "Requests/sec: 116102.12". */
static int read_report(char *text, uint64_t *ret_requests, double *ret_rate, struct err *err)
{
	char *total = strstr(text, " requests in "), *rate = strstr(text, "Requests/sec:");
	char *end;

	if (!total || !rate || strstr(text, "Non-2xx") || strstr(text, "Socket errors"))
		return err_set(err, EIO, "wrk says: %.150s", text);
	*ret_rate = strtod(rate + strlen("Requests/sec:"), &end);
	*total = '\0';
	total = strrchr(text, '\n');
	total = total ? total + 1 : text;
	if (*ret_rate <= 0 ||
	    parse_u64(total + strspn(total, " "), 1, UINT32_MAX, ret_requests) < 0)
		return err_set(err, EIO, "wrk says nothing that we understand");
	return 0;
}

static int one_round(const struct race *race, struct race_side *s, double *ret_rate,
		     struct err *err)
{
	_cleanup_(buf_done) struct buf report = { 0 };
	uint64_t before, after, requests;
	int r = bench_cpu_ns(s->pid, &before);

	if (r == 0)
		r = run_wrk(race, s, &report, err);
	if (r == 0)
		r = bench_cpu_ns(s->pid, &after);
	if (r == 0)
		r = read_report(report.data, &requests, ret_rate, err);
	if (r < 0)
		return err_code(err) ? r : err_sys(err, r, "processor time of a server");
	if (samples_add(&s->rates, (uint64_t)*ret_rate) < 0 ||
	    samples_add(&s->cpu_ns, (after - before) / requests) < 0)
		return err_sys(err, ENOMEM, "samples");
	return 0;
}

/* ---- the rows ---- */

int race_run(struct bench *b, struct race *race, struct err *err)
{
	size_t rounds = b->quick ? ROUNDS_QUICK : ROUNDS;
	double ours, theirs;
	int r = 0;

	for (size_t i = 0; r == 0 && i < rounds; i++) {
		bench_quiet(b);
		r = one_round(race, &race->ours, &ours, err);
		if (r == 0)
			r = one_round(race, &race->theirs, &theirs, err);
		if (r == 0)
			r = samples_add(&race->ratios, (uint64_t)(ours / theirs * 1e6));
	}
	return r;
}

void race_fill(struct bench *b, struct race *race, struct bench_row *row, const char *what,
	       double demand)
{
	row->unit = "req/s";
	row->n = race->ratios.len;
	row->p50 = samples_ms(&race->ours.rates, 0.5) * 1e6;
	row->ref_p50 = samples_ms(&race->theirs.rates, 0.5) * 1e6;
	row->ratio = samples_ms(&race->ratios, 0.5);
	(void)snprintf(row->reference, sizeof(row->reference), "nginx, one worker");
	(void)snprintf(row->note, sizeof(row->note),
		       "servers on processor %d, wrk with " CONNECTIONS
		       " kept connections on %d, rounds of 1 s in turn; the ratio is the median "
		       "of the pairs'",
		       race->server_cpu, race->client_cpu);
	bench_judge(row, demand, true);

	row = bench_add(b, row->group, what);
	row->unit = "us";
	row->n = race->ours.cpu_ns.len;
	row->p50 = samples_ms(&race->ours.cpu_ns, 0.5) * 1e3;
	row->ref_p50 = samples_ms(&race->theirs.cpu_ns, 0.5) * 1e3;
	row->ratio = row->ref_p50 > 0 ? row->p50 / row->ref_p50 : 0;
	(void)snprintf(row->reference, sizeof(row->reference), "nginx, one worker");
}
