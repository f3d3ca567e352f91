/* Calls that every program makes, with the arguments that no box may use: filters, options of
 * sockets, requests to devices, attributes of processes and descriptors. Each is one that the
 * kernel would grant, or refuse in another way than the filter does. */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "probe.h"

/* The kernel's own headers are not there for a static program. */
struct bpf_insn_ {
	uint16_t code;
	uint8_t jt, jf;
	uint32_t k;
};
struct bpf_prog_ {
	uint16_t len;
	struct bpf_insn_ *insns;
};
#define FILTER_MODE 2     /* SECCOMP_MODE_FILTER */
#define SET_MODE_FILTER 1 /* SECCOMP_SET_MODE_FILTER */
#define NEW_LISTENER 8    /* SECCOMP_FILTER_FLAG_NEW_LISTENER */
#define SO_LOCK_FILTER_ 44
#define SO_ATTACH_BPF_ 50
#define SO_ATTACH_REUSEPORT_CBPF_ 51
#define SO_ATTACH_REUSEPORT_EBPF_ 52

static int make_socket(int family, int type)
{
	int pair[2] = { -1, -1 };

	if (family != AF_UNIX)
		return socket(family, type, 0);
	(void)socketpair(AF_UNIX, type, 0, pair);
	return pair[0];
}

/* One filter that lets everything through, and each way to attach it, once. */
static int filters(int argc, char **argv)
{
	static const int families[] = { AF_UNIX, AF_INET, AF_INET6 };
	static const int options[] = { SO_ATTACH_FILTER, SO_ATTACH_BPF_, SO_ATTACH_REUSEPORT_CBPF_,
				       SO_ATTACH_REUSEPORT_EBPF_, SO_LOCK_FILTER_ };
	struct bpf_insn_ all = { 0x06 /* return */, 0, 0, 0x7fff0000 /* allow */ };
	struct bpf_prog_ prog = { 1, &all };
	const struct call calls[] = {
		{ "seccomp filter", SYS_seccomp, { SET_MODE_FILTER, 0, P(&prog) } },
		{ "with a listener", SYS_seccomp, { SET_MODE_FILTER, NEW_LISTENER, P(&prog) } },
		{ "by prctl", SYS_prctl, { PR_SET_SECCOMP, FILTER_MODE, P(&prog) } },
		{ "by prctl with high bits",
		  SYS_prctl,
		  { PR_SET_SECCOMP | (1l << 32), FILTER_MODE, P(&prog) } },
	};

	(void)argc, (void)argv;
	for (size_t f = 0; f < COUNT(families); f++)
		for (size_t i = 0; i < COUNT(options); i++) {
			int fd = make_socket(families[f], SOCK_DGRAM);

			if (fd < 0)
				return not_here("socket: %s", strerror(errno));
			if (setsockopt(fd, SOL_SOCKET, options[i], &prog, sizeof(prog)) == 0)
				return broken("option %d of family %d took a filter", options[i],
					      families[f]);
			if (errno != ENOPROTOOPT)
				return broken("option %d of family %d reached the kernel: %s",
					      options[i], families[f], strerror(errno));
			(void)close(fd);
		}
	for (size_t i = 0; i < COUNT(calls); i++) {
		struct outcome o = call_apart(&calls[i]);

		if (o.signal || o.result != -1 || o.error != EINVAL)
			return broken("%s gave %ld, %s", calls[i].what, o.result,
				      strerror(o.error));
	}
	return held("no filter can be attached");
}

static bool core_is_one(void)
{
	struct rlimit r = { 0 };

	return getrlimit(RLIMIT_CORE, &r) == 0 && r.rlim_cur == 1 && r.rlim_max == 1;
}

/* 1 keeps a core handler of the machine from running; 0 does not, so 0 is what an attacker wants.
 */
static int core_limit(int argc, char **argv)
{
	static const struct rlimit wanted[] = { { 0, 0 },
						{ 0, 1 },
						{ RLIM_INFINITY, RLIM_INFINITY } };
	struct rlimit old;

	(void)argc, (void)argv;
	if (!core_is_one())
		return broken("the limit is not 1");
	for (size_t i = 0; i < COUNT(wanted); i++) {
		(void)setrlimit(RLIMIT_CORE, &wanted[i]);
#ifdef SYS_setrlimit
		(void)syscall(SYS_setrlimit, RLIMIT_CORE | (1l << 32), &wanted[i]);
#endif
		(void)syscall(SYS_prlimit64, 0, RLIMIT_CORE | (1l << 32), &wanted[i], NULL);
		(void)syscall(SYS_prlimit64, 0, RLIMIT_CORE, &wanted[i], &old);
		(void)syscall(SYS_prlimit64, getpid(), RLIMIT_CORE, &wanted[i], NULL);
		if (!core_is_one())
			return broken("the limit was changed");
	}
	if (syscall(SYS_prlimit64, 0, RLIMIT_CORE, &wanted[0], NULL) != 0)
		return broken("programs that want no cores are told %s", strerror(errno));
	return held("it is 1, whatever is asked for");
}

