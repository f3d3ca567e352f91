/* A command's way to the daemon: settings, connection, requests with a progress line, and failures
 * with a hint. Speaks the public API (docs/api.md) and nothing else. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "httpc/httpc.h"
#include "json/jv.h"

struct command;
struct jw;
struct limits;

/* In the struct of every command that talks to the daemon; CLIENT_OPTS fill it. */
struct client_args {
	struct opt_settings settings;
	bool json;
};

/* A setting's option: its name stands behind the two dashes of its flag. */
#define CLIENT_SETTING(flag_, arg_, help_, type_, member_)                                \
	{                                                                                 \
		.name = &(flag_)[2], .type = OPT_SETTING, .arg = (arg_), .help = (help_), \
		.offset = offsetof(type_, member_.settings)                               \
	}
#define CLIENT_SETTINGS(type_, member_)                                                         \
	CLIENT_SETTING("--url", "URL", "the daemon to talk to (HOLT_URL)", type_, member_),     \
		CLIENT_SETTING("--api-key-file", "FILE", "file with the key (or HOLT_API_KEY)", \
			       type_, member_),                                                 \
		CLIENT_SETTING("--config", "FILE", "file of settings", type_, member_)
#define CLIENT_OPTS(type_, member_)                  \
	{ .name = "json",                            \
	  .type = OPT_FLAG,                          \
	  .help = "as JSON",                         \
	  .offset = offsetof(type_, member_.json) }, \
		CLIENT_SETTINGS(type_, member_)

extern const struct opt client_opts[]; /* for a struct that begins with a struct client_args */

struct client {
	struct config *config; /* owned */
	struct httpc *http;    /* owned */
	bool json;
	int status; /* of the last answer; 0: there was none */
};

/* client_run.c: a command that talks to the daemon: options, operands, connection, deed, failure.
 */
struct client_task {
	void *args;                 /* what the command's options fill */
	struct client_args *client; /* in it */
	int min, max;               /* operands */
	/* 0; negative with err filled; or an exit code, everything said. */
	int (*run)(struct client *c, void *args, int n, char **operands, struct err *err);
};
int client_run(const struct command *cmd, int argc, char **argv, const struct client_task *t);

/* A command that is a task of the daemon's: its arguments are a struct with a field `client`, which
 * begins as the rest says. */
#define CLIENT_COMMAND(name_, args_, min_, max_, run_, ...)                          \
	int name_(const struct command *cmd, int argc, char **argv)                  \
	{                                                                            \
		struct args_ args = { __VA_ARGS__ };                                 \
		struct client_task task = { &args, &args.client, min_, max_, run_ }; \
                                                                                     \
		return client_run(cmd, argc, argv, &task);                           \
	}

/* 0, or the exit code: everything was said. */
int client_open(struct client *c, const struct client_args *args);
void client_close(struct client *c);

/* "sandboxes/%/executions" with each % replaced by an argument (const char *), escaped; "/api/v1/"
 * stands before one that does not begin with a slash. */
int client_path(struct buf *b, const char *pattern, ...);

/* One request, with its progress shown: `done` is the callbacks' to count, `total` is set when the
 * answer's size is known. */
int client_transfer(struct client *c, const struct httpc_request *req, struct progress *p,
		    struct httpc_answer *ret, struct err *err);
/* The same. What takes longer than a second shows `what`. */
int client_call(struct client *c, const struct httpc_request *req, const char *what,
		struct httpc_answer *ret, struct err *err);

/* An answer in JSON: as it came, and to be read. */
struct client_doc {
	struct buf text;
	struct jv_doc *doc; /* NULL for an answer without a body */
};
void client_doc_done(struct client_doc *d);
/* body may be NULL. */
int client_json(struct client *c, const char *method, const char *target, const struct buf *body,
		struct client_doc *ret, struct err *err);

/* client_list.c: all pages of a list. fn gets each object; anything but 0 ends it. */
typedef int (*client_item_fn)(void *user, struct jv item);
int client_list(struct client *c, const char *target, client_item_fn fn, void *user,
		struct err *err);
/* The whole list on standard output: as a JSON array, or as a table whose rows `row` adds to the
 * struct table it gets. */
int client_print_list(struct client *c, const char *target, const char *const *heads,
		      client_item_fn row, struct err *err);
/* One object: as JSON, or a line for each field. */
int client_print_object(const struct client *c, const struct client_doc *d);
/* The same of what is at that path: see client_path(). */
int client_show(struct client *c, const char *pattern, const char *id, struct err *err);

/* Says the failure, with a hint where there is something to do, and as JSON where that was asked
 * for. Returns CLI_ERROR. */
int client_fail(const struct client *c, const struct err *err);

/* Appends the bytes that a base64 text stands for. -EPROTO, -ENOMEM. */
int client_bytes(struct jv text, struct buf *ret, struct err *err);
/* The text and a newline on standard output. */
int client_print(const struct buf *text);
/* "resources": what is asked for of them (sandbox_create.c); nothing when nothing is. */
void client_resources(struct jw *w, const struct limits *l);
/* "K=V" options as the members of an object; nothing when there are none. */
struct client_pairs {
	const char *key;    /* of the object */
	const char *option; /* that they were given with */
	bool inherit;       /* K alone passes our own on, when we have one */
};
int client_pairs(struct jw *w, const struct client_pairs *p, const struct opt_list *list,
		 struct err *err);
