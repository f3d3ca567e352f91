/* A port of a sandbox beside nginx as a reverse proxy: behind both is nginx with the same file, in
 * the box and beside it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "cli/bench.h"
#include "cli/bench_daemon.h"
#include "cli/bench_nginx.h"
#include "cli/bench_race.h"

#define PORT "3000"
#define PAGE "a small page, as a program in a sandbox may have it\n"
#define START_TRIES 100

#define CORES 4
#define EXPOSE "{\"port\":" PORT ",\"public\":true}"
/* The directory of its own, the file, and what bench_nginx.c gives the other one. */
#define SERVE                                                                                 \
	"{\"background\":true,\"command\":\"mkdir -p /tmp/www && printf '" PAGE_SH            \
	"' > /tmp/www/healthz && echo 'daemon off; worker_processes 1; pid /tmp/pid; "        \
	"error_log /tmp/log crit; events { worker_connections 512; } http { access_log off; " \
	"client_body_temp_path /tmp/a; proxy_temp_path /tmp/b; fastcgi_temp_path /tmp/c; "    \
	"uwsgi_temp_path /tmp/d; scgi_temp_path /tmp/e; keepalive_timeout 1h; "               \
	"keepalive_requests 1000000000; open_file_cache max=16 inactive=1h; "                 \
	"open_file_cache_valid 1h; default_type application/json; "                           \
	"server { listen 127.0.0.1:" PORT "; root /tmp/www; } }' > /tmp/conf && "             \
	"exec /usr/sbin/nginx -e /tmp/log -c /tmp/conf\"}"
#define PAGE_SH "a small page, as a program in a sandbox may have it\\\\n"

/* A server in a sandbox, reachable without a key. */
static int serve_inside(struct own_daemon *d, struct race *race, struct err *err)
{
	struct bench_sandbox box;
	char target[BENCH_TARGET];
	char body[BENCH_BOX];
	int r;

	bench_box(body, CORES, ",\"memory\":\"512Mi\"");
	r = bench_sandbox_create(d, body, &box, err);
	if (r == 0) {
		bench_target(target, box.id, "/ports");
		r = fetch_want(&d->conn, 201, "POST", target, EXPOSE, NULL, err);
	}
	if (r == 0) {
		bench_target(target, box.id, "/executions");
		r = fetch_want(&d->conn, 202, "POST", target, SERVE, NULL, err);
	}
	if (r < 0)
		return r;
	bench_target(target, box.id, "/ports/" PORT "/healthz");
	for (int i = 0; i < START_TRIES; i++) {
		bench_nap_ms(50);
		r = fetch_want(&d->conn, 200, "GET", target, NULL, NULL, err);
		if (r == 0)
			break;
	}
	race->ours = (struct race_side){ .port = d->port, .pid = d->pid };
	(void)str_copy(race->ours.path, sizeof(race->ours.path), target);
	return r;
}

static int hold_race(struct bench *b, struct bench_row *row, struct race *race, struct err *err)
{
	_cleanup_(own_daemon_stop) struct own_daemon d = { 0 };
	_cleanup_(bench_nginx_stop) struct bench_nginx origin = { 0 }, proxy = { 0 };
	struct bench_nginx_options o = { .program = race->nginx, .page = PAGE, .cpu = -1 };
	char beside[128];
	int r = bench_daemon_start(&d, err);

	if (r == 0)
		r = serve_inside(&d, race, err);
	if (r < 0)
		return r;
	o.dir = d.dir;
	r = bench_nginx_start(&origin, &o, err);
	if (r < 0)
		return r;
	(void)snprintf(beside, sizeof(beside), "%s/proxy", d.dir);
	o.dir = beside;
	o.cpu = race->server_cpu;
	o.origin = origin.port;
	r = bench_nginx_start(&proxy, &o, err);
	if (r == 0)
		r = bench_pin(d.pid, race->server_cpu);
	if (r < 0)
		return err_code(err) ? r : err_sys(err, r, "keep the daemon on one processor");
	race->theirs =
		(struct race_side){ .port = proxy.port, .pid = proxy.worker, .path = "/healthz" };
	r = race_run(b, race, err);
	if (r == 0)
		race_fill(b, race, row, "processor time of a request to a port", 0.5);
	return r;
}

int bench_proxy(struct bench *b, struct err *err)
{
	_cleanup_(race_done) struct race race = { 0 };
	struct bench_row *row = bench_add(b, "proxy", "GET of a port in a sandbox, one processor");
	int r = race_init(&race, row, err);

	return r <= 0 ? r : hold_race(b, row, &race, err);
}
