/* What the files of this folder know of each other. */
#pragma once

#include <curl/curl.h>

#include "httpc/httpc.h"
#include "httpc/url.h"

struct httpc_group {
	CURLM *multi;  /* owned */
	bool progress; /* a callback ran: what the caller wants to wait for may have changed */
};

struct httpc {
	struct httpc_group *group;    /* borrowed, or own */
	struct httpc_group *own;      /* owned; NULL: it is in another's */
	char *given;                  /* owned; the address as it was given */
	char *key;                    /* owned; NULL: none */
	char *ca_file;                /* owned; NULL: the system's */
	struct curl_slist *addresses; /* owned; NULL: they are to be looked up */
	long connect_ms;
	bool public_only;
	const struct guard_nets *closed; /* borrowed; NULL: none */
	bool was_refused;                /* an address was not of the public internet */
	struct url url;
};

/* The options that every connection of ours has. */
int httpc_configure(struct httpc *c, CURL *easy);
/* What curl's result means, with its own words where it has any. */
int httpc_curl_problem(const struct httpc *c, CURL *easy, CURLcode code, const char *words,
		       struct err *err);