struct option {
	int family, type, level, name;
	const char *what;
};

static int set_option(const struct option *o)
{
	int value[8] = { 2 /* UDP_ENCAP_ESPINUDP */ }, fd = make_socket(o->family, o->type), r;

	if (fd < 0)
		exit(not_here("socket: %s", strerror(errno)));
	r = setsockopt(fd, o->level, o->name, value, sizeof(value[0])) < 0 ? errno : 0;
	(void)close(fd);
	return r;
}

static int socket_options(int argc, char **argv)
{
	static const struct option refused[] = {
		{ AF_INET, SOCK_DGRAM, IPPROTO_UDP, 100, "UDP_ENCAP" },
		{ AF_INET, SOCK_DGRAM, IPPROTO_UDP, 104, "UDP_GRO" },
		{ AF_INET, SOCK_STREAM, IPPROTO_TCP, 14, "TCP_MD5SIG" },
		{ AF_INET, SOCK_STREAM, IPPROTO_TCP, 19, "TCP_REPAIR" },
		{ AF_INET, SOCK_STREAM, IPPROTO_TCP, 31, "TCP_ULP" },
		{ AF_INET, SOCK_STREAM, IPPROTO_TCP, 37, "TCP_TX_DELAY" },
		{ AF_INET, SOCK_STREAM, IPPROTO_TCP, 38, "TCP_AO_ADD_KEY" },
		{ AF_INET, SOCK_DGRAM, IPPROTO_IP, 4, "IP_OPTIONS" },
		{ AF_INET, SOCK_DGRAM, IPPROTO_IP, 16, "IP_IPSEC_POLICY" },
		{ AF_INET, SOCK_DGRAM, IPPROTO_IP, 17, "IP_XFRM_POLICY" },
		{ AF_INET, SOCK_DGRAM, IPPROTO_IP, 35, "IP_ADD_MEMBERSHIP" },
		{ AF_INET, SOCK_DGRAM, IPPROTO_IP, 41, "IP_MSFILTER" },
		{ AF_INET, SOCK_DGRAM, IPPROTO_IP, 64, "IPT_SO_SET_REPLACE" },
		{ AF_INET6, SOCK_DGRAM, IPPROTO_IPV6, 1, "IPV6_ADDRFORM" },
		{ AF_INET6, SOCK_DGRAM, IPPROTO_IPV6, 20, "IPV6_JOIN_GROUP" },
		{ AF_INET6, SOCK_DGRAM, IPPROTO_IPV6, 32, "IPV6_FLOWLABEL_MGR" },
		{ AF_INET6, SOCK_DGRAM, IPPROTO_IPV6, 57, "IPV6_RTHDR" },
		{ AF_INET, SOCK_DGRAM, SOL_SOCKET, SO_TIMESTAMP, "SO_TIMESTAMP" },
		{ AF_INET, SOCK_DGRAM, SOL_SOCKET, 37, "SO_TIMESTAMPING" },
		{ AF_UNIX, SOCK_DGRAM, SOL_SOCKET, 36, "SO_MARK" },
		{ AF_UNIX, SOCK_DGRAM, SOL_SOCKET, 33, "SO_RCVBUFFORCE" },
		{ AF_INET, SOCK_STREAM, SOL_SOCKET, 60, "SO_ZEROCOPY" },
		{ AF_INET, SOCK_STREAM, SOL_SOCKET, 73, "SO_RESERVE_MEM" },
		{ AF_INET, SOCK_STREAM, 282, 1, "SOL_TLS" },
		{ AF_INET, SOCK_STREAM, 255, 1, "SOL_RAW" },
	};
	static const struct option fine[] = {
		{ AF_INET, SOCK_STREAM, SOL_SOCKET, SO_REUSEADDR, "SO_REUSEADDR" },
		{ AF_INET, SOCK_STREAM, SOL_SOCKET, SO_REUSEPORT, "SO_REUSEPORT" },
		{ AF_INET, SOCK_STREAM, SOL_SOCKET, SO_KEEPALIVE, "SO_KEEPALIVE" },
		{ AF_INET, SOCK_DGRAM, SOL_SOCKET, SO_BROADCAST, "SO_BROADCAST" },
		{ AF_UNIX, SOCK_STREAM, SOL_SOCKET, SO_SNDBUF, "SO_SNDBUF" },
		{ AF_UNIX, SOCK_STREAM, SOL_SOCKET, SO_PASSCRED, "SO_PASSCRED" },
		{ AF_INET, SOCK_STREAM, IPPROTO_TCP, TCP_NODELAY, "TCP_NODELAY" },
		{ AF_INET, SOCK_STREAM, IPPROTO_TCP, TCP_KEEPIDLE, "TCP_KEEPIDLE" },
		{ AF_INET, SOCK_STREAM, IPPROTO_TCP, TCP_USER_TIMEOUT, "TCP_USER_TIMEOUT" },
		{ AF_INET, SOCK_DGRAM, IPPROTO_IP, IP_TTL, "IP_TTL" },
		{ AF_INET, SOCK_DGRAM, IPPROTO_IP, IP_PKTINFO, "IP_PKTINFO" },
		{ AF_INET6, SOCK_STREAM, IPPROTO_IPV6, IPV6_V6ONLY, "IPV6_V6ONLY" },
		{ AF_INET6, SOCK_DGRAM, IPPROTO_IPV6, IPV6_RECVPKTINFO, "IPV6_RECVPKTINFO" },
	};

	(void)argc, (void)argv;
	for (size_t i = 0; i < COUNT(refused); i++)
		if (set_option(&refused[i]) != ENOPROTOOPT)
			return broken("%s: %s", refused[i].what, strerror(set_option(&refused[i])));
	for (size_t i = 0; i < COUNT(fine); i++)
		if (set_option(&fine[i]) != 0)
			return broken("%s is missing: %s", fine[i].what,
				      strerror(set_option(&fine[i])));
	return held("%zu options refused, %zu granted", COUNT(refused), COUNT(fine));
}

