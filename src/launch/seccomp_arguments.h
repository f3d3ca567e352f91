/* The policy of arguments, as data: which requests of ioctl, prctl, fcntl, madvise and setsockopt
 * are let through, and which access control lists. Private to seccomp.c. A request that is in no
 * list is answered as by a kernel that does not have it, so programs go on without;
 * docs/decisions/0054 says what was left out and why. Numbers without a name are newer than the
 * oldest headers that we build with. */
#pragma once

#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "launch/seccomp.h"
#include "spec/guest.h"

/* The lists are sorted, and refused when their spans overlap, by seccomp_sort(). */
#define ONE(v)                               \
	{                                    \
		(uint32_t)(v), (uint32_t)(v) \
	}
#define FROM(a, b)                           \
	{                                    \
		(uint32_t)(a), (uint32_t)(b) \
	}

/* Terminals, descriptors, questions about interfaces and about one's own files. No extended
 * attributes of files are set, no namespace is walked, no device is configured. */
static const struct span ioctl_requests[] = {
	FROM(TCGETS, TIOCOUTQ), /* but for TIOCSTI, which follows */
	FROM(TIOCGWINSZ, FIONREAD),
	FROM(TIOCPKT, TIOCNOTTY), /* with FIONBIO */
	FROM(TIOCGETD, TCSBRKP),
	FROM(TIOCSBRK, TIOCGSID),
	ONE(TIOCGPTN),
	ONE(TIOCSPTLCK),
	ONE(TIOCGDEV),
	ONE(TIOCSIG),
	ONE(TIOCGPKT),
	ONE(TIOCGPTLCK),
	ONE(TIOCGEXCL),
	ONE(TIOCGPTPEER),
	ONE(0x802c542a),              /* TCGETS2 */
	FROM(0x402c542b, 0x402c542d), /* TCSETS2, TCSETSW2, TCSETSF2 */
	FROM(FIONCLEX, FIOASYNC),
	ONE(TIOCGICOUNT),
	ONE(FIOQSIZE),
	FROM(FIOSETOWN, SIOCATMARK),
	ONE(SIOCGIFNAME),
	FROM(SIOCGIFCONF, SIOCGIFFLAGS),
	ONE(SIOCGIFADDR),
	ONE(SIOCGIFDSTADDR),
	ONE(SIOCGIFBRDADDR),
	ONE(SIOCGIFNETMASK),
	ONE(SIOCGIFMETRIC),
	ONE(SIOCGIFMTU),
	ONE(SIOCGIFHWADDR),
	ONE(SIOCGIFINDEX),
	ONE(SIOCGIFTXQLEN),
	ONE(SIOCOUTQNSD),
	ONE(SIOCGIFMAP),
	ONE(FIGETBSZ),
	ONE(FICLONE),
	ONE(FICLONERANGE),
	ONE(FS_IOC_GETFLAGS),
	ONE(FS_IOC_GETVERSION),
	ONE(FS_IOC_FIEMAP),
	ONE(FS_IOC_FSGETXATTR),
};

/* Of oneself. Left out: filters, names of memory (charged to nobody), merging of equal pages with
 * those of others, tracers, core scheduling. */
static const struct span prctl_options[] = {
	FROM(PR_SET_PDEATHSIG, PR_SET_DUMPABLE),
	FROM(PR_GET_KEEPCAPS, PR_SET_KEEPCAPS),
	ONE(PR_GET_TIMING),
	FROM(PR_SET_NAME, PR_GET_NAME),
	ONE(PR_GET_SECCOMP),
	FROM(PR_CAPBSET_READ, PR_GET_TSC),
	FROM(PR_GET_SECUREBITS, PR_GET_TIMERSLACK),
	FROM(PR_SET_CHILD_SUBREAPER, PR_GET_THP_DISABLE), /* with no new privileges */
	ONE(PR_CAP_AMBIENT),
	FROM(PR_SVE_SET_VL, PR_GET_TAGGED_ADDR_CTRL), /* with speculation and pointer keys */
	FROM(PR_PAC_SET_ENABLED_KEYS, PR_PAC_GET_ENABLED_KEYS),
	FROM(63, 66),    /* PR_SME_SET_VL to PR_GET_MDWE */
	ONE(0x41555856), /* PR_GET_AUXV */
};

/* Locks that belong to an open file and not to a process are left out: /proc/locks does not say
 * whose they are. See locks.h. */
static const struct span fcntl_commands[] = {
	FROM(F_DUPFD, F_GETSIG),
	FROM(F_SETOWN_EX, F_GETOWN_EX),
	ONE(F_GETLEASE),
	FROM(1027, 1028), /* F_DUPFD_QUERY, F_CREATED_QUERY */
	FROM(F_DUPFD_CLOEXEC, F_GETPIPE_SZ),
	FROM(F_ADD_SEALS, F_GET_SEALS),
	FROM(F_GET_RW_HINT, F_SET_FILE_RW_HINT),
};

