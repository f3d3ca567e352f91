/* The loop's inside, shared by this folder's files only. */
#pragma once

#include <uv.h>

#include "loop/loop.h"

struct loop {
	uv_loop_t uv;
	uv_idle_t idle;    /* runs while tasks are posted: the loop does not wait then */
	struct list tasks; /* of struct loop_task, borrowed */
};
