#include "cli/bench_nginx.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "cli/bench_daemon.h"

#define START_MS 5000

static int free_port(uint16_t *ret)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &len) < 0)
		return -errno;
	*ret = ntohs(at.sin_port);
	return 0;
}

/* What serves it best: one worker, nothing logged, connections kept, the file kept open. */
static void put_config(const struct bench_nginx *n, const char *dir, uint16_t origin,
		       struct buf *to)
{
	static const char *const temps[] = { "client_body", "proxy", "fastcgi", "uwsgi", "scgi" };

	(void)buf_printf(
		to,
		"daemon off;\nworker_processes 1;\npid %s/nginx.pid;\n"
		"error_log %s/nginx.log crit;\nevents { worker_connections 512; }\nhttp {\n",
		dir, dir);
	for (size_t i = 0; i < sizeof(temps) / sizeof(temps[0]); i++)
		(void)buf_printf(to, "%s_temp_path %s/nginx-%s;\n", temps[i], dir, temps[i]);
	(void)buf_printf(to,
			 "access_log off;\nsendfile on;\ntcp_nodelay on;\n"
			 "default_type application/json;\n"
			 "keepalive_timeout 1h;\nkeepalive_requests 1000000000;\n"
			 "open_file_cache max=16 inactive=1h;\nopen_file_cache_valid 1h;\n"
			 "server { listen 127.0.0.1:%u; root %s/www; ",
			 n->port, dir);
	if (origin != 0)
		(void)buf_puts(to, "location / { proxy_pass http://origin; proxy_http_version 1.1; "
				   "proxy_set_header Connection \"\"; } ");
	(void)buf_puts(to, "}\n");
	if (origin != 0)
		(void)buf_printf(to, "upstream origin { server 127.0.0.1:%u; keepalive 64; }\n",
				 origin);
	(void)buf_puts(to, "}\n");
}

static int write_file(const char *dir, const char *name, const char *text, struct err *err)
{
	char path[160];
	_close_ int fd = -1;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0 || fchmod(fd, 0644) < 0 || fd_write_all(fd, text, strlen(text)) < 0)
		return err_sys(err, errno, "write '%.100s'", path);
	return 0;
}

static int write_files(const struct bench_nginx *n, const struct bench_nginx_options *o,
		       struct err *err)
{
	const char *dir = o->dir;
	_cleanup_(buf_done) struct buf config = { 0 };
	char www[128];
	int r;

	put_config(n, dir, o->origin, &config);
	(void)snprintf(www, sizeof(www), "%s/www", dir);
	if ((mkdir(dir, 0755) < 0 && errno != EEXIST) || mkdir(www, 0755) < 0 ||
	    chmod(www, 0755) < 0)
		return err_sys(err, errno, "make '%.100s'", www);
	r = write_file(dir, "nginx.conf", buf_str(&config), err);
	return r < 0 ? r : write_file(www, "healthz", o->page, err);
}

static _Noreturn void become(const char *program, const char *dir, int cpu)
{
	char config[160];
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)snprintf(config, sizeof(config), "%s/nginx.conf", dir);
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (null < 0 || dup2(null, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0 ||
	    (cpu >= 0 && bench_pin(getpid(), cpu) < 0))
		_exit(126);
	(void)execl(program, "nginx", "-c", config, (char *)NULL);
	_exit(127);
}

/* Until it answers. */
static int meet(struct bench_nginx *n, struct err *err)
{
	uint64_t deadline = clock_now_ms() + START_MS;
	struct fetch f;
	int r;

	do {
		bench_nap_ms(20);
		r = fetch_open(&f, n->port, NULL, err);
	} while (r < 0 && clock_now_ms() < deadline);
	if (r == 0)
		r = fetch_want(&f, 200, "GET", "/healthz", NULL, NULL, err);
	fetch_close(&f);
	if (r == 0 && bench_child(n->master, NULL, &n->worker) < 0)
		r = err_set(err, ESRCH, "nginx has no worker");
	return r;
}

int bench_nginx_start(struct bench_nginx *n, const struct bench_nginx_options *o, struct err *err)
{
	int r;

	*n = (struct bench_nginx){ 0 };
	r = free_port(&n->port);
	if (r < 0)
		return err_sys(err, r, "a port for nginx");
	r = write_files(n, o, err);
	if (r < 0)
		return r;
	n->master = fork();
	if (n->master < 0)
		return err_sys(err, errno, "fork");
	if (n->master == 0)
		become(o->program, o->dir, o->cpu);
	return meet(n, err);
}

void bench_nginx_stop(struct bench_nginx *n)
{
	if (n->master <= 0)
		return;
	(void)kill(n->master, SIGTERM);
	(void)waitpid(n->master, NULL, 0);
	n->master = 0;
}
