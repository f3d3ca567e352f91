/* Counts connections that no program has accepted yet, and what lies in them, from the text of
 * /proc/net/tcp and /proc/net/sockstat. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* What a connection takes besides its data, with a margin: the kernel's socket, and what packets of
 * a few bytes waste. */
#define BACKLOG_CONNECTION_BYTES 8192u
#define BACKLOG_BOX_MIN (8ull << 20)      /* what any box may have */
#define BACKLOG_MACHINE_MAX (64ull << 20) /* below it nobody is looked at... */
#define BACKLOG_MACHINE_MIN (8ull << 20)  /* ...or below this, where TCP has little altogether */

/* The number behind a word in the line that begins with that protocol ("TCP:"); 0: there is none.
 */
uint64_t backlog_parse_sockstat(const char *text, const char *protocol, const char *word);
/* Adds what the lines say that belong to no program yet; others, and what is not understood, count
 * as nothing. The number of bytes up to the end of the last whole line. */
size_t backlog_parse_rows(const char *text, size_t size, uint64_t *bytes);
/* What a box with that memory limit may have in such connections. */
uint64_t backlog_allowance(uint64_t memory_bytes);
/* From how many bytes on in all sockets of the machine boxes are looked at. */
uint64_t backlog_threshold(uint64_t tcp_mem_bytes);
