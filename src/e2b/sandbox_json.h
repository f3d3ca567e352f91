/* A sandbox as E2B's clients read it. */
#pragma once

#include <stdbool.h>

struct api_call;
struct jw;
struct sandbox;
struct sandbox_info;

/* "Sandbox": what a client needs to reach it, its tokens among that. */
void e2b_write_sandbox(struct api_call *c, struct jw *w, const struct sandbox_info *info);
/* "SandboxDetail", or without its tokens "ListedSandbox". */
void e2b_write_detail(struct api_call *c, struct jw *w, const struct sandbox_info *info,
		      bool is_listed);
/* Cores, at least one: their contract knows no halves. */
unsigned e2b_cpu_count(const struct sandbox_info *info);
/* Whether it is "running" there; else it is "paused". */
bool e2b_is_running(const struct sandbox_info *info);
/* The live sandbox that the path names; NULL after 404. */
struct sandbox *e2b_find(struct api_call *c);
