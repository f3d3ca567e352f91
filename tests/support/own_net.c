#include "own_net.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"
#include "check.h"

bool own_net_enter(void)
{
	_close_ int sock = -1;
	struct ifreq req = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };

	if (unshare(geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET) < 0)
		return false;
	sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return sock >= 0 && ioctl(sock, SIOCSIFFLAGS, &req) == 0;
}

void own_net_add(int number, const char *v4)
{
	_close_ int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in a = { .sin_family = AF_INET };
	struct ifreq req = { 0 };

	(void)str_format(req.ifr_name, sizeof(req.ifr_name), "lo:%d", number);
	assert_int_equal(inet_pton(AF_INET, v4, &a.sin_addr), 1);
	memcpy(&req.ifr_addr, &a, sizeof(a));
	assert_int_equal(ioctl(sock, SIOCSIFADDR, &req), 0);
}
