#include "launch/template_etc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "launch/mounts.h"
#include "spec/guest.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define COPY_DEPTH 6         /* below /etc */
#define COPY_ENTRIES 4000    /* of one template */
#define COPY_FILE (4u << 20) /* bytes of one file */

static const char *const directories[] = {
	"dev", "dev/pts", "dev/shm", "etc",       "home", "home/user", "mnt",
	"opt", "proc",    "root",    "run",       "srv",  "sys",       "tmp",
	"usr", "var",     "var/lib", "workspace", "holt", "holt/bin",  "holt/lib",
};

#define USER_LINE "user:x:1000:1000:user:/home/user:/bin/bash\n"
#define USER_GROUP "user:x:1000:\n"

static const struct {
	const char *path, *text;
} files[] = {
	{ "etc/passwd", "root:x:0:0:root:/root:/bin/bash\n" USER_LINE
			"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n" },
	{ "etc/group", "root:x:0:\ntty:x:5:\n" USER_GROUP "nogroup:x:65534:\n" },
	{ "etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost ip6-localhost ip6-loopback\n" },
	{ "etc/hostname", "sandbox\n" },
	{ "etc/resolv.conf", "" },
	{ "etc/nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"
			       "networks: files\nprotocols: files\nservices: files\n" },
	{ "etc/profile", "PATH=" GUEST_PATH "\nexport PATH\nPS1='\\u@\\h:\\w\\$ '\n" },
	{ "etc/shells", "/bin/sh\n/bin/bash\n/usr/bin/bash\n" },
};

/* In boxes of the machine's own programs; an image may have others. */
static const struct {
	const char *path, *text;
} host_files[] = {
	/* A box is nobody's machine but its own: pip may write where the system's packages are. */
	{ "etc/pip.conf", "[global]\nbreak-system-packages = true\n" },
	/* Commits need an author; whoever has another says so in ~/.gitconfig. */
	{ "etc/gitconfig", "[user]\n\tname = Sandbox\n\temail = user@sandbox.invalid\n" },
};

static const struct {
	const char *path, *target;
} links[] = {
	{ "etc/mtab", "/proc/self/mounts" },
	{ "var/run", "/run" },
	{ "var/tmp", "/tmp" },
	{ "dev/fd", "/proc/self/fd" },
	{ "dev/stdin", "/proc/self/fd/0" },
	{ "dev/stdout", "/proc/self/fd/1" },
	{ "dev/stderr", "/proc/self/fd/2" },
	{ "dev/ptmx", "pts/ptmx" },
	/* They lead somewhere in boxes that have tools: what is there is written by the box. */
	{ "holt/tools", GUEST_TOOLS_DIR "/tools" },
	{ "holt/tools.sock", GUEST_TOOLS_SOCKET },
	{ "holt/lib/holt_tools", "/holt/tools" },
};

/* What of the machine's /etc programs look for. A trailing '*' takes every name that begins so.
 * Only what everyone on the machine may read is ever copied. */
static const char *const wanted[] = {
	"alternatives",
	"bash.bashrc",
	"ca-certificates",
	"debian_version",
	"fonts",
	"gai.conf",
	"inputrc",
	"java-*",
	"ld.so.cache",
	"ld.so.conf",
	"localtime",
	"magic",
	"magic.mime",
	"matplotlibrc",
	"mime.types",
	"os-release",
	"lsb-release",
	"perl",
	"protocols",
	"python*",
	"R",
	"rpc",
	"services",
	"ssl",
	"pki",
	"terminfo",
	"timezone",
	"vim",
};

const char *const template_devices[] = { "null", "zero", "full", "random", "urandom", "tty", NULL };
static const struct {
	unsigned char major, minor;
} device_numbers[] = { { 1, 3 }, { 1, 5 }, { 1, 7 }, { 1, 8 }, { 1, 9 }, { 5, 0 } };

static int put_file(int dir, const char *path, const void *data, size_t n, mode_t mode,
		    struct err *err)
{
	_close_ int fd =
		openat(dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode);
	int r = fd < 0 ? -errno : fd_write_all(fd, data, n);

	return r < 0 ? err_sys(err, r, "template file %s", path) : 0;
}

