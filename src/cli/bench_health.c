/* GET /healthz beside nginx with a file of the same bytes: each on one processor, asked from
 * another, in turn. */
#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "cli/bench.h"
#include "cli/bench_daemon.h"
#include "cli/bench_nginx.h"
#include "cli/bench_race.h"

static int hold_race(struct bench *b, struct bench_row *row, struct race *race, struct err *err)
{
	_cleanup_(own_daemon_stop) struct own_daemon d = { 0 };
	_cleanup_(bench_nginx_stop) struct bench_nginx n = { 0 };
	_cleanup_(buf_done) struct buf page = { 0 };
	int r = bench_daemon_start(&d, err);

	if (r == 0)
		r = fetch_want(&d.conn, 200, "GET", "/healthz", NULL, &page, err);
	if (r == 0)
		r = bench_nginx_start(&n,
				      &(struct bench_nginx_options){ .program = race->nginx,
								     .dir = d.dir,
								     .page = buf_str(&page),
								     .cpu = race->server_cpu },
				      err);
	if (r < 0)
		return r;
	r = bench_pin(d.pid, race->server_cpu);
	if (r < 0)
		return err_sys(err, r, "keep the daemon on processor %d", race->server_cpu);
	race->ours = (struct race_side){ .port = d.port, .pid = d.pid, .path = "/healthz" };
	race->theirs = (struct race_side){ .port = n.port, .pid = n.worker, .path = "/healthz" };
	r = race_run(b, race, err);
	if (r == 0)
		race_fill(b, race, row, "processor time of GET /healthz", 0.9);
	return r;
}

int bench_health(struct bench *b, struct err *err)
{
	_cleanup_(race_done) struct race race = { 0 };
	struct bench_row *row = bench_add(b, "health", "GET /healthz, one processor");
	int r = race_init(&race, row, err);

	return r <= 0 ? r : hold_race(b, row, &race, err);
}
