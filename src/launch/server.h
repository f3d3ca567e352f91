/* Requests of the client, by file; for server*.c only. */
#pragma once

#include <stdint.h>

struct box;
struct err;
struct launch;
struct limits;
struct rd;
struct template;

struct request {
	uint32_t id;
	struct rd *r;
	int fd; /* passed along; -1: none */
};

/* What a request names; NULL and the error when it is not there. */
struct template *server_template(struct launch *l, uint32_t id, struct err *err);
/* spec_fill_limits(), within what the machine has: -ERANGE. */
int server_fill_limits(const struct launch *l, struct limits *limits, const struct limits *base,
		       struct err *err);
struct box *server_claimed(struct launch *l, const char *id, struct err *err);

/* 0: answered, now or later; else a negative errno, and what is in err is the answer. */
int server_on_template(struct launch *l, struct request *q, struct err *err);
int server_on_template_drop(struct launch *l, struct request *q, struct err *err);
int server_on_pool(struct launch *l, struct request *q, struct err *err);
int server_on_pool_state(struct launch *l, struct request *q, struct err *err);
int server_on_snapshot(struct launch *l, struct request *q, struct err *err);
int server_on_layer_drop(struct launch *l, struct request *q, struct err *err);
int server_on_layers(struct launch *l, struct request *q, struct err *err);
int server_on_volume_make(struct launch *l, struct request *q, struct err *err);
int server_on_volume_drop(struct launch *l, struct request *q, struct err *err);
int server_on_volumes(struct launch *l, struct request *q, struct err *err);