static int copy_file(int from_dir, int to_dir, const char *name, mode_t mode, struct err *err)
{
	_close_ int fd = openat(from_dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	_cleanup_(buf_done) struct buf text = { .max = COPY_FILE };

	/* A file that vanished, is locked away or too large is left out: the box can live without.
	 */
	if (fd < 0 || fd_slurp(fd, &text) < 0)
		return 0;
	return put_file(to_dir, name, buf_str(&text), text.len, 0444 | (mode & 0111), err);
}

struct copy {
	unsigned left;
	struct err *err;
};

static int copy_entry(struct copy *c, int from, int to, const struct dirent *e, int depth);

static int copy_dir(struct copy *c, int from, int to, const char *name, int depth)
{
	int source = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	_close_ int target = -1;
	struct dirent *e;
	DIR *dir;
	int r = 0;

	if (source < 0 || depth == 0) {
		(void)fd_close(source);
		return 0;
	}
	dir = fdopendir(source);
	if (!dir) {
		(void)close(source);
		return err_sys(c->err, ENOMEM, "template directory %s", name);
	}
	if (mkdirat(to, name, 0755) == 0 || errno == EEXIST)
		target = openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	while (target >= 0 && r == 0 && (e = readdir(dir)) != NULL)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			r = copy_entry(c, source, target, e, depth - 1);
	(void)closedir(dir);
	return r;
}

static int copy_link(int from, int to, const char *name)
{
	char target[1024];
	ssize_t n = readlinkat(from, name, target, sizeof(target) - 1);

	if (n > 0) {
		target[n] = '\0';
		(void)symlinkat(target, to, name);
	}
	return 0;
}

static int copy_entry(struct copy *c, int from, int to, const struct dirent *e, int depth)
{
	const char *name = e->d_name;
	struct stat st;

	if (c->left == 0)
		return 0;
	c->left--;
	if (e->d_type == DT_LNK) /* most of them: /etc/alternatives, certificates */
		return copy_link(from, to, name);
	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (S_ISLNK(st.st_mode))
		return copy_link(from, to, name);
	if (!(st.st_mode & S_IROTH)) /* private keys and the like */
		return 0;
	if (S_ISDIR(st.st_mode))
		return copy_dir(c, from, to, name, depth);
	return S_ISREG(st.st_mode) ? copy_file(from, to, name, st.st_mode, c->err) : 0;
}

static bool is_wanted(const char *name)
{
	for (size_t i = 0; i < COUNT(wanted); i++) {
		size_t n = strlen(wanted[i]);

		if (wanted[i][n - 1] == '*' ? strncmp(name, wanted[i], n - 1) == 0
					    : strcmp(name, wanted[i]) == 0)
			return true;
	}
	return false;
}

static int copy_etc(int root_fd, struct err *err)
{
	struct copy c = { COPY_ENTRIES, err };
	_close_ int to = openat(root_fd, "etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = opendir("/etc");
	struct dirent *e;
	int r = 0;

	if (to < 0 || !dir) {
		if (dir)
			(void)closedir(dir);
		return err_sys(err, errno, "template /etc");
	}
	while (r == 0 && (e = readdir(dir)) != NULL)
		if (is_wanted(e->d_name))
			r = copy_entry(&c, dirfd(dir), to, e, COPY_DEPTH);
	(void)closedir(dir);
	return r;
}

/* We may read every file of the machine, and who gave us the directory may not: links in it lead
 * nowhere but to itself, and what is read is what everyone may read. */
static int open_public(int dir_fd, const char *path)
{
	struct open_how how = { .flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	_close_ int fd = (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !(st.st_mode & S_IROTH))
		return -1;
	return TAKE_FD(fd);
}

/* The image's own accounts, and ours behind them. */
static int merge_accounts(int root_fd, int dir_fd, const char *path, const char *line,
			  struct err *err)
{
	_close_ int fd = open_public(dir_fd, path);
	_cleanup_(buf_done) struct buf text = { .max = COPY_FILE };

	if (fd < 0 || fd_slurp(fd, &text) < 0)
		return 0;
	if (text.len > 0 && text.data[text.len - 1] != '\n')
		(void)buf_putc(&text, '\n');
	if (strstr(buf_str(&text), ":x:1000:") == NULL && buf_puts(&text, line) < 0)
		return err_sys(err, ENOMEM, "template %s", path);
	return put_file(root_fd, path, buf_str(&text), text.len, 0644, err);
}

static int make_tree(int root_fd, struct err *err)
{
	for (size_t i = 0; i < COUNT(directories); i++)
		if (mkdirat(root_fd, directories[i], 0755) < 0 && errno != EEXIST)
			return err_sys(err, errno, "template directory %s", directories[i]);
	for (size_t i = 0; i < COUNT(links); i++)
		if (symlinkat(links[i].target, root_fd, links[i].path) < 0)
			return err_sys(err, errno, "template link %s", links[i].path);
	return 0;
}

/* Often a link to where the machine's resolver keeps it, so this one is followed. */
static int copy_resolver(int root_fd, struct err *err)
{
	_close_ int fd = open("/etc/resolv.conf", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	_cleanup_(buf_done) struct buf text = { .max = COPY_FILE };

	if (fd < 0 || fd_slurp(fd, &text) < 0)
		return 0;
	return put_file(root_fd, "etc/resolv.conf", buf_str(&text), text.len, 0644, err);
}

int template_fill(int root_fd, bool host, int dir_fd, bool network, struct err *err)
{
	int r = make_tree(root_fd, err);

	for (size_t i = 0; i < COUNT(files) && r == 0; i++)
		r = put_file(root_fd, files[i].path, files[i].text, strlen(files[i].text), 0644,
			     err);
	for (size_t i = 0; i < COUNT(host_files) && r == 0 && host; i++)
		r = put_file(root_fd, host_files[i].path, host_files[i].text,
			     strlen(host_files[i].text), 0644, err);
	if (r == 0 && host)
		r = copy_etc(root_fd, err);
	if (r == 0 && network)
		r = copy_resolver(root_fd, err);
	if (r == 0 && dir_fd >= 0)
		r = merge_accounts(root_fd, dir_fd, "etc/passwd", USER_LINE, err);
	if (r == 0 && dir_fd >= 0)
		r = merge_accounts(root_fd, dir_fd, "etc/group", USER_GROUP, err);
	return r;
}

static int make_nodes(int dev, bool real, struct err *err)
{
	for (size_t i = 0; template_devices[i]; i++) {
		mode_t mode = real ? S_IFCHR | 0666 : S_IFREG | 0444;
		dev_t number = makedev(device_numbers[i].major, device_numbers[i].minor);

		if (mknodat(dev, template_devices[i], mode, real ? number : 0) < 0 ||
		    fchmodat(dev, template_devices[i], real ? 0666 : 0444, 0) < 0)
			return err_sys(err, errno, "template device %s", template_devices[i]);
	}
	return 0;
}

int template_copy_program(int to, int program_fd, struct err *err)
{
	off_t at = 0;
	ssize_t n;

	do
		n = sendfile(to, program_fd, &at, 1u << 20);
	while (n > 0 || (n < 0 && errno == EINTR));
	return n < 0 ? err_sys(err, errno, "copy holt-init") : 0;
}

int template_fill_program(int root_fd, int program_fd, struct err *err)
{
	_close_ int to = openat(root_fd, "holt/bin/holt-call",
				O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0755);

	return to < 0 ? err_sys(err, errno, "template's holt-call")
		      : template_copy_program(to, program_fd, err);
}

int template_fill_devices(int root_fd, bool real, struct err *err)
{
	_close_ int dev = openat(root_fd, "dev", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return dev < 0 ? err_sys(err, errno, "template's /dev") : make_nodes(dev, real, err);
}

int template_make_dev(struct err *err)
{
	static const struct fs_option options[] = { { "mode", "755" },
						    { "size", "64k" },
						    { "nr_inodes", "32" } };
	_close_ int fd = mounts_new("tmpfs", options, sizeof(options) / sizeof(options[0]),
				    MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, err);
	int r;

	if (fd < 0)
		return fd;
	if (mkdirat(fd, "pts", 0755) < 0 || mkdirat(fd, "shm", 0755) < 0)
		return err_sys(err, errno, "directories of /dev");
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
		if (strncmp(links[i].path, "dev/", 4) == 0 &&
		    symlinkat(links[i].target, fd, links[i].path + 4) < 0)
			return err_sys(err, errno, "links of /dev");
	r = make_nodes(fd, true, err);
	if (r == 0)
		r = mounts_protect(fd, MOUNT_ATTR_RDONLY, err);
	return r < 0 ? r : TAKE_FD(fd);
}
