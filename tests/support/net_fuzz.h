/* A connection of the server with its other end in the fuzzer's hand: the input is sent in pieces,
 * a piece a turn, and all that comes back is read away. */
#pragma once

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "fuzz.h"
#include "loop/loop.h"
#include "net/exchange.h"
#include "net/http.h"

struct net_fuzz {
	struct loop *loop;
	struct http_server *server;
	struct loop_task turn;
	const char *prefix; /* sent before the input, or NULL */
	const uint8_t *data;
	size_t left, piece;
	size_t answered; /* bytes that came back */
	unsigned turns;
	int fd;
};

static void net_fuzz_turn(void *user)
{
	struct net_fuzz *f = user;
	static char bytes[65536];
	ssize_t n;

	while ((n = recv(f->fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		f->answered += (size_t)n;
	if (f->left > 0) {
		size_t piece = f->left < f->piece ? f->left : f->piece;

		n = send(f->fd, f->data, piece, MSG_DONTWAIT | MSG_NOSIGNAL);
		f->data += n > 0 ? n : 0;
		f->left = n > 0 ? f->left - (size_t)n : 0;
	}
	if (f->left == 0)
		(void)shutdown(f->fd, SHUT_WR);
	/* A client that has closed its side is let go within a few turns, whatever it said. */
	if (f->left == 0)
		MUST(f->turns++ < 1000);
	if (http_server_connections(f->server) == 0)
		loop_stop(f->loop);
	else
		loop_task_post(f->loop, &f->turn);
}

static void net_fuzz_open(struct net_fuzz *f, const struct http_server_options *o)
{
	MUST(loop_create(&f->loop, NULL) == 0);
	MUST(http_server_create(f->loop, o, &f->server, NULL) == 0);
	loop_task_init(&f->turn, net_fuzz_turn, f);
}

static void net_fuzz_run(struct net_fuzz *f, const uint8_t *data, size_t n, size_t piece)
{
	int sv[2];

	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) == 0);
	MUST(exchange_create(f->server, sv[0], NULL) != NULL);
	f->fd = sv[1];
	f->data = data;
	f->left = n;
	f->piece = piece;
	f->answered = f->turns = 0;
	if (f->prefix)
		MUST(fd_write_all(f->fd, f->prefix, strlen(f->prefix)) == 0);
	loop_task_post(f->loop, &f->turn);
	loop_run(f->loop);
	loop_task_cancel(&f->turn);
	f->fd = fd_close(f->fd);
}
