#include "e2b/build_id.h"

#include <ctype.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ALPHABET "abcdefghijklmnopqrstuvwxyz0123456789"
#define BASE (sizeof(ALPHABET) - 1)
#define DIGITS 32
#define VERSION_AT 12 /* of the 32: always 4 */
#define VARIANT_AT 16 /* always 8 */

typedef unsigned __int128 number; /* 36^20 is below 2^104, and 30 digits are 120 bits */

void build_id_write(const char *id, char ret[BUILD_UUID_SIZE])
{
	static const char hex[] = "0123456789abcdef";
	char digits[DIGITS];
	number n = 0;
	size_t at = 0;

	for (size_t i = 0; i < ID_LEN; i++)
		n = n * BASE + (number)(strchr(ALPHABET, id[i]) - ALPHABET);
	for (size_t i = DIGITS; i-- > 0;) {
		if (i == VERSION_AT || i == VARIANT_AT) {
			digits[i] = i == VERSION_AT ? '4' : '8';
			continue;
		}
		digits[i] = hex[n & 15];
		n >>= 4;
	}
	for (size_t i = 0; i < DIGITS; i++) {
		if (i == 8 || i == 12 || i == 16 || i == 20)
			ret[at++] = '-';
		ret[at++] = digits[i];
	}
	ret[at] = '\0';
}

static int digit_of(char ch)
{
	return ch >= '0' && ch <= '9' ? ch - '0' : tolower((unsigned char)ch) - 'a' + 10;
}

static bool read_number(const char *uuid, number *ret)
{
	size_t digits = 0;

	if (strlen(uuid) != BUILD_UUID_SIZE - 1)
		return false;
	*ret = 0;
	for (size_t i = 0; i < BUILD_UUID_SIZE - 1; i++) {
		if (i == 8 || i == 13 || i == 18 || i == 23) {
			if (uuid[i] != '-')
				return false;
			continue;
		}
		if (!isxdigit((unsigned char)uuid[i]))
			return false;
		if (digits == VERSION_AT || digits == VARIANT_AT) {
			if (uuid[i] != (digits == VERSION_AT ? '4' : '8'))
				return false;
		} else {
			*ret = *ret << 4 | (number)digit_of(uuid[i]);
		}
		digits++;
	}
	return true;
}

bool build_id_read(const char *uuid, char ret[ID_LEN + 1])
{
	number n;

	if (!read_number(uuid, &n))
		return false;
	for (size_t i = ID_LEN; i-- > 0; n /= BASE)
		ret[i] = ALPHABET[n % BASE];
	ret[ID_LEN] = '\0';
	return n == 0;
}
