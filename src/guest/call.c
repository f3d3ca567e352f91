#include "guest/call.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/encode.h"
#include "base/fd.h"
#include "base/utf8.h"
#include "spec/guest.h"

#define NAME "holt-call"
#define FAILED 1
#define USAGE 2
#define UNREACHABLE 3
#define ARGUMENTS_MAX (8u << 20)
#define ANSWER_MAX (32u << 20)

#define RESULT "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":"
#define ERROR "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":"
#define UNREAD "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":" /* what was asked is no JSON */
#define TEXT "\"text\":\""
#define MESSAGE "\"message\":\""

bool call_is_name(const char *argv0)
{
	const char *slash = strrchr(argv0, '/');

	return strcmp(slash ? slash + 1 : argv0, NAME) == 0;
}

/* ---- the answer ---- */

static const char *behind(const char *s, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(s, prefix, n) == 0 ? s + n : NULL;
}

static int put_code(struct buf *b, const char *hex)
{
	uint8_t two[2];
	unsigned c;

	if (strnlen(hex, 4) < 4 || decode_hex(hex, 4, two, 2) != 2)
		return -EINVAL;
	c = (unsigned)two[0] << 8 | two[1];
	if (c < 0x80)
		return buf_putc(b, (char)c);
	return -EINVAL; /* all else is written as it is */
}

/* The inside of a JSON string, up to its end. */
static int put_string(struct buf *b, const char *s)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	int r = 0;

	while (r == 0 && *s != '"') {
		size_t n = strcspn(s, "\"\\");
		const char *one;

		r = buf_append(b, s, n);
		s += n;
		if (*s != '\\')
			return *s == '"' ? r : -EINVAL;
		s++;
		one = *s ? strchr(from, *s) : NULL;
		if (*s == 'u') {
			r = r < 0 ? r : put_code(b, s + 1);
			s += r == 0 ? 5 : 0;
		} else {
			r = r < 0 ? r : one ? buf_putc(b, to[one - from]) : -EINVAL;
			s++;
		}
	}
	return r;
}

static enum call_answer read_text(const char *s, const char *member, struct buf *text)
{
	s = strstr(s, member);
	return s && put_string(text, s + strlen(member)) == 0 ? CALL_DONE : CALL_BROKEN;
}

enum call_answer call_read(const char *line, bool is_raw, struct buf *text)
{
	const char *result = behind(line, RESULT), *error = behind(line, ERROR);
	size_t n = result ? strlen(result) : 0;

	if (!error)
		error = behind(line, UNREAD);
	if (error)
		return read_text(error, MESSAGE, text) == CALL_DONE ? CALL_FAILED : CALL_BROKEN;
	if (!result || n < 2 || result[n - 1] != '}')
		return CALL_BROKEN;
	if (is_raw)
		return buf_append(text, result, n - 1) == 0 ? CALL_DONE : CALL_BROKEN;
	if (read_text(result, TEXT, text) != CALL_DONE)
		return CALL_BROKEN;
	return behind(result, "{\"isError\":true,") ? CALL_FAILED : CALL_DONE;
}

/* ---- the program ---- */

static int fail(int code, const char *text)
{
	(void)fprintf(stderr, NAME ": %s\n", text);
	return code;
}

static int usage(FILE *to, int code)
{
	(void)fputs("usage: " NAME " [--json] server.tool [arguments]\n"
		    "       " NAME " --list | --search words\n"
		    "Calls a tool that this sandbox may use. Arguments are a JSON object, or - to "
		    "read one.\n",
		    to);
	return code;
}

static int dial(void)
{
	struct sockaddr_un where = { .sun_family = AF_UNIX, .sun_path = GUEST_TOOLS_SOCKET };
	_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)&where, sizeof(where)) < 0)
		return -errno;
	return TAKE_FD(fd);
}

