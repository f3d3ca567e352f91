#include "spec/quota.h"

static const char *const names[QUOTA_COUNT] = {
	[QUOTA_SANDBOXES] = "sandboxes",   [QUOTA_CPU] = "cpu",
	[QUOTA_MEMORY] = "memory",         [QUOTA_DISK] = "disk",
	[QUOTA_EXECUTIONS] = "executions",
};

const char *quota_name(enum quota_kind kind)
{
	return names[kind];
}