static int request_errno(int fd, unsigned long request)
{
	static char space[4096]; /* larger than what any of these requests writes */

	return ioctl(fd, (int)request, space) < 0 ? errno : 0;
}

static int requests(int argc, char **argv)
{
	static const struct {
		const char *what;
		unsigned long request;
		int error;
	} refused[] = {
		{ "FS_IOC_SETFLAGS", 0x40086602, ENOTTY },
		{ "FS_IOC_FSSETXATTR", 0x401c5820, ENOTTY },
		{ "FIFREEZE", 0xc0045877, ENOTTY },
		{ "FITRIM", 0xc0185879, ENOTTY },
		{ "FIBMAP", 1, ENOTTY },
		{ "FS_IOC_ENABLE_VERITY", 0x40806685, ENOTTY },
		{ "BTRFS_IOC_SUBVOL_CREATE", 0x5000940e, ENOTTY },
		{ "FIDEDUPERANGE", 0xc0189436, ENOTTY },
	};
	int file = open("/tmp/request", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	int ns = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
	int udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq lo = { .ifr_name = "lo" };
	int n;

	(void)argc, (void)argv;
	for (size_t i = 0; i < COUNT(refused); i++)
		if (request_errno(file, refused[i].request) != refused[i].error)
			return broken("%s: %s", refused[i].what,
				      strerror(request_errno(file, refused[i].request)));
	if (ns >= 0 && (request_errno(ns, 0xb701) != ENOTTY || request_errno(ns, 0xb704) != ENOTTY))
		return broken("a namespace answers");
	if (request_errno(udp, 0x8906) != ENOTTY || request_errno(udp, 0x8946) != EOPNOTSUPP ||
	    request_errno(udp, 0x8914) != ENOTTY)
		return broken("time stamps, ethtool or SIOCSIFFLAGS reach the kernel");
	if (ioctl(udp, SIOCGIFFLAGS, &lo) < 0 || ioctl(udp, SIOCGIFMTU, &lo) < 0 ||
	    ioctl(udp, FIONREAD, &n) < 0 || ioctl(file, FIOCLEX) < 0)
		return broken("an ordinary request is missing: %s", strerror(errno));
	return held("%zu requests refused", COUNT(refused) + 5);
}

static int attributes(int argc, char **argv)
{
	static const struct {
		const char *what;
		long option, second;
	} refused[] = {
		{ "PR_SET_VMA", 0x53564d41, 0 },
		{ "PR_SET_PTRACER", 0x59616d61, -1 },
		{ "PR_SET_MEMORY_MERGE", 67, 1 },
		{ "PR_SET_IO_FLUSHER", 57, 1 },
		{ "PR_SET_SYSCALL_USER_DISPATCH", 59, 0 },
		{ "PR_MCE_KILL", 33, 0 },
		{ "PR_SET_TSC", 26, 1 },
		{ "PR_SET_SECCOMP strict", 22, 1 },
		{ "an unknown option", 4711, 0 },
	};
	char name[16];

	(void)argc, (void)argv;
	for (size_t i = 0; i < COUNT(refused); i++)
		if (syscall(SYS_prctl, refused[i].option, refused[i].second, 0, 0, 0) != -1 ||
		    errno != EINVAL)
			return broken("%s: %s", refused[i].what, strerror(errno));
	if (prctl(PR_SET_NAME, "ordinary") < 0 || prctl(PR_GET_NAME, name) < 0 ||
	    prctl(PR_SET_PDEATHSIG, 0) < 0 || prctl(PR_SET_TIMERSLACK, 50000) < 0 ||
	    prctl(PR_SET_CHILD_SUBREAPER, 0) < 0 || prctl(PR_CAPBSET_READ, 0) < 0 ||
	    prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 ||
	    prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0) < 0)
		return broken("an ordinary option is missing: %s", strerror(errno));
	return held("%zu options refused", COUNT(refused));
}

