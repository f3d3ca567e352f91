#include "tools/stubs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/tar.h"
#include "tools/stub_text.h"
#include "tools/stub_write.h"
#include "tools/stubs-stamp.h"

#define SERVERS_MAX 64u
#define FILE_MAX (128u << 10) /* of one file */

#define EMBED(name, path)                                                                    \
	__asm__(".section .rodata\n" #name ":\n.incbin \"" path "\"\n.byte 0\n.previous\n"); \
	extern const char name[]

EMBED(stubs_call_python, "tools/stubs/_call.py");
EMBED(stubs_call_node, "tools/stubs/_call.mjs");
EMBED(stubs_package, "tools/stubs/__init__.py");
EMBED(stubs_readme, "tools/stubs/README.md");

static const struct {
	const char *path, *text;
} own[] = {
	{ "tools/_call.py", stubs_call_python },
	{ "tools/_call.mjs", stubs_call_node },
	{ "tools/__init__.py", stubs_package },
	{ "tools/README.md", stubs_readme },
};

struct names {
	size_t n;
	char items[STUBS_TOOLS_MAX][STUB_NAME_MAX];
};

struct stubs {
	struct buf tar;          /* owned */
	struct buf python, node; /* owned: of the server: __init__.py and index.mjs */
	struct buf one;          /* owned: the file that is being written */
	char server[128];        /* whose tools are being added; "" before the first */
	char package[STUB_NAME_MAX];
	struct names servers, tools; /* taken ones; tools: of this server */
	size_t total, left_off;
};

struct stubs *stubs_free(struct stubs *s)
{
	if (!s)
		return NULL;
	buf_done(&s->tar);
	buf_done(&s->python);
	buf_done(&s->node);
	buf_done(&s->one);
	free(s);
	return NULL;
}

static bool is_taken(const struct names *t, const char *name)
{
	for (size_t i = 0; i < t->n; i++)
		if (strcmp(t->items[i], name) == 0)
			return true;
	return false;
}

/* Two names that come out the same are told apart by a number. */
static int take_name(struct names *t, size_t max, const char *foreign, char dst[STUB_NAME_MAX])
{
	char plain[STUB_NAME_MAX];

	if (t->n == max)
		return -E2BIG;
	stub_name(foreign, plain);
	(void)str_copy(dst, STUB_NAME_MAX, plain);
	for (unsigned i = 2; is_taken(t, dst); i++)
		stub_name_again(plain, i, dst);
	(void)str_copy(t->items[t->n++], STUB_NAME_MAX, dst);
	return 0;
}

static int put_file(struct stubs *s, const char *path, const char *text, size_t n)
{
	static const char zeroes[TAR_BLOCK];
	struct tar_member m = {
		.type = TAR_FILE, .mode = 0644, .size = n, .path = path, .link = ""
	};
	size_t before = s->tar.len;
	int r = tar_write_member(&s->tar, &m);

	if (r == 0)
		r = buf_append(&s->tar, text, n);
	if (r == 0)
		r = buf_append(&s->tar, zeroes, tar_padding(n));
	if (r < 0) { /* as if it had not been tried */
		size_t kept = before < s->tar.len ? before : s->tar.len;

		s->tar.failed = false;
		s->tar.len = kept;
	}
	return r;
}

static int put_in_server(struct stubs *s, const char *name, const char *ending, struct buf *text)
{
	char path[256];

	if (text->failed)
		return -E2BIG;
	if (str_format(path, sizeof(path), "tools/%s/%s%s", s->package, name, ending) < 0)
		return -E2BIG;
	return put_file(s, path, buf_str(text), text->len);
}

struct stubs *stubs_create(void)
{
	struct stubs *s = calloc(1, sizeof(*s));
	int r = 0;

	if (!s)
		return NULL;
	/* What stands for a server must have room, whatever its tools need. */
	buf_init(&s->tar, STUBS_BYTES_MAX);
	buf_init(&s->one, FILE_MAX);
	buf_init(&s->python, FILE_MAX);
	buf_init(&s->node, FILE_MAX);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]) && r == 0; i++)
		r = put_file(s, own[i].path, own[i].text, strlen(own[i].text));
	return r < 0 ? stubs_free(s) : s;
}

static int end_server(struct stubs *s)
{
	int r;

	if (s->server[0] == '\0')
		return 0;
	r = put_in_server(s, "__init__", ".py", &s->python);
	if (r == 0)
		r = put_in_server(s, "index", ".mjs", &s->node);
	buf_clear(&s->python);
	buf_clear(&s->node);
	s->tools.n = 0;
	s->server[0] = '\0';
	return r;
}

static int begin_server(struct stubs *s, const char *server)
{
	int r = end_server(s);

	if (r < 0 || strlen(server) >= sizeof(s->server))
		return r < 0 ? r : -E2BIG;
	r = take_name(&s->servers, SERVERS_MAX, server, s->package);
	if (r < 0)
		return r;
	(void)str_copy(s->server, sizeof(s->server), server);
	(void)buf_puts(&s->python, "\"\"\"Tools of ");
	stub_prose(&s->python, STUB_PYTHON, server, 128, "");
	(void)buf_puts(&s->python, ".\"\"\"\n\n");
	(void)buf_puts(&s->node, "// Tools of ");
	stub_line(&s->node, server);
	(void)buf_puts(&s->node, ".\n");
	return 0;
}

/* Both files of a tool, or none. */
static int put_tool(struct stubs *s, const struct stub_tool *tool, const char *name)
{
	size_t before = s->tar.len;
	int r;

	buf_clear(&s->one);
	stub_write_python(&s->one, tool, name);
	r = put_in_server(s, name, ".py", &s->one);
	if (r < 0)
		return r;
	buf_clear(&s->one);
	stub_write_node(&s->one, tool, name);
	r = put_in_server(s, name, ".mjs", &s->one);
	if (r < 0)
		s->tar.len = before;
	return r;
}

/* Room that is left for the files that end a server and the archive. */
#define RESERVE (2 * (size_t)FILE_MAX + 8 * TAR_BLOCK)

static int add(struct stubs *s, const struct stub_tool *tool)
{
	char name[STUB_NAME_MAX];
	int r = 0;

	if (tool->server[0] == '\0') /* which is what no server yet looks like */
		return -EINVAL;
	if (s->total == STUBS_TOOLS_MAX ||
	    s->tar.len + RESERVE + 2 * (size_t)FILE_MAX > STUBS_BYTES_MAX)
		return -E2BIG;
	if (strcmp(s->server, tool->server) != 0)
		r = begin_server(s, tool->server);
	if (r == 0)
		r = take_name(&s->tools, STUBS_TOOLS_MAX, tool->name, name);
	if (r == 0)
		r = put_tool(s, tool, name);
	if (r < 0)
		return r;
	(void)buf_printf(&s->python, "from .%s import %s\n", name, name);
	(void)buf_printf(&s->node, "export { %s } from \"./%s.mjs\";\n", name, name);
	s->total++;
	return s->python.failed || s->node.failed ? -E2BIG : 0;
}

int stubs_add(struct stubs *s, const struct stub_tool *tool)
{
	int r = add(s, tool);

	s->left_off += r < 0;
	return r;
}

const struct buf *stubs_end(struct stubs *s)
{
	if (end_server(s) < 0 || tar_write_end(&s->tar) < 0)
		return NULL;
	return &s->tar;
}

size_t stubs_left_off(const struct stubs *s)
{
	return s->left_off;
}
