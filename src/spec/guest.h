/* What the daemon and holt-init say to each other over a box's control socket.
 *
 * The client picks ids: nonzero, unique among what is live or kept. An execution and a file
 * operation share one id space. Every request ends with exactly one G_EXIT, G_DONE or G_ERROR of
 * its id.
 *
 * A box ends with its socket, until G_PERSIST gives it a listening one. From then on it outlives
 * its clients: one is served at a time, and a newer connection replaces an older one. Whatever
 * belongs to a lost connection ends with it, but for executions with EXEC_KEEP: they go on until
 * their window is full, and the guest keeps what was not credited, and how they ended, until G_ACK.
 * A new connection is told G_READY with the number of these executions, one G_LIVE for each, and
 * then for each as ordinary frames what was kept: the bytes from the offsets of its G_LIVE on, and
 * G_EXIT when it has ended. For the window, nothing has been sent yet on a new connection. Who
 * breaks the rules loses the connection, and in a box without G_PERSIST the box. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "spec/wire.h"

enum guest_type {
	/* client to guest */
	G_EXEC = 1, /* struct guest_exec */
	G_STDIN,   /* raw bytes for the execution's standard input; none at all means end of file */
	G_CREDIT,  /* u64: the client has taken this many more bytes of output or data */
	G_SIGNAL,  /* u32 signal, u8 tree: to the process, or to everything it started */
	G_RESIZE,  /* u16 rows, u16 cols */
	G_FILE,    /* struct guest_file */
	G_DATA,    /* both ways: raw bytes of a file or archive; none at all means end of file */
	G_CANCEL,  /* ends the operation or execution of this id; its G_ERROR or G_EXIT follows */
	G_PING,    /* answered by G_PONG with the same id */
	G_PERSIST, /* id 0, with one descriptor: a listening SOCK_SEQPACKET socket; a newer one
		      replaces it */
	G_ACK,     /* the execution with EXEC_KEEP is recorded: forget it, or keep nothing at its
		      end */
	G_CONNECT, /* struct guest_connect: a connection to a port inside -> G_SOCKET, G_DONE */
	G_LISTEN,  /* struct guest_connect, port 0: any -> G_DONE with the port when it listens (not
		      the end), G_SOCKET for each connection that is made to it, until G_CANCEL */
	/* guest to client */
	G_READY = 64, /* the box is built; struct guest_ready */
	G_STARTED,    /* u32 pid inside the box, u8 warm: 1 when a waiting interpreter took it */
	G_OUTPUT,     /* u8 stream (1 or 2; a PTY gives 1), u64 offset, then raw bytes */
	G_TAKEN,      /* u64: the process has taken this many more bytes of standard input */
	G_EXIT,       /* struct guest_exit */
	G_ENTRY,      /* struct guest_entry: answer of stat, one of many of list */
	G_EVENT,      /* u8 enum guest_event, str path relative to the watched one */
	G_DONE,       /* u64 bytes or entries handled */
	G_ERROR,      /* u32 errno, str text; id 0: the box could not be built, or is unusable */
	G_PONG,
	G_LIVE,   /* struct guest_live */
	G_FOUND,  /* struct guest_found: one of many of grep and replace */
	G_SOCKET, /* with one descriptor: a TCP connection whose other end is in the box */
};

/* Bytes of output that may be on their way or unread before the guest stops reading the process.
 * The guest keeps them until they are credited. The same window holds for standard input and
 * G_DATA. */
#define GUEST_WINDOW (128u << 10)
#define GUEST_CHUNK (32u << 10) /* most raw bytes in one G_OUTPUT, G_STDIN or G_DATA */

/* Every process of an execution carries the execution's mark: the hard limit of RLIMIT_LOCKS is the
 * mark and that of RLIMIT_RSS is GUEST_MARK_SUM less the mark. The kernel enforces neither,
 * children inherit both, and without privilege a hard limit can only be lowered, so no process can
 * take another's mark or be rid of its own. */
#define GUEST_MARK_SUM (1ull << 62)

