/* What went wrong, as an answer: the only table from errno to HTTP. */
#pragma once

#include <stdbool.h>

struct api_call;
struct err;
struct jw;

/* The same errno means something else when it comes from inside a box: there, "no space left" is
 * the sandbox's own matter and not ours. */
enum problem_place { PROBLEM_HERE, PROBLEM_IN_BOX };

struct problem {
	int code;
	enum problem_place place;
	int status;
	const char *text; /* what the client is told; NULL: the error's own text */
	unsigned retry_s; /* Retry-After; 0: none */
};

/* Never NULL: what is in no row is an internal error, about which the client learns nothing. */
const struct problem *problem_find(int code, enum problem_place place);
/* Every code that an error can have, ended by NULL: the contract's list. */
extern const char *const problem_codes[];
/* "not_found": the code that belongs to a status. */
const char *problem_name(int status);
/* The same of a problem: "quota_exceeded" has no status of its own. */
const char *problem_code(const struct problem *p);
/* The text for the client. */
const char *problem_text(const struct problem *p, const struct err *err);

/* Each ends the request. Problems of ours (5xx) are logged with the request's id. */
void problem_reply(struct api_call *c, const struct err *err);
void problem_reply_box(struct api_call *c, const struct err *err);
/* 400 {"details":{"field":...}} */
void problem_field(struct api_call *c, const char *field, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void problem_status(struct api_call *c, int status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* {"code":...,"message":...,"details":...}; field may be NULL. */
void problem_write(struct jw *w, int status, const char *message, const char *field);
