/* The drivers, and how a context is written down with its execution and found again by it. */
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/str.h"
#include "sandbox/context-stamp.h"
#include "sandbox/context_impl.h"
#include "sandbox/execution.h"
#include "json/jv_decode.h"
#include "json/jw.h"

#define CONTENT_MAX (64u << 10)

#define FILE_OF(path) ".incbin \"sandbox/drivers/" path "\"\n"
#define EMBED(name, content)                                                      \
	__asm__(".section .rodata\n" #name ":\n" content ".byte 0\n.previous\n"); \
	extern const char name[]

/* What makes notebooks of cells is a text in it: Python compiles it when a cell needs it. */
EMBED(context_driver_python, ".ascii \"_NOTEBOOK = r'''\"\n" FILE_OF(
				     "notebook.py") ".ascii \"'''\\n\"\n" FILE_OF("context.py"));
EMBED(context_driver_node, FILE_OF("context.js"));
EMBED(context_driver_bash, FILE_OF("context.sh"));
EMBED(context_driver_r, FILE_OF("context.R"));
EMBED(context_driver_java, FILE_OF("Context.java"));

/* $1 is the driver. Requests come by descriptor 9: what runs finds an empty standard input. */
static const char run_r[] = "exec 9<&0 8<<END </dev/null\n"
			    "$1\n"
			    "END\n"
			    "exec Rscript --vanilla /dev/fd/8";
/* Java reads its source from a file alone. It fits into the smallest box, threads and all. */
static const char run_java[] =
	"command -v java >/dev/null || exit 127\n"
	"d=$(mktemp -d) && printf %s \"$1\" >\"$d/Context.java\" || exit 1\n"
	"exec java -Xmx96m -Xss512k -XX:+UseSerialGC -XX:TieredStopAtLevel=1 "
	"-XX:CICompilerCount=1 -XX:ReservedCodeCacheSize=24m -XX:-UsePerfData "
	"--add-opens java.base/java.util=ALL-UNNAMED "
	"\"$d/Context.java\" \"$d/Context.java\" \"$d\"";

/* Deno, too, reads a file alone. */
static const char run_typescript[] =
	"command -v deno >/dev/null || exec node -e \"$1\"\n"
	"d=$(mktemp -d) && printf %s \"$1\" >\"$d/context.cjs\" || exit 1\n"
	"export DENO_NO_UPDATE_CHECK=1\n"
	"exec deno run --quiet --allow-all \"$d/context.cjs\"";

static const struct language {
	const char *interpreter; /* as exec_request.language; NULL: argv */
	const char *code;
	const char *argv[7];
	const char *program; /* as context_program() */
} languages[CONTEXT_LANGUAGE_COUNT] = {
	[CONTEXT_PYTHON] = { "python", context_driver_python, { NULL }, NULL },
	[CONTEXT_JAVASCRIPT] = { "javascript", context_driver_node, { NULL }, NULL },
	[CONTEXT_TYPESCRIPT] = { NULL,
				 NULL,
				 { "/bin/sh", "-c", run_typescript, "sh", context_driver_node },
				 "deno and no node" },
	[CONTEXT_BASH] = { NULL,
			   NULL,
			   { "/bin/bash", "--noprofile", "--norc", "-c", context_driver_bash,
			     "bash" },
			   NULL },
	[CONTEXT_R] = { NULL, NULL, { "/bin/sh", "-c", run_r, "sh", context_driver_r }, "Rscript" },
	[CONTEXT_JAVA] = { NULL,
			   NULL,
			   { "/bin/sh", "-c", run_java, "sh", context_driver_java },
			   "java" },
};

void context_driver(enum context_language l, struct exec_request *req)
{
	const struct language *row = &languages[l];

	req->language = row->interpreter;
	if (row->interpreter) {
		req->code = row->code;
		return;
	}
	req->argv = row->argv;
	while (row->argv[req->argc])
		req->argc++;
}

const char *context_program(enum context_language l)
{
	return languages[l].program;
}

/* ---- content ---- */

int context_content(const struct context *c, char **ret)
{
	struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	int r;

	jw_object_begin(&w);
	jw_str_field(&w, "type", "context");
	jw_str_field(&w, "contextId", c->id);
	jw_str_field(&w, "language", context_language_name(c->language));
	jw_str_field(&w, "name", c->name);
	jw_str_field(&w, "cwd", c->cwd);
	jw_int_field(&w, "createdMs", c->created_ms);
	jw_key(&w, "envNames"); /* no values: they are often secrets */
	jw_array_begin(&w);
	for (size_t i = 0; i < c->env.len; i++)
		jw_string(&w, c->env.items[i].name);
	jw_array_end(&w);
	jw_object_end(&w);
	r = jw_end(&w);
	if (r == 0)
		*ret = buf_take(&b);
	buf_done(&b);
	return r;
}

struct content {
	const char *type, *id, *language, *name, *cwd;
	int64_t created_ms;
	struct jv_strings env_names;
};

static const struct jv_field fields[] = {
	JV_FIELD("type", STRING, struct content, type, .flags = JV_REQUIRED),
	JV_FIELD("contextId", STRING, struct content, id, .flags = JV_REQUIRED),
	JV_FIELD("language", STRING, struct content, language, .flags = JV_REQUIRED),
	JV_FIELD("name", STRING, struct content, name, .flags = JV_REQUIRED,
		 .max = CONTEXT_NAME_MAX),
	JV_FIELD("cwd", STRING, struct content, cwd, .flags = JV_REQUIRED, .max = CONTEXT_CWD_MAX),
	JV_FIELD("createdMs", I64, struct content, created_ms, .flags = JV_REQUIRED),
	JV_FIELD("envNames", STRINGS, struct content, env_names, .max = SANDBOX_ENV_MAX),
};

static int fill(struct context *c, const struct content *from)
{
	if (strcmp(from->type, "context") != 0 || !id_is_valid(from->id) ||
	    context_language_from(from->language, &c->language) < 0 ||
	    str_copy(c->name, sizeof(c->name), from->name) < 0 ||
	    str_copy(c->cwd, sizeof(c->cwd), from->cwd) < 0)
		return -EINVAL;
	(void)str_copy(c->id, sizeof(c->id), from->id);
	c->created_ms = from->created_ms;
	c->is_env_lost = from->env_names.len > 0;
	return 0;
}

int context_read_content(struct context *c, const char *content)
{
	struct arena *a = arena_create(2 * CONTENT_MAX);
	struct content value = { 0 };
	struct jv_doc *doc = NULL;
	int r = a ? jv_parse(content, strlen(content), CONTENT_MAX, &doc, NULL) : -ENOMEM;

	if (r == 0)
		r = jv_decode_known(jv_root(doc), fields, sizeof(fields) / sizeof(fields[0]), a,
				    &value, NULL);
	if (r == 0)
		r = fill(c, &value);
	(void)jv_free(doc);
	(void)arena_free(a);
	return r;
}

/* ---- of an earlier life ---- */

static void found(struct sandbox *sb, struct execution *x)
{
	struct context *c = context_alloc(sb);
	struct exec_info info;

	exec_info(x, &info);
	if (!c || context_read_content(c, info.content) < 0 || context_follow(c, x) < 0) {
		log_warn("sandbox", "context of execution %s cannot be found again", info.id);
		if (c)
			context_unref(c);
		return;
	}
	list_push_back(&sb->contexts, &c->node);
	sb->n_contexts++;
	context_expect_mark(c);
}

void contexts_load(struct sandboxes *all)
{
	LIST_FOREACH (&all->sandboxes, sb, struct sandbox, node)
		LIST_FOREACH (&sb->executions, x, struct execution, node)
			if (x->kind == EXECUTION_CONTEXT && sb->n_contexts < CONTEXTS_MAX)
				found(sb, x);
}
