/* What `holt top` knows: one look at all live sandboxes, and how that is shown. No I/O of its own
 * but printing. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "json/jv.h"

#define TOP_ROWS_MAX 100000u

enum top_order { TOP_BY_CPU, TOP_BY_MEMORY, TOP_BY_NAME, TOP_ORDER_COUNT };

struct top_row {
	char id[64], name[64], status[24], template[64], start[32];
	bool has_usage;
	double cpu_s;   /* since its box was made */
	double percent; /* of one core, since the look before; below 0: not known */
	uint64_t memory, memory_max, disk_max, pids, executions;
};

struct top_look {
	struct top_row *rows; /* owned */
	size_t n, room;
	uint64_t at_ns;  /* when it was taken */
	struct buf pool; /* "python 2 of 2 ready, ...": a line; "": not told */
};

void top_look_done(struct top_look *l);
/* A sandbox of the list, with its usage. -ENOMEM, -E2BIG. */
int top_look_add(struct top_look *l, struct jv item);
int top_look_pool(struct top_look *l, struct jv item);
/* Shares of a core from two looks; before may be empty, and is put into another order. */
void top_look_compare(struct top_look *l, struct top_look *before);
void top_look_sort(struct top_look *l, enum top_order by);

/* The totals, the pools, the table. */
int top_print(const struct top_look *l, FILE *to);
int top_print_json(const struct top_look *l, struct buf *b);
/* The same text as a screen of so many rows and columns, drawn over what is there: lines are cut
 * between characters, those that do not fit are left out. */
int top_draw(const char *text, const char *status, uint16_t rows, uint16_t cols, struct buf *b);