struct guest_ready {
	uint32_t version;
	uint8_t warm_python, warm_node; /* interpreters waiting in the box */
	uint8_t resumed;                /* 1: others were connected before */
	uint32_t live;                  /* how many G_LIVE follow at once */
	/* An interpreter that was to have modules imported does not wait: positive errno (ENOPKG:
	 * a module cannot be imported) and a sentence of at most WHY_MAX; 0 and "": all do. */
	uint32_t why_code;
	const char *why;
};

enum guest_exec_flag {
	EXEC_PTY = 1 << 0,   /* one terminal instead of three pipes */
	EXEC_STDIN = 1 << 1, /* standard input is open; otherwise /dev/null */
	EXEC_LOGIN = 1 << 2, /* HOME, USER, LOGNAME and SHELL from the box's passwd file */
	EXEC_KEEP = 1 << 3,  /* it outlives the connection; its end is kept until G_ACK. G_ERROR
				needs none */
	EXEC_SHELL = 1 << 4, /* argv is a shell, "-c" and a line, which may be run without the shell
				where that makes no difference */
	EXEC_WHOLE = 1 << 5, /* it ends when nobody can write to its pipes any more, unless a signal
				ended it: what its children write is its output, too */
};

enum guest_exec_kind {
	EXEC_COMMAND, /* argv is a program and its arguments */
	EXEC_PYTHON,  /* code, argv: what sys.argv holds behind "-c" */
	EXEC_NODE,    /* code, argv: what process.argv holds behind the program */
	EXEC_KIND_COUNT
};

#define GUEST_ARGS_MAX 1024
#define GUEST_TAG_MAX 32 /* bytes of a tag */
#define GUEST_SIGNAL_DEFAULT_GRACE_MS 100

struct guest_exec {
	uint8_t kind;
	uint8_t flags;
	uint16_t rows, cols;   /* with EXEC_PTY; 0 means 24 x 80 */
	uint32_t timeout_ms;   /* 0: none */
	uint32_t grace_ms;     /* between TERM and KILL of the whole tree */
	uint32_t cpu_seconds;  /* RLIMIT_CPU of each process; 0: none */
	uint64_t output_limit; /* bytes kept of stdout and stderr together; 0: no limit */
	const char *user;      /* name or number in the box; "" is the box's user */
	const char *cwd;       /* "" is the user's home */
	const char *code;      /* "" for a command */
	const char *tag;       /* the client's own name of it, told again by G_LIVE; may be "" */
	size_t argc, envc;
	const char *argv[GUEST_ARGS_MAX + 1]; /* borrowed from the frame, NULL-terminated */
	const char *envp[GUEST_ARGS_MAX + 1]; /* "NAME=value" */
};

enum guest_exit_flag {
	EXIT_TIMED_OUT = 1 << 0,
	EXIT_TRUNCATED = 1 << 1, /* output passed output_limit; the rest was read and dropped */
	EXIT_CANCELLED = 1 << 2,
	EXIT_SIGNALED = 1 << 3,  /* code is a signal number */
	EXIT_LEFTOVERS = 1 << 4, /* processes that it started still live in the box */
};

struct guest_exit {
	uint32_t code;
	uint32_t flags;
	uint64_t wall_us, user_us, sys_us;
	uint64_t max_rss_bytes; /* of its largest process */
	uint64_t output_bytes;  /* written by the process, kept or not */
};

enum guest_live_flag {
	LIVE_ENDED = 1 << 0, /* G_EXIT follows what is left of its output */
	LIVE_PTY = 1 << 1,
	LIVE_STDIN = 1 << 2, /* standard input is open */
	LIVE_WARM = 1 << 3,
};

/* An execution with EXEC_KEEP, to a new connection. */
struct guest_live {
	uint32_t id;
	uint32_t pid; /* inside the box, also when it has ended */
	uint8_t flags;
	uint64_t age_ms;      /* since it was started */
	uint64_t offset[2];   /* of standard output and error: where what is sent again begins */
	uint64_t stdin_taken; /* bytes that the process has taken in all */
	uint32_t stdin_kept;  /* bytes that wait in the guest for it: the client goes on behind */
	const char *tag;
};

