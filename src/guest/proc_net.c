#include "guest/proc_net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define STATE_LISTEN 0x0A
#define INODE_AT 9 /* of the fields, from 0 */
#define WORDS_MAX 4

static int hex_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* All of the text, which has so many digits. */
static bool parse_hex(struct str s, size_t digits, uint32_t *ret)
{
	uint32_t v = 0;

	if (s.len != digits)
		return false;
	for (size_t i = 0; i < digits; i++) {
		int d = hex_of(s.data[i]);

		if (d < 0)
			return false;
		v = v << 4 | (uint32_t)d;
	}
	*ret = v;
	return true;
}

static bool parse_decimal(struct str s, uint64_t *ret)
{
	uint64_t v = 0;

	for (size_t i = 0; i < s.len; i++) {
		if (s.data[i] < '0' || s.data[i] > '9' || v > UINT64_MAX / 10 - 1)
			return false;
		v = v * 10 + (uint64_t)(s.data[i] - '0');
	}
	*ret = v;
	return s.len > 0;
}

/* Each word of an address is a number in the machine's order, of bytes in the network's. */
static bool parse_address(struct str s, struct proc_net_socket *ret)
{
	struct str rest = s, host = { 0 };
	uint32_t words[WORDS_MAX], port;
	size_t count;

	if (!str_split(&rest, ':', &host) || !parse_hex(rest, 4, &port))
		return false;
	count = host.len / 8;
	if (count != 1 && count != WORDS_MAX)
		return false;
	for (size_t i = 0; i < count; i++)
		if (!parse_hex(
			    (struct str){ host.data + 8 * i, i + 1 < count ? 8 : host.len - 8 * i },
			    8, &words[i]))
			return false;
	ret->port = (uint16_t)port;
	return inet_ntop(count == 1 ? AF_INET : AF_INET6, words, ret->address,
			 sizeof(ret->address)) != NULL;
}

static bool next_field(struct str *rest, struct str *ret)
{
	do {
		if (!str_split(rest, ' ', ret))
			return false;
	} while (ret->len == 0);
	return true;
}

int proc_net_parse(struct str line, struct proc_net_socket *ret)
{
	struct proc_net_socket s = { 0 };
	struct str field = { 0 };
	uint32_t state = 0;

	for (int i = 0; i <= INODE_AT; i++) {
		bool is_good = next_field(&line, &field);

		if (is_good && i == 1)
			is_good = parse_address(field, &s);
		else if (is_good && i == 3)
			is_good = parse_hex(field, 2, &state);
		else if (is_good && i == INODE_AT)
			is_good = parse_decimal(field, &s.inode);
		if (!is_good)
			return -EINVAL;
	}
	if (state != STATE_LISTEN || s.port == 0)
		return -ENOENT;
	*ret = s;
	return 0;
}