/* What a newline means in JSON, a blank does, too; and one ends the request. */
static void put_arguments(struct buf *b, const char *json, size_t n)
{
	size_t at = b->len;

	(void)buf_append(b, json, n);
	for (; !b->failed && at < b->len; at++)
		if (b->data[at] == '\n' || b->data[at] == '\r')
			b->data[at] = ' ';
}

static void put_member(struct buf *b, const char *key, const char *value)
{
	(void)buf_printf(b, "\"%s\":\"", key);
	(void)utf8_json_escape(b, value, strlen(value));
	(void)buf_puts(b, "\"");
}

struct order {
	const char *method;
	const char *key, *value;
	const char *arguments; /* NULL: none */
	bool is_raw;
};

static int write_order(const struct order *o, struct buf *b)
{
	_cleanup_(buf_done) struct buf in = { .max = ARGUMENTS_MAX };
	const char *arguments = o->arguments;

	(void)buf_printf(b, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":{",
			 o->method);
	put_member(b, o->key, o->value);
	if (!o->is_raw)
		(void)buf_puts(b, ",\"plain\":true");
	if (arguments && strcmp(arguments, "-") == 0) {
		if (fd_slurp(STDIN_FILENO, &in) < 0)
			return -EIO;
		arguments = buf_str(&in);
	}
	if (arguments) {
		(void)buf_puts(b, ",\"arguments\":");
		put_arguments(b, arguments, strlen(arguments));
	}
	return buf_puts(b, "}}\n");
}

static int ask(const struct order *o)
{
	_cleanup_(buf_done) struct buf out = { .max = 2 * ARGUMENTS_MAX };
	_cleanup_(buf_done) struct buf line = { .max = ANSWER_MAX };
	_cleanup_(buf_done) struct buf text = { .max = ANSWER_MAX };
	_close_ int fd = -1;
	enum call_answer end;

	if (write_order(o, &out) < 0)
		return fail(USAGE, "the arguments cannot be read, or are too long");
	fd = dial();
	if (fd < 0)
		return fail(UNREACHABLE, "this sandbox has no tools");
	if (fd_write_all(fd, out.data, out.len) < 0 || shutdown(fd, SHUT_WR) < 0 ||
	    fd_slurp(fd, &line) < 0)
		return fail(UNREACHABLE, "the connection to the tools is lost");
	if (line.len > 0 && line.data[line.len - 1] == '\n')
		line.data[line.len - 1] = '\0';
	end = call_read(buf_str(&line), o->is_raw, &text);
	if (end == CALL_BROKEN)
		return fail(UNREACHABLE, "the connection to the tools is lost");
	if (end == CALL_FAILED)
		return fail(FAILED, buf_str(&text));
	(void)buf_puts(&text, text.len > 0 && text.data[text.len - 1] == '\n' ? "" : "\n");
	return fd_write_all(STDOUT_FILENO, buf_str(&text), text.len) < 0 ? FAILED : 0;
}

int call_main(int argc, char **argv)
{
	struct order o = { .method = "tools/call", .key = "name" };
	int at = 1;

	(void)signal(SIGPIPE, SIG_IGN); /* it is said in words */
	for (; at < argc && strncmp(argv[at], "--", 2) == 0; at++) {
		if (strcmp(argv[at], "--json") == 0)
			o.is_raw = true;
		else if (strcmp(argv[at], "--list") == 0 && argc == at + 1)
			return ask(&(struct order){ "tools/search", "query", "", NULL, o.is_raw });
		else if (strcmp(argv[at], "--search") == 0 && argc == at + 2)
			return ask(&(struct order){ "tools/search", "query", argv[at + 1], NULL,
						    o.is_raw });
		else if (strcmp(argv[at], "--help") == 0)
			return usage(stdout, 0);
		else
			return usage(stderr, USAGE);
	}
	if (at >= argc || argc > at + 2)
		return usage(stderr, USAGE);
	o.value = argv[at];
	o.arguments = at + 1 < argc ? argv[at + 1] : NULL;
	return ask(&o);
}