enum guest_file_op {
	FILE_STAT,  /* -> G_ENTRY, G_DONE */
	FILE_LIST,  /* depth levels -> G_ENTRY..., G_DONE */
	FILE_READ,  /* offset, length (0: to the end) -> G_ENTRY, G_DATA..., G_DONE */
	FILE_WRITE, /* G_DATA... from the client, empty one last -> G_DONE; temp file and rename */
	FILE_MKDIR,
	FILE_RENAME, /* path to target */
	FILE_REMOVE,
	FILE_CHMOD,
	FILE_WATCH,   /* -> G_DONE with 0 when armed (not the end), G_EVENT... until G_CANCEL */
	FILE_TAR_GET, /* directory or file as a tar stream -> G_DATA..., G_DONE with its bytes; a
			 G_ENTRY for each one left out of it or changed while it was read */
	FILE_TAR_PUT, /* G_DATA... from the client, unpacked below path -> G_DONE */
	/* With a struct guest_search. G_DONE says how many there were, one more than the limit
	 * when the search ended there; more than GUEST_SEARCH_CPU_MS of work is ETIMEDOUT. */
	FILE_FIND,    /* -> G_ENTRY..., G_DONE */
	FILE_GREP,    /* -> G_FOUND..., G_DONE with the lines that matched */
	FILE_REPLACE, /* -> G_FOUND..., G_DONE with the replacements; file by file, each atomic */
	FILE_PORTS,   /* no file at all: TCP ports that listen in the box -> G_FOUND..., G_DONE with
			 how many there are, GUEST_PORTS_MAX of which are told */
	FILE_COMPOSE, /* the sources, one behind the other, are the file at path; then they are gone
			 -> G_DONE with its bytes */
	FILE_OP_COUNT
};

enum guest_file_flag {
	FILE_RECURSIVE = 1 << 0, /* remove, watch */
	FILE_PARENTS = 1 << 1,   /* mkdir, write, rename, tar: make missing parents */
	FILE_NOFOLLOW = 1 << 2,  /* stat: the link itself */
	FILE_APPEND = 1 << 3,    /* write: at the end, not atomic */
	FILE_EXCL = 1 << 4,      /* write: must not exist */
	FILE_REGEX = 1 << 5,     /* grep, replace: the pattern is a POSIX extended one */
	FILE_ICASE = 1 << 6,     /* grep, replace: ASCII letters match in either case */
	FILE_NAMES = 1 << 7,     /* grep: one G_FOUND for each file that matches, no lines */
	FILE_DRY_RUN = 1 << 8,   /* replace: only tells what it would do */
	FILE_OWNERS = 1 << 9, /* tar put: files belong to whom the archive says, where the box has
				 a root to make them; whoever is the user */
	/* tar put: an image's layers, from the bottom up. ".wh." members take away what is there,
	 * a file takes the place of a directory, and links on the way are the image's own. */
	FILE_LAYERS = 1 << 10,
	/* A path (and target) that is relative begins in the user's home, as one with "~" does;
	 * "~name" is EINVAL. "." and ".." are taken away as text, before any link is looked at. */
	FILE_AT_HOME = 1 << 11,
	/* Entries have details and are told by their whole path; one comes of what was written,
	 * made or renamed, and of a watch one before each G_EVENT whose file is there. */
	FILE_DETAILS = 1 << 12,
	FILE_ATTRS = 1 << 13, /* write: with these attributes and no others */
	/* Where the box's user may become root (TEMPLATE_SUDO): with root's rights, and yet what is
	 * made belongs to the user. Elsewhere it means nothing. */
	FILE_AS_ROOT = 1 << 14,
	/* The directory that target names is the root: paths begin there, and no link leads out of
	 * it. Of stat, list, read, write, mkdir, remove and chmod. */
	FILE_BELOW = 1 << 15,
};

#define GUEST_SOURCES_BYTES (48u << 10) /* of all paths of a FILE_COMPOSE */