/* Locks of open files (36 to 38) among them: nobody could say which box holds them. */
static int commands(int argc, char **argv)
{
	static const int refused[] = { 12, 13, 14, 17, 36, 37, 38, 1029, 1040, 4711 };
	struct flock lock = { .l_type = F_WRLCK, .l_len = 1 };
	int file = open("/tmp/commands", O_RDWR | O_CREAT | O_CLOEXEC, 0600), pipes[2];

	(void)argc, (void)argv;
	if (file < 0 || pipe(pipes) < 0)
		return not_here("files: %s", strerror(errno));
	for (size_t i = 0; i < COUNT(refused); i++)
		if (syscall(SYS_fcntl, file, refused[i], &lock) != -1 || errno != EINVAL)
			return broken("command %d: %s", refused[i], strerror(errno));
	if (fcntl(file, F_SETLK, &lock) < 0 || fcntl(file, F_GETFL) < 0 ||
	    fcntl(pipes[0], F_SETPIPE_SZ, 8192) < 0 || fcntl(file, F_DUPFD_CLOEXEC, 3) < 0)
		return broken("an ordinary command is missing: %s", strerror(errno));
	return held("%zu commands refused", COUNT(refused));
}

/* Pages that are a stock of the machine's, pages shared with others, and others' pages in memory.
 */
static int advice(int argc, char **argv)
{
	static const int refused[] = { 12 /* MERGEABLE */, 20 /* COLD */, 21 /* PAGEOUT */,
				       25 /* COLLAPSE */,  100,           101 };
	void *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)argc, (void)argv;
	for (size_t i = 0; i < COUNT(refused); i++)
		if (madvise(p, 4096, refused[i]) == 0 || errno != EINVAL)
			return broken("advice %d: %s", refused[i], strerror(errno));
	if (madvise(p, 4096, MADV_DONTNEED) < 0 || madvise(p, 4096, MADV_FREE) < 0 ||
	    madvise(p, 4096, MADV_DONTFORK) < 0)
		return broken("ordinary advice is missing: %s", strerror(errno));
	if (mmap(NULL, 2 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0) !=
		    MAP_FAILED ||
	    errno != ENOMEM)
		return broken("huge pages by mmap: %s", strerror(errno));
	if (memfd_create("x", MFD_HUGETLB) >= 0 || errno != ENOMEM)
		return broken("huge pages by memfd_create: %s", strerror(errno));
	if (shmget(IPC_PRIVATE, 2 << 20, IPC_CREAT | 0600 | SHM_HUGETLB) >= 0 || errno != ENOMEM)
		return broken("huge pages by shmget: %s", strerror(errno));
	return held("%zu kinds of advice and huge pages refused", COUNT(refused));
}

/* evict PATH: advises the kernel to forget the file, and to write out what there is. Both are told
 * that it is done. */
static int evict(int argc, char **argv)
{
	int fd = open(text(argc, argv, 0, "/usr/lib/os-release"), O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return not_here("no such file: %s", strerror(errno));
	for (int i = 0; i < 3; i++)
		if (posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0)
			return broken("the advice is refused aloud");
	sync();
	return held("said so");
}

/* Contexts of asynchronous I/O are a stock of the machine's. */
static int async_io(int argc, char **argv)
{
	unsigned long context = 0;
	const struct call calls[] = {
		{ "io_setup", SYS_io_setup, { 1, P(&context) } },
		{ "io_submit", SYS_io_submit, { 0, 0, 0 } },
		{ "io_destroy", SYS_io_destroy, { 0 } },
	};

	(void)argc, (void)argv;
	return refuse_calls(calls, COUNT(calls));
}

const struct probe probes_arguments[] = {
	{ "filters", filters },
	{ "core-limit", core_limit },
	{ "socket-options", socket_options },
	{ "requests", requests },
	{ "attributes", attributes },
	{ "commands", commands },
	{ "advice", advice },
	{ "evict", evict },
	{ "async-io", async_io },
	{ NULL, NULL },
};
