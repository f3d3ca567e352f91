/* Text of holt.yaml or of .env (the first byte chooses) through its reader into settings: names and
 * values are whole texts, lines go up, and what a setting takes it shows, and takes again as shown.
 */
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"
#include "base/utf8.h"
#include "config/config.h"
#include "config/source.h"
#include "config/value.h"
#include "fuzz.h"

#define INPUT_MAX 16384u

struct state {
	struct config *c;
	size_t lines; /* of the input */
};

static void set(struct config *c, const struct setting *s, const char *value)
{
	struct buf first = { 0 }, second = { 0 };

	if (value_set(c, s, value, "/home", NULL) < 0)
		return;
	MUST(value_show(c, s, &first) == 0);
	if (s->type != SETTING_SECRET) {
		MUST(value_set(c, s, buf_str(&first), "/home", NULL) == 0);
		MUST(value_show(c, s, &second) == 0);
		MUST(strcmp(buf_str(&first), buf_str(&second)) == 0);
	}
	buf_done(&first);
	buf_done(&second);
}

static int take(void *user, const char *name, const char *value, size_t line, struct err *err)
{
	struct state *st = user;
	const struct setting *s = settings_find(name);

	(void)err;
	MUST(name[0] && strlen(name) < 256 && line >= 1 && line <= st->lines);
	(void)settings_nearest(name);
	if (!s)
		s = settings_find_env(name);
	if (s && value)
		set(st->c, s, value);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config c = { 0 };
	struct state st = { &c, 2 }; /* libyaml puts the end of its input on a line of its own */
	const char *text = (const char *)data + 1;
	size_t count;
	const struct setting *table = settings_table(&count);

	if (size == 0 || size > INPUT_MAX)
		return 0;
	c.arena = arena_create(1 << 20);
	MUST(c.arena);
	for (size_t i = 0; i + 1 < size; i++) /* YAML has many line ends */
		st.lines += text[i] == '\n' || text[i] == '\r' || (text[i] & 0x80) != 0;
	if (data[0] & 1)
		(void)yaml_read("f", text, size - 1, take, &st, NULL);
	else
		(void)dotenv_read("f", text, size - 1, take, &st, NULL);
	for (size_t i = 0; i < count; i++)
		value_done(&c, &table[i]);
	arena_free(c.arena);
	return 0;
}