/* Attributes ("user." ones of the file system, without that) are pairs of a name and a value, each
 * with its NUL, one pair behind the other. */
#define GUEST_ATTRS_BYTES 8192u  /* of all pairs of a file */
#define GUEST_ATTR_NAME_MAX 250u /* bytes of a name: what the kernel takes behind "user." */
/* A longer value of 4 bytes more than a multiple of 8 is taken for an access control list and
 * refused in a box; holt-init writes the value of such an attribute with its NUL. */
#define GUEST_ACL_BYTES 164u

#define GUEST_SEARCH_CPU_MS 10000 /* of processor time, for one search */
#define GUEST_CONTEXT_MAX 20      /* lines told before and after one that matches */
#define GUEST_LINE_MAX 4096u      /* most bytes told of a line */
#define GUEST_LINE_LOOK                                                           \
	(64u << 10) /* bytes of a line that are searched; the rest is passed over \
		     */
#define GUEST_REPLACE_MAX (16u << 20) /* bytes of a file that can be changed by a replace */

/* What to look for below a path, or in the one file that it names. */
struct guest_search {
	uint32_t limit;               /* entries, lines or files to tell at most; at least 1 */
	uint32_t context;             /* grep: lines around each */
	uint32_t line_bytes;          /* grep: how much of a line is told */
	uint32_t cpu_ms;              /* of processor time; 0: GUEST_SEARCH_CPU_MS, the most */
	uint8_t types;                /* find: bits 1 << enum guest_entry_type; 0: all */
	uint64_t size_min, size_max;  /* bytes, of files only; a maximum of 0 is none */
	uint64_t after_ns, before_ns; /* when it was last changed; 0: any time */
	const char *name;    /* a glob for the name; with a "/" in it, for the path; "": all */
	const char *exclude; /* the same, for what is left out with all below it; "": nothing */
	const char *pattern, *replacement; /* a pattern never reaches beyond its line, but for a
					      replace's plain text */
};

enum guest_found_kind {
	FOUND_MATCH,   /* a line: its number, the column (bytes, from 1), its text */
	FOUND_CONTEXT, /* a line near one that matches */
	FOUND_FILE,    /* a file: how often (grep: lines, with FILE_NAMES 1) */
	FOUND_SKIPPED, /* a file that was not looked at or not changed, and why */
	FOUND_PORT,    /* number: the port; path: the address; column: whose it is, a process or 0;
			  text: that one's command */
	FOUND_KIND_COUNT
};

#define GUEST_PORTS_MAX 512

struct guest_found {
	uint8_t kind;
	uint8_t is_cut; /* the line goes on behind the text */
	uint32_t column;
	uint64_t number;
	const char *path; /* relative to the searched directory; "" for the one file */
	const char *text;
};

struct guest_file {
	uint8_t op;
	uint32_t flags;
	uint32_t mode;  /* mkdir, write, chmod */
	uint32_t depth; /* list: levels; 0 means 1 */
	uint64_t offset, length;
	const char *user; /* "" is the box's user: whose rights count and who owns new files */
	const char *path, *target;
	struct guest_search search; /* of the operations that search, else zero */
	const char *attrs;          /* with FILE_ATTRS */
	size_t attrs_len;
	const char *sources; /* of FILE_COMPOSE: paths, each with its NUL */
	size_t sources_len;
};

enum guest_address {
	ADDRESS_V4,   /* 127.0.0.1 */
	ADDRESS_V6,   /* ::1 */
	ADDRESS_UNIX, /* G_LISTEN only: a socket of the box's user at a path, one in a box; what
			 comes out is TCP all the same */
	ADDRESS_COUNT
};

/* Where a box has its way to tools outside, if it has one: a socket and what is made for it. What
 * every root holds of it (launch/template_etc.c) leads here. */
#define GUEST_TOOLS_DIR "/dev/shm/holt"
#define GUEST_TOOLS_SOCKET GUEST_TOOLS_DIR "/tools.sock"
/* Where programs are looked for: of the system, then compilers that live in a directory of their
 * own, where the template has them. Root's own come first for whoever may become root. */
