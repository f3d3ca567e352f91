#include "base/encode.h"

#include <errno.h>
#include <string.h>

#include "check.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static void hex_is_lower_case_and_reads_both(void **state)
{
	char text[16];
	uint8_t bytes[4];

	(void)state;
	encode_hex("\x00\x7f\xff\xa5", 4, text);
	assert_string_equal(text, "007fffa5");
	assert_int_equal(decode_hex("007FffA5", 8, bytes, 4), 4);
	assert_memory_equal(bytes, "\x00\x7f\xff\xa5", 4);
	encode_hex(NULL, 0, text);
	assert_string_equal(text, "");
	assert_int_equal(decode_hex("", 0, NULL, 0), 0);
}

static void what_is_not_hex_is_refused(void **state)
{
	uint8_t bytes[4];

	(void)state;
	assert_int_equal(decode_hex("abc", 3, bytes, 4), -EINVAL);
	assert_int_equal(decode_hex("0g", 2, bytes, 4), -EINVAL);
	assert_int_equal(decode_hex(" 0", 2, bytes, 4), -EINVAL);
	assert_int_equal(decode_hex("0\0", 2, bytes, 4), -EINVAL);
	assert_int_equal(decode_hex("0011223344", 10, bytes, 4), -E2BIG);
}

static void base64_agrees_with_the_rfc(void **state)
{
	static const struct {
		const char *bytes, *text, *url;
	} rows[] = {
		{ "", "", "" },
		{ "f", "Zg==", "Zg" },
		{ "fo", "Zm8=", "Zm8" },
		{ "foo", "Zm9v", "Zm9v" },
		{ "foob", "Zm9vYg==", "Zm9vYg" },
		{ "fooba", "Zm9vYmE=", "Zm9vYmE" },
		{ "foobar", "Zm9vYmFy", "Zm9vYmFy" },
		{ "\xfb\xff\xbf", "+/+/", "-_-_" },
	};
	char text[16], bytes[16];

	(void)state;
	for (size_t i = 0; i < LEN(rows); i++) {
		size_t n = strlen(rows[i].bytes), t = strlen(rows[i].text);

		assert_int_equal(encode_base64(rows[i].bytes, n, text), t);
		assert_string_equal(text, rows[i].text);
		assert_true(t < BASE64_SIZE(n));
		assert_int_equal(decode_base64(text, t, bytes, n), n);
		assert_memory_equal(bytes, rows[i].bytes, n);
		t = strlen(rows[i].url);
		assert_int_equal(encode_base64url(rows[i].bytes, n, text), t);
		assert_string_equal(text, rows[i].url);
		assert_int_equal(decode_base64url(text, t, bytes, n), n);
		assert_memory_equal(bytes, rows[i].bytes, n);
	}
}

static void every_length_comes_back(void **state)
{
	uint8_t bytes[256], back[256];
	char text[BASE64_SIZE(256)];

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 37 + 11);
	for (size_t n = 0; n <= sizeof(bytes); n++) {
		size_t t = encode_base64(bytes, n, text);

		assert_int_equal(t + 1, BASE64_SIZE(n));
		assert_int_equal(decode_base64(text, t, back, n), n);
		assert_memory_equal(bytes, back, n);
		t = encode_base64url(bytes, n, text);
		assert_int_equal(decode_base64url(text, t, back, n), n);
		assert_memory_equal(bytes, back, n);
		if (n > 0)
			assert_int_equal(decode_base64url(text, t, back, n - 1), -E2BIG);
	}
}

static void decoding_is_strict(void **state)
{
	static const char *const bad[] = {
		"Zg",       /* no padding */
		"Zg=",      /* half of it */
		"Z===",     /* too much of it */
		"====",     /* nothing else */
		"Zg==Zg==", /* in the middle */
		"Zh==",     /* bits behind the last byte */
		"Zm9=",     /* the same */
		"Zm9v\n",   /* line feed */
		"Zm 9",     /* blank */
		"-_-_",     /* the other alphabet */
		"Zm9\xc3",  /* not ASCII */
	};
	static const char *const bad_url[] = { "Zg==", "Z", "Zm9vZ", "+/+/", "Zh", "Zm9vYmF" };
	uint8_t bytes[16];

	(void)state;
	for (size_t i = 0; i < LEN(bad); i++)
		assert_int_equal(decode_base64(bad[i], strlen(bad[i]), bytes, 16), -EINVAL);
	for (size_t i = 0; i < LEN(bad_url); i++)
		assert_int_equal(decode_base64url(bad_url[i], strlen(bad_url[i]), bytes, 16),
				 -EINVAL);
}

static void each_byte_outside_the_alphabet_is_refused(void **state)
{
	uint8_t bytes[3];
	char text[] = "AAAA";
	int good = 0, good_url = 0;

	(void)state;
	for (int c = 0; c < 256; c++) {
		text[1] = (char)c;
		good += decode_base64(text, 4, bytes, 3) == 3;
		good_url += decode_base64url(text, 4, bytes, 3) == 3;
	}
	assert_int_equal(good, 64);
	assert_int_equal(good_url, 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hex_is_lower_case_and_reads_both),
		cmocka_unit_test(what_is_not_hex_is_refused),
		cmocka_unit_test(base64_agrees_with_the_rfc),
		cmocka_unit_test(every_length_comes_back),
		cmocka_unit_test(decoding_is_strict),
		cmocka_unit_test(each_byte_outside_the_alphabet_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
