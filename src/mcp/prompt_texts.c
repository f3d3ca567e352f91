/* The prompts themselves. {name} stands for an argument; what is between [ and ] is left out unless
 * all arguments in it were given, for what stands behind a | in there. */
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "mcp/prompts.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static const struct mcp_prompt_arg test_args[] = {
	{ "command", "how the tests are run; found out unless given", false },
	{ "path", "where the project is in the sandbox; /workspace unless given", false },
	{ "sandbox_id", "the sandbox; your own unless given", false },
	{ 0 },
};

static const struct mcp_prompt_arg explore_args[] = {
	{ "path", "where the repository is in the sandbox; /workspace unless given", false },
	{ "question", "what is to be found out", false },
	{ "sandbox_id", "the sandbox; your own unless given", false },
	{ 0 },
};

static const struct mcp_prompt_arg data_args[] = {
	{ "file", "the data, as a path in the sandbox", true },
	{ "question", "what is to be found out", true },
	{ "language", "python unless given", false },
	{ "sandbox_id", "the sandbox; your own unless given", false },
	{ 0 },
};

static const struct mcp_prompt_arg review_args[] = {
	{ "path", "the file in the sandbox", true },
	{ "focus", "what to look at most", false },
	{ "sandbox_id", "the sandbox; your own unless given", false },
	{ 0 },
};

static const struct text {
	const char *name, *text;
} texts[] = {
	{ "run-and-fix-tests",
	  "Make the tests pass of the project[ in {path}][ in the sandbox {sandbox_id} (give it as "
	  "sandbox_id to every tool)].\n\n"
	  "1. [Run `{command}`|Find out how its tests are run, then run them] with the tool exec; "
	  "give a timeout_ms that is long enough.\n"
	  "2. Of each failure read the code that it is about (read_file, search_files) and say in "
	  "one sentence why it fails.\n"
	  "3. Mend the cause with edit_file: the code when the code is wrong, the test only when "
	  "the test is. Never weaken or skip a test to make it pass.\n"
	  "4. Run the tests again. Go on until all pass, or until you can say what keeps them from "
	  "it.\n\n"
	  "At the end tell which files you changed and why, and show the last lines of the last "
	  "run." },
	{ "explore-a-repository",
	  "Get to know the repository[ in {path}][ in the sandbox {sandbox_id} (give it as "
	  "sandbox_id to every tool)].\n\n"
	  "Look before you read: list_dir at the top, its README and its build files, then the "
	  "folders. Use search_files to follow names instead of reading whole files. Change "
	  "nothing.\n\n"
	  "[Answer this question: {question}\n\n]"
	  "Then tell, in this order: what it is for; how it is built, run and tested, with the "
	  "commands; its parts and how they depend on each other; where one would begin to change "
	  "it. Name files with their paths, and say what you did not look at." },
	{ "data-analysis",
	  "Analyse the data in {file}[ of the sandbox {sandbox_id} (give it as sandbox_id to every "
	  "tool)] and answer: {question}\n\n"
	  "Use the tool run_code[ with the language {language}], with one context_id for all steps "
	  "so that what was loaded stays. First look at the shape of the data: columns, types, the "
	  "first rows, what is missing or odd. Then compute; draw a chart where it says more than "
	  "numbers.\n\n"
	  "Answer in two or three sentences first, then show the numbers behind them and how sure "
	  "they are. Say which rows you left out and why. The sandbox has no network unless it was "
	  "given one." },
	{ "review-a-file",
	  "Review {path}[ in the sandbox {sandbox_id} (give it as sandbox_id to every tool)].\n\n"
	  "Read it whole with read_file, and with search_files who uses it. Change nothing.[ Look "
	  "at this most: {focus}.]\n\n"
	  "Tell what is wrong, worst first: what goes wrong, with which input, at which line, and "
	  "what would be right. Run a small program with run_code or exec where that proves it. "
	  "Then what could be simpler. Leave out matters of taste; if nothing is wrong, say so." },
};

/* ---- filling in ---- */

static const char *argument(const struct mcp_request *q, const char *name, size_t n)
{
	struct jv given = jv_get(q->params, "arguments");

	JV_FOREACH (given, it)
		if (str_eq(it.key, (struct str){ name, n }))
			return jv_text(it.value);
	return NULL;
}

/* Appends text[0..n). False: an argument in it was not given. */
static bool fill(const struct mcp_request *q, const char *text, size_t n, struct buf *b)
{
	bool is_whole = true;

	for (size_t i = 0; i < n; i++) {
		const char *value;
		size_t len;

		if (text[i] != '{') {
			(void)buf_putc(b, text[i]);
			continue;
		}
		len = strcspn(text + i, "}") - 1;
		value = argument(q, text + i + 1, len);
		is_whole &= value && value[0];
		(void)buf_puts(b, value ? value : "");
		i += len + 1;
	}
	return is_whole;
}

static void fill_all(const struct mcp_request *q, const char *text, struct buf *b)
{
	while (*text) {
		size_t n = strcspn(text, "["), or ;
		_cleanup_(buf_done) struct buf part = { 0 };

		(void)fill(q, text, n, b);
		text += n;
		if (*text == '\0')
			return;
		n = strcspn(++text, "]");
		or = strcspn(text, "|");
		if (fill(q, text, or < n ? or : n, &part))
			(void)buf_append(b, buf_str(&part), part.len);
		else if (or < n)
			(void)fill(q, text + or +1, n - or -1, b);
		text += n + 1;
	}
}

static void get(struct mcp_request *q, const struct mcp_prompt *p)
{
	_cleanup_(buf_done) struct buf text = { 0 };
	struct jw *w;

	for (size_t i = 0; i < LEN(texts); i++)
		if (strcmp(texts[i].name, p->name) == 0)
			fill_all(q, texts[i].text, &text);
	if (text.failed)
		return mcp_fail(q, RPC_INTERNAL, "out of memory");
	w = mcp_result_begin(q);
	jw_str_field(w, "description", p->about);
	jw_key(w, "messages");
	jw_array_begin(w);
	jw_object_begin(w);
	jw_str_field(w, "role", "user");
	jw_key(w, "content");
	jw_object_begin(w);
	jw_str_field(w, "type", "text");
	jw_str_field(w, "text", buf_str(&text));
	jw_object_end(w);
	jw_object_end(w);
	jw_array_end(w);
	mcp_result_end(q);
}

const struct mcp_prompt mcp_own_prompts[] = {
	{ "run-and-fix-tests", "Run the tests and mend what fails",
	  "Runs a project's tests in the sandbox, finds out why they fail, and mends it.",
	  test_args, get },
	{ "explore-a-repository", "Explore a repository",
	  "Finds out what a repository in the sandbox is, and how it is built and tested.",
	  explore_args, get },
	{ "data-analysis", "Analyse data", "Answers a question about a file of data, by programs.",
	  data_args, get },
	{ "review-a-file", "Review a file", "Looks for what is wrong in a file.", review_args,
	  get },
};
const size_t mcp_n_own_prompts = LEN(mcp_own_prompts);