#define GUEST_COMPILERS ":/usr/local/go/bin:/usr/local/cargo/bin"
#define GUEST_PATH "/usr/local/bin:/usr/bin:/bin" GUEST_COMPILERS
#define GUEST_ROOT_PATH \
	"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" GUEST_COMPILERS
#define GUEST_TOOLS_BIN "/holt/bin" /* in the root: for PATH, */
#define GUEST_TOOLS_LIB "/holt/lib" /* and for PYTHONPATH */

/* The box's own loopback, nothing else: what else there may be in its network is not ours to reach.
 */
struct guest_connect {
	uint16_t port;
	uint8_t address;  /* enum guest_address */
	const char *path; /* of ADDRESS_UNIX, whose port is 0; else not looked at */
};

enum guest_entry_type { ENTRY_FILE, ENTRY_DIR, ENTRY_SYMLINK, ENTRY_OTHER };

struct guest_entry {
	uint8_t type;
	uint32_t mode, uid, gid;
	uint64_t size, mtime_ns, inode;
	const char *path;   /* as asked for; of a list, relative to the listed directory */
	const char *target; /* of a symbolic link, else ""; with details where it leads in the end,
			       "" for nowhere */
	/* With FILE_DETAILS, else zero; mode has the bits of the file's type then. */
	const char *owner, *group; /* names, or numbers in digits where there is none */
	uint8_t real_type;         /* of a link: what it leads to; ENTRY_OTHER: nothing known */
	uint32_t real_mode;
	const char *attrs;
	size_t attrs_len;
};

enum guest_event {
	EVENT_CREATE,
	EVENT_WRITE,
	EVENT_REMOVE,
	EVENT_RENAME,
	EVENT_CHMOD,
	EVENT_OVERFLOW
};

/* Encoders write a whole frame into data and return its size, or -E2BIG. Decoders read a payload
 * and return 0, -EPROTO for what is not well-formed, -EINVAL for a value out of bounds. Strings are
 * borrowed from the frame. */
long guest_put_exec(void *data, size_t cap, uint32_t id, const struct guest_exec *e);
int guest_get_exec(struct rd *r, struct guest_exec *ret);
long guest_put_exit(void *data, size_t cap, uint32_t id, const struct guest_exit *e);
int guest_get_exit(struct rd *r, struct guest_exit *ret);
long guest_put_live(void *data, size_t cap, const struct guest_live *e);
int guest_get_live(struct rd *r, uint32_t id, struct guest_live *ret); /* id: the frame's */
long guest_put_file(void *data, size_t cap, uint32_t id, const struct guest_file *f);
int guest_get_file(struct rd *r, struct guest_file *ret);
long guest_put_entry(void *data, size_t cap, uint32_t id, const struct guest_entry *e);
int guest_get_entry(struct rd *r, struct guest_entry *ret);
long guest_put_found(void *data, size_t cap, uint32_t id, const struct guest_found *e);
int guest_get_found(struct rd *r, struct guest_found *ret);
bool guest_is_search(uint8_t op);
/* The next pair of attributes; false behind the last. Start with *at = 0. */
bool guest_attr_next(const char *attrs, size_t len, size_t *at, const char **ret_name,
		     const char **ret_value);
long guest_put_ready(void *data, size_t cap, const struct guest_ready *e);
int guest_get_ready(struct rd *r, struct guest_ready *ret);
/* type: G_CONNECT or G_LISTEN; only the latter may have no port. */
long guest_put_connect(void *data, size_t cap, uint16_t type, uint32_t id,
		       const struct guest_connect *c);
int guest_get_connect(struct rd *r, uint16_t type, struct guest_connect *ret);
/* Small frames: any type whose payload is raw bytes, one u64, or an error. */
long guest_put_raw(void *data, size_t cap, uint16_t type, uint32_t id, const void *bytes, size_t n);
long guest_put_u64(void *data, size_t cap, uint16_t type, uint32_t id, uint64_t v);
long guest_put_error(void *data, size_t cap, uint32_t id, int code, const char *text);
