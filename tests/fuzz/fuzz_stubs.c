/* What a server says about its tools, as files: whatever it is, the files have names of our own
 * making, and in each of them foreign words stand in strings and comments only. */
#include <string.h>

#include "base/tar.h"
#include "fuzz.h"
#include "tools/stubs.h"
#include "json/jv.h"

#define PLAIN "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

/* Skips what is quoted, and insists on an end of it. */
static const char *skip(const char *p, const char *end, char escape)
{
	while (*p && strncmp(p, end, strlen(end)) != 0)
		p += escape && p[0] == escape && p[1] ? 2 : 1;
	MUST(*p);
	return p + strlen(end);
}

static void check_python(const char *p)
{
	while (*p) {
		if (strncmp(p, "\"\"\"", 3) == 0)
			p = skip(p + 3, "\"\"\"", '\\');
		else if (*p == '"')
			p = skip(p + 1, "\"", '\\');
		else
			MUST(strchr(PLAIN " \n:.,()=*{}|", *p++));
	}
}

static void check_node(const char *p)
{
	while (*p) {
		if (strncmp(p, "/*", 2) == 0)
			p = skip(p + 2, "*/", 0);
		else if (strncmp(p, "//", 2) == 0)
			p = skip(p + 2, "\n", 0);
		else if (*p == '"')
			p = skip(p + 1, "\"", '\\');
		else
			MUST(strchr(PLAIN " \n;.,()={}", *p++));
	}
}

/* Our own files need not be looked at. */
static void check_file(const char *path, const char *text)
{
	const char *name = strchr(path, '/'), *slash = name ? strchr(name + 1, '/') : NULL;

	MUST(strncmp(path, "tools/", 6) == 0 && !strstr(path, ".."));
	if (!slash)
		return;
	MUST(slash > name + 1 && strspn(name + 1, PLAIN) == (size_t)(slash - name - 1));
	MUST(strspn(slash + 1, PLAIN) == (size_t)(strchr(slash, '.') - slash - 1));
	if (strstr(slash, ".py"))
		check_python(text);
	else
		check_node(text);
}

static void check_all(const struct buf *tar)
{
	static struct tar_reader r;
	struct buf text = { 0 };
	const uint8_t *in = (const uint8_t *)tar->data;
	size_t left = tar->len;

	tar_reader_init(&r);
	for (;;) {
		int e = tar_read(&r, &in, &left, NULL);

		MUST(e >= 0 && e != TAR_NEED);
		if (e == TAR_END)
			break;
		if (e == TAR_MEMBER)
			buf_clear(&text);
		if (e == TAR_DATA)
			MUST(buf_append(&text, r.data, r.data_len) == 0);
		if (e == TAR_DONE)
			check_file(r.member.path, buf_str(&text));
	}
	tar_reader_done(&r);
	buf_done(&text);
}

static const char *text_of(struct jv v, const char *key)
{
	const char *text = jv_text(jv_get(v, key));

	return text ? text : "";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stubs *s = stubs_create();
	struct jv_doc *doc = NULL;
	const struct buf *tar;

	MUST(s);
	if (jv_parse(data, size, 1u << 20, &doc, NULL) == 0) {
		JV_FOREACH (jv_root(doc), it)
			(void)stubs_add(s, &(struct stub_tool){
						   .server = text_of(it.value, "server"),
						   .name = text_of(it.value, "name"),
						   .about = text_of(it.value, "description"),
						   .input = jv_get(it.value, "inputSchema"),
						   .output = jv_get(it.value, "outputSchema") });
	}
	tar = stubs_end(s);
	MUST(tar);
	check_all(tar);
	(void)stubs_free(s);
	(void)jv_free(doc);
	return 0;
}
