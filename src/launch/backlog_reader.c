#include "launch/backlog_reader.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/str.h"
#include "launch/backlog_count.h"

#define CHUNK 16384

static uint64_t read_sockstat(int proc_fd, const char *path, const char *protocol, const char *word)
{
	char text[1024];

	if (fd_read_file_at(proc_fd, path, text, sizeof(text)) < 0)
		return 0;
	return backlog_parse_sockstat(text, protocol, word);
}

static uint64_t read_threshold(int proc_fd, uint64_t page)
{
	char text[128];
	uint64_t pages = 0;

	if (fd_read_file_at(proc_fd, "sys/net/ipv4/tcp_mem", text, sizeof(text)) < 0)
		return BACKLOG_MACHINE_MIN;
	text[strcspn(text, " \t\n")] = '\0';
	(void)parse_u64(text, 0, UINT64_MAX / page, &pages);
	return backlog_threshold(pages * page);
}

/* Memory and number are of the whole machine, in whichever namespace they are read. Unknown is
 * much.
 */
static bool is_much(int proc_fd)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	char text[1024];
	uint64_t bytes;

	if (fd_read_file_at(proc_fd, "net/sockstat", text, sizeof(text)) < 0)
		return true;
	bytes = backlog_parse_sockstat(text, "TCP:", "mem") * page +
		backlog_parse_sockstat(text, "TCP:", "alloc") * BACKLOG_CONNECTION_BYTES;
	return bytes > BACKLOG_MACHINE_MIN && bytes > read_threshold(proc_fd, page);
}

static void read_rows(int proc_fd, const char *path, struct backlog_row *row)
{
	_close_ int fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	char text[CHUNK];
	size_t have = 0, used;
	ssize_t r;

	while (fd >= 0 && row->bytes <= row->most &&
	       (r = read(fd, text + have, sizeof(text) - have)) > 0) {
		have += (size_t)r;
		used = backlog_parse_rows(text, have, &row->bytes);
		memmove(text, text + used, have - used);
		have -= used;
	}
}

/* How many sockets a namespace has is known without a walk, and most boxes have none. */
static void read_box(int proc_fd, struct backlog_row *row)
{
	static const struct {
		const char *counts, *protocol, *rows;
	} families[] = { { "sockstat", "TCP:", "tcp" }, { "sockstat6", "TCP6:", "tcp6" } };
	char path[48];

	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		(void)str_format(path, sizeof(path), "%d/net/%s", (int)row->pid,
				 families[i].counts);
		if (read_sockstat(proc_fd, path, families[i].protocol, "inuse") == 0)
			continue;
		(void)str_format(path, sizeof(path), "%d/net/%s", (int)row->pid, families[i].rows);
		read_rows(proc_fd, path, row);
	}
}

void backlog_read(int proc_fd, struct backlog_table *t, size_t *from)
{
	uint64_t began = clock_now_ms();
	size_t done = 0;

	if (!is_much(proc_fd))
		return;
	while (done < t->count && clock_now_ms() - began < BACKLOG_LOOK_MS)
		read_box(proc_fd, &t->rows[(*from + done++) % t->count]);
	*from = t->count > 0 ? (*from + done) % t->count : 0;
}
