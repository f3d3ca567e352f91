/* What E2B's clients say of a sandbox and want to see again, as the sandbox's note keeps it:
 * {"template":"base","allowInternetAccess":true,"network":{...}}. What a client's proxy wants as a
 * password is not kept: nothing here would use it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "json/jv.h"

struct arena;
struct buf;
struct err;
struct jw;

#define NOTE_HOST_MAX 255
#define NOTE_TEMPLATE_MAX 128

struct note { /* what a request says */
	const char *template;
	int internet;      /* 1, 0, or -1: not said */
	struct jv network; /* an object, or absent */
};
/* -EINVAL: "network.allowOut: ...", and the note is not written. */
int note_write(const struct note *n, struct arena *a, struct buf *b, struct err *err);
/* Another one, with what goes out as `update` says (absent: cleared) and the rest as it was. */
int note_update(const char *note, struct jv update, struct arena *a, struct buf *b,
		struct err *err);

/* "templateID", "alias": as it was asked for, or else what Holt calls it. */
void note_write_template(struct jw *w, const char *note, const char *template);
/* "network", as far as it was said, and "allowInternetAccess" as it is: has_way, if the operator
 * lets anybody out. */
void note_write_network(struct jw *w, const char *note, bool has_way);
/* Whether that is what it was made from. */
bool note_is_of(const char *note, const char *template, const char *asked);

struct note_traffic {   /* to its ports */
	bool is_public; /* unless said otherwise, or what was said cannot be read */
	char mask_host[NOTE_HOST_MAX + 1]; /* "": as the client sends it; may hold ${PORT} */
};
void note_traffic(const char *note, struct note_traffic *ret);
