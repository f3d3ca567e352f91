/* What is said of a process: an execution that nobody waits for, named by its id. */
#pragma once

#include "json/jv_decode.h"

struct exec_info;
struct jw;

#define PROCESS_ID(struct_)                                                                        \
	JV_FIELD("process_id", STRING, struct struct_, process_id, .flags = JV_REQUIRED, .min = 1, \
		 .max = ID_LEN, .help = "what process_start or process_list gave")

#define PROCESS_STATE                                                                             \
	{ .name = "process_id", .type = JV_TYPE_STRING, .flags = JV_REQUIRED },                   \
		{ .name = "status", .type = JV_TYPE_STRING, .flags = JV_REQUIRED },               \
		{ .name = "running", .type = JV_TYPE_BOOL, .flags = JV_REQUIRED },                \
		{ .name = "exit_code", .type = JV_TYPE_I64, .flags = JV_REQUIRED | JV_NULLABLE }, \
		{ .name = "pid", .type = JV_TYPE_U64 },                                           \
	{                                                                                         \
		.name = "reason", .type = JV_TYPE_STRING, .help = "why it did not go well"        \
	}

/* Members as PROCESS_STATE has them. */
void process_write(struct jw *w, const struct exec_info *info);
