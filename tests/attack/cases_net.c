/* N1 to N4: a box without a network. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "attack.h"
#include "base/cleanup.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define PORT 4242

static bool machine_connects(uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
	_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0;
}

/* A listener in one box: neither the machine nor another box comes to it. */
static void listeners_are_alone(struct world *w, const struct attack *a)
{
	struct op op;

	(void)a;
	box_open(w, &w->box, TEMPLATE_PLAIN, NULL);
	box_upload(w, &w->box);
	box_start(w, &w->box, "listen 4242 3000", NULL, &op);
	box_wait_ready(&w->box, &op);
	assert_false(machine_connects(PORT));
	box_expect_held(w, &w->neighbour, "reach 4242", 0);
	assert_true(box_wait(&w->box, &op, 10000));
	op_expect_held("listen", &op, 0);
	op_done(&op);
	box_close(w, &w->box, NULL);
}

/* The same port in two boxes at once: each one's traffic is its own. */
static void ports_are_private(struct world *w, const struct attack *a)
{
	struct op op;

	(void)a;
	box_open(w, &w->box, TEMPLATE_PLAIN, NULL);
	box_upload(w, &w->box);
	box_open(w, &w->other, TEMPLATE_PLAIN, NULL);
	box_upload(w, &w->other);
	box_start(w, &w->box, "listen 4242 3000", NULL, &op);
	box_wait_ready(&w->box, &op);
	box_expect_held(w, &w->other, "loopback 4242", 0);
	assert_true(box_wait(&w->box, &op, 10000));
	op_expect_held("listen", &op, 0);
	op_done(&op);
	box_close(w, &w->other, NULL);
	box_close(w, &w->box, NULL);
}

static const struct attack rows[] = {
	{ "N1 no address of the machine, of a network or of the cloud is in reach",
	  "reach @port @addresses",
	  0,
	  0,
	  { 0 },
	  NULL },
	{ "N1 no address is in reach of the box's root",
	  "reach @port @addresses",
	  AS_ROOT,
	  0,
	  { 0 },
	  NULL },
	{ "N1 there is one interface, lo, and no route", "interfaces", 0, 0, { 0 }, NULL },
	{ "N1 the box's root cannot change an interface", "interfaces", AS_ROOT, 0, { 0 }, NULL },
	{ "N1 services of the machine answer on no path", "services", 0, 0, { 0 }, NULL },
	{ "N2 no name can be resolved", "dns", 0, 0, { 0 }, NULL },
	{ "N3 a listener inside is out of reach for the machine and for other boxes",
	  NULL,
	  0,
	  0,
	  { 0 },
	  listeners_are_alone },
	{ "N4 the same port in two boxes is two ports", NULL, 0, 0, { 0 }, ports_are_private },
};

const struct attack_table attacks_net = { rows, COUNT(rows) };
