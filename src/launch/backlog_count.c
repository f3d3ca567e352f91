#include "launch/backlog_count.h"

#include <stdbool.h>
#include <string.h>

#include "base/parse.h"
#include "base/str.h"

/* "0: 0100007F:AA93 0100007F:9290 08 00000000:00238581 00:00000000 00000000 0 0 4711 1 ..." */
enum { FIELD_STATE = 3, FIELD_QUEUES = 4, FIELD_INODE = 9, FIELD_COUNT };
#define RX_OFFSET 9 /* of the second number of the queues */
#define RX_DIGITS 8

#define BOX_PART 4     /* of its memory limit: one part in so many, on top of it */
#define MACHINE_PART 8 /* of what TCP may use before the kernel begins to save */

static bool next_word(struct str *line, struct str *ret)
{
	while (str_split(line, ' ', ret))
		if (ret->len > 0)
			return true;
	return false;
}

uint64_t backlog_parse_sockstat(const char *text, const char *protocol, const char *word)
{
	struct str rest = { text, strlen(text) }, line, name, value;
	char number[24];
	uint64_t n = 0;

	while (str_split(&rest, '\n', &line)) {
		if (!next_word(&line, &name) || !str_is(name, protocol))
			continue;
		while (next_word(&line, &name) && next_word(&line, &value))
			if (str_is(name, word) &&
			    str_format(number, sizeof(number), "%.*s", (int)value.len,
				       value.data) >= 0 &&
			    parse_u64(number, 0, UINT64_MAX, &n) == 0)
				return n;
	}
	return 0;
}

static bool parse_hex(struct str s, uint64_t *ret)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s.len; i++) {
		const char *digits = "0123456789ABCDEF", *at = strchr(digits, s.data[i]);

		if (!at || !*at)
			return false;
		n = n << 4 | (uint64_t)(at - digits);
	}
	*ret = n;
	return s.len > 0;
}

/* One that is established, or that its client has closed, and has no inode: no descriptor was ever
 * made of it. A program's own loses its inode when it is closed, but is in another state then. */
static uint64_t parse_row(struct str line)
{
	struct str fields[FIELD_COUNT], rx;
	uint64_t bytes;
	size_t n = 0;

	while (n < FIELD_COUNT && next_word(&line, &fields[n]))
		n++;
	if (n < FIELD_COUNT || !str_is(fields[FIELD_INODE], "0") ||
	    (!str_is(fields[FIELD_STATE], "01") && !str_is(fields[FIELD_STATE], "08")) ||
	    fields[FIELD_QUEUES].len != RX_OFFSET + RX_DIGITS)
		return 0;
	rx = (struct str){ fields[FIELD_QUEUES].data + RX_OFFSET, RX_DIGITS };
	return parse_hex(rx, &bytes) ? bytes + BACKLOG_CONNECTION_BYTES : 0;
}

size_t backlog_parse_rows(const char *text, size_t size, uint64_t *bytes)
{
	size_t done = 0;

	for (;;) {
		const char *end = memchr(text + done, '\n', size - done);

		if (!end)
			return done;
		*bytes += parse_row((struct str){ text + done, (size_t)(end - text) - done });
		done = (size_t)(end - text) + 1;
	}
}

uint64_t backlog_allowance(uint64_t memory_bytes)
{
	uint64_t n = memory_bytes / BOX_PART;

	return n < BACKLOG_BOX_MIN ? BACKLOG_BOX_MIN : n;
}

uint64_t backlog_threshold(uint64_t tcp_mem_bytes)
{
	uint64_t n = tcp_mem_bytes / MACHINE_PART;

	if (n > BACKLOG_MACHINE_MAX)
		return BACKLOG_MACHINE_MAX;
	return n < BACKLOG_MACHINE_MIN ? BACKLOG_MACHINE_MIN : n;
}