/* One's own memory. Left out: pages of shared files that are pushed out (COLD, PAGEOUT) or put
 * together (COLLAPSE), pages shared with strangers (MERGEABLE), broken memory. */
static const struct span madvise_kinds[] = {
	FROM(MADV_NORMAL, MADV_DONTNEED),
	FROM(MADV_FREE, MADV_DOFORK),
	FROM(MADV_HUGEPAGE, MADV_KEEPONFORK),
	FROM(22, 24),   /* MADV_POPULATE_READ, MADV_POPULATE_WRITE, MADV_DONTNEED_LOCKED */
	FROM(102, 103), /* MADV_GUARD_INSTALL, MADV_GUARD_REMOVE */
};

/* Left out: filters, marks, what needs privilege, reserved memory, and time stamps, which switch
 * code of the whole machine. */
static const struct span socket_options[] = {
	ONE(SO_REUSEADDR),
	FROM(SO_DONTROUTE, SO_PASSCRED),
	FROM(SO_RCVLOWAT, SO_SNDTIMEO),
	ONE(SO_BINDTODEVICE),
	ONE(SO_PASSSEC),
	FROM(SO_RXQ_OVFL, SO_PEEK_OFF),
	ONE(SO_SELECT_ERR_QUEUE),
	ONE(SO_MAX_PACING_RATE),
	ONE(SO_INCOMING_CPU),
	ONE(SO_CNX_ADVICE),
	ONE(SO_BINDTOIFINDEX),
	FROM(66, 67), /* SO_RCVTIMEO_NEW, SO_SNDTIMEO_NEW */
	ONE(72),      /* SO_BUF_LOCK */
	ONE(74),      /* SO_TXREHASH */
	ONE(76),      /* SO_PASSPIDFD */
	ONE(83),      /* SO_PASSRIGHTS */
};

/* Left out: options in headers, policies, firewalls, multicast groups (charged to nobody; a box has
 * nobody to hear from). */
static const struct span ip_options[] = {
	FROM(IP_TOS, IP_TTL),
	FROM(IP_RECVOPTS, IP_PKTINFO),
	FROM(IP_MTU_DISCOVER, IP_RECVTOS),
	ONE(IP_FREEBIND),
	ONE(IP_RECVORIGDSTADDR),
	ONE(IP_BIND_ADDRESS_NO_PORT),
	FROM(IP_MULTICAST_IF, IP_MULTICAST_LOOP),
	FROM(IP_MULTICAST_ALL, 51), /* IP_UNICAST_IF, IP_LOCAL_PORT_RANGE */
};

static const struct span ipv6_options[] = {
	FROM(IPV6_UNICAST_HOPS, IPV6_MULTICAST_LOOP),
	FROM(IPV6_MTU_DISCOVER, IPV6_V6ONLY),
	ONE(IPV6_MULTICAST_ALL),
	FROM(IPV6_RECVPKTINFO, IPV6_HOPLIMIT),
	FROM(IPV6_RECVPATHMTU, 63), /* IPV6_PATHMTU, IPV6_DONTFRAG, IPV6_USE_MIN_MTU */
	FROM(IPV6_RECVTCLASS, IPV6_TCLASS),
	ONE(IPV6_AUTOFLOWLABEL),
	ONE(IPV6_ADDR_PREFERENCES),
	ONE(IPV6_ORIGDSTADDR),
	ONE(IPV6_UNICAST_IF),
	ONE(IPV6_FREEBIND),
};

/* Left out: repair, signatures (MD5, AO), other protocols on top (TLS), keys, delays. */
static const struct span tcp_options[] = {
	FROM(TCP_NODELAY, TCP_CONGESTION),
	FROM(TCP_THIN_LINEAR_TIMEOUTS, TCP_USER_TIMEOUT),
	ONE(TCP_FASTOPEN),
	ONE(TCP_NOTSENT_LOWAT),
	ONE(TCP_SAVE_SYN),
	ONE(TCP_FASTOPEN_CONNECT),
	ONE(TCP_FASTOPEN_NO_COOKIE),
	ONE(TCP_INQ),
};

/* Left out: encapsulation and joined packets, which switch code of the whole machine. */
static const struct span udp_options[] = {
	ONE(1),         /* UDP_CORK */
	FROM(101, 103), /* UDP_NO_CHECK6_TX, UDP_NO_CHECK6_RX, UDP_SEGMENT */
};

/* Bytes of an access control list; so many entries take no more of the kernel's memory than a small
 * part of what their file is charged with. */
static const struct span acl_sizes[] = { FROM(0, GUEST_ACL_BYTES) };
