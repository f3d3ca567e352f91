#include "config/derive.h"

#include <stdint.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/machine.h"
#include "base/str.h"
#include "config/config.h"
#include "spec/quota.h"

#define QUOTA_EXECUTIONS_AUTO 1000000u
#define QUOTA_MEMORY_LEAST (1ull << 30)
#define QUOTA_DISK_LEAST (4ull << 30)
#define QUOTA_CPU_TIMES 16u
#define COMMIT_TIMES 4u
#define BYTES_PER_INODE 4096u

static uint64_t least_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t most_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void derive_u64(uint64_t *v, uint64_t derived)
{
	if (*v == SETTING_AUTO_U64)
		*v = derived;
}

static void derive_u32(uint32_t *v, uint64_t derived)
{
	if (*v == SETTING_AUTO_U32)
		*v = (uint32_t)least_of(derived, UINT32_MAX - 1);
}

/* Bytes of the file system that a directory is or will be on. */
static uint64_t disk_size(const char *dir)
{
	char path[SETTING_TEXT_MAX + 1];
	struct statvfs fs;
	char *slash;

	if (str_copy(path, sizeof(path), dir) < 0)
		return 0;
	while (statvfs(path, &fs) < 0) {
		slash = strrchr(path, '/');
		if (!slash || slash == path)
			return statvfs(slash ? "/" : ".", &fs) < 0 ? 0 : fs.f_blocks * fs.f_frsize;
		*slash = '\0';
	}
	return (uint64_t)fs.f_blocks * fs.f_frsize;
}

static void derive_max(struct config *c, const struct machine *m)
{
	struct limits whole;

	spec_limits_of_machine(m, geteuid() != 0, &whole);
	derive_u64(&c->limits_max.memory_bytes, whole.memory_bytes / 4 * 3);
	derive_u64(&c->limits_max.disk_bytes, c->limits_max.memory_bytes);
	derive_u32(&c->limits_max.cpu_milli, whole.cpu_milli);
	derive_u32(&c->limits_max.pids, most_of(m->processes / 4, LIMIT_PIDS_MIN));
	derive_u32(&c->limits_max.inodes,
		   most_of(c->limits_max.memory_bytes / BYTES_PER_INODE, LIMIT_INODES_DEFAULT));
	derive_u32(&c->limits_max.nofile, whole.nofile);
	spec_clamp_limits(&c->limits_max, &whole);
}

/* Room for as many sandboxes of the default size as there may be and for boxes that wait, and no
 * less than a few times the machine, because they idle mostly. Processor time costs others no more
 * than their turn: each may have all of it. */
static void derive_commit(struct config *c, const struct machine *m)
{
	uint64_t n = (uint64_t)c->max_sandboxes * 5 / 4 + c->pool_min;

	derive_u64(&c->commit_memory_bytes,
		   most_of(n * c->limits.memory_bytes, COMMIT_TIMES * m->memory_bytes));
	derive_u32(&c->commit_cpu_milli, n * m->cpus * 1000);
	derive_u32(&c->commit_pids,
		   most_of(n * c->limits.pids, (uint64_t)COMMIT_TIMES * m->processes));
}

static void note_auto(struct config *c)
{
	const struct {
		enum quota_kind kind;
		bool is_auto;
	} rows[] = {
		{ QUOTA_SANDBOXES, c->quota_sandboxes == SETTING_AUTO_U32 },
		{ QUOTA_CPU, c->quota_cpu_milli == SETTING_AUTO_U32 },
		{ QUOTA_MEMORY, c->quota_memory_bytes == SETTING_AUTO_U64 },
		{ QUOTA_DISK, c->quota_disk_bytes == SETTING_AUTO_U64 },
		{ QUOTA_EXECUTIONS, c->quota_executions == SETTING_AUTO_U32 },
		{ QUOTA_PIDS, c->quota_pids == SETTING_AUTO_U32 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].is_auto)
			c->quota_auto |= 1u << rows[i].kind;
}

static void derive_quota(struct config *c, const struct machine *m)
{
	note_auto(c);
	derive_u32(&c->quota_sandboxes, most_of(c->max_sandboxes / 4, 1));
	derive_u32(&c->quota_cpu_milli, (uint64_t)m->cpus * 1000 * QUOTA_CPU_TIMES);
	derive_u64(&c->quota_memory_bytes, most_of(m->memory_bytes / 2, QUOTA_MEMORY_LEAST));
	derive_u64(&c->quota_disk_bytes, most_of(disk_size(c->state_dir) / 4, QUOTA_DISK_LEAST));
	derive_u32(&c->quota_executions, QUOTA_EXECUTIONS_AUTO);
	derive_u32(&c->quota_pids, m->processes / 2);
}

uint64_t derive_memory(const struct config *c, const struct machine *m)
{
	uint64_t most = least_of(c->limits_max.memory_bytes,
				 most_of(m->memory_bytes / 4, LIMIT_MEMORY_MIN));

	return least_of(c->limits.memory_bytes, most);
}

void derive_from_machine(struct config *c, const struct machine *m)
{
	derive_max(c, m);
	derive_u64(&c->reserve_bytes, machine_reserve(m));
	c->processes_max = m->processes / 8 * 7;
	derive_commit(c, m);
	derive_quota(c, m);
	derive_u32(&c->max_connections_user, most_of(c->max_connections / 4, 1));
}
