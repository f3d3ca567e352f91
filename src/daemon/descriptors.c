#include "daemon/descriptors.h"

#include <sys/resource.h>

#include "base/log.h"

#define WANTED 65536u

void descriptors_raise(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	files.rlim_cur = files.rlim_max < WANTED ? files.rlim_max : WANTED;
	(void)setrlimit(RLIMIT_NOFILE, &files);
}

uint32_t descriptors_for_clients(uint32_t wanted)
{
	struct rlimit files;
	uint32_t most;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur / 2 >= wanted)
		return wanted;
	most = files.rlim_cur >= 2 ? (uint32_t)(files.rlim_cur / 2) : 1;
	log_warn("daemon", "max_connections is %u, but the limit on open files leaves %u", wanted,
		 most);
	return most;
}
