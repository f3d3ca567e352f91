/* A page of sandboxes, each with what its box takes just now. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct api_call;
struct sandbox_info;

/* Answers. The launcher is asked of a bounded number at a time; one without a box has null. */
void sandbox_usage_page(struct api_call *c, const struct sandbox_info *infos, size_t n, bool more);
