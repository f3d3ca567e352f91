#include "sandbox/capacity.h"

#include <inttypes.h>

#include "sandbox/registry.h"
#include "sandbox/slot.h"

#define LOOK_AGAIN_MS 50 /* reading /proc costs about as much as a claim from the pool */

/* What can be promised, with the setting that says how much. */
static const struct {
	enum quota_kind kind;
	const char *unit, *setting;
} kinds[] = {
	{ QUOTA_MEMORY, " bytes", "commit_memory" },
	{ QUOTA_CPU, "/1000 cores", "commit_cpu" },
	{ QUOTA_PIDS, "", "commit_pids" },
};

static uint64_t waiting_of(const struct sandboxes *all, enum quota_kind kind)
{
	const struct limits *l = &all->settings.limits;
	uint64_t n = slots_waiting_max(all);

	return kind == QUOTA_MEMORY ? n * l->memory_bytes
	       : kind == QUOTA_CPU  ? n * l->cpu_milli
				    : n * l->pids;
}

static int check_promises(struct sandboxes *all, const struct quota *from, const struct quota *to,
			  struct err *err)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		enum quota_kind k = kinds[i].kind;
		uint64_t most = all->settings.commit.v[k];
		uint64_t now = all->capacity.promised.v[k] + waiting_of(all, k);

		if (most == 0 || to->v[k] <= from->v[k])
			continue;
		if (now > most || to->v[k] - from->v[k] > most - now) {
			(void)err_set(err, CAPACITY_ERRNO,
				      "%s of %" PRIu64 "%s does not fit: all sandboxes together "
				      "are promised at most %" PRIu64 " (%s)",
				      quota_name(k), to->v[k], kinds[i].unit, most,
				      kinds[i].setting);
			return -CAPACITY_ERRNO;
		}
	}
	return 0;
}

static const struct machine_use *read_use(struct sandboxes *all)
{
	struct capacity *c = &all->capacity;
	uint64_t now = now_ms(all);

	if (!all->machine_use)
		return NULL;
	if (c->read_at == 0 || now - c->read_at >= LOOK_AGAIN_MS) {
		c->is_known = all->machine_use(all->machine_user, &c->use);
		c->read_at = now ? now : 1;
	}
	return c->is_known ? &c->use : NULL;
}

/* Only for who has no box yet: what a living one takes is not left already. */
static int check_what_is_left(struct sandboxes *all, const struct quota *from,
			      const struct quota *to, struct err *err)
{
	const struct sandbox_settings *s = &all->settings;
	const struct machine_use *use = read_use(all);
	uint64_t memory = to->v[QUOTA_MEMORY], pids = to->v[QUOTA_PIDS];

	if (!use)
		return 0;
	if (from->v[QUOTA_MEMORY] == 0 && memory > 0 &&
	    (use->memory_left < s->reserve_bytes || memory > use->memory_left - s->reserve_bytes))
		(void)err_set(err, CAPACITY_ERRNO,
			      "memory of %" PRIu64 " bytes does not fit: the machine has not that "
			      "much left beside the %" PRIu64 " that it keeps (memory_reserve)",
			      memory, s->reserve_bytes);
	else if (s->processes_max > 0 && from->v[QUOTA_PIDS] == 0 && pids > 0 &&
		 use->processes + pids > s->processes_max)
		(void)err_set(err, CAPACITY_ERRNO,
			      "pids of %" PRIu64 " does not fit: the machine has not that many "
			      "processes left of %u",
			      pids, s->processes_max);
	else
		return 0;
	return -CAPACITY_ERRNO;
}

int capacity_admit(struct sandboxes *all, const struct quota *from, const struct quota *to,
		   struct err *err)
{
	int r = check_promises(all, from, to, err);

	if (r == 0)
		r = check_what_is_left(all, from, to, err);
	if (r < 0)
		metrics_inc(all->metrics, METRIC_SANDBOX_CREATE_FAILURES, LABELS("capacity"));
	return r;
}

int capacity_admit_waiting(struct sandboxes *all, uint32_t more, struct err *err)
{
	const struct limits *l = &all->settings.limits;
	struct quota to = { .v = { [QUOTA_MEMORY] = more * l->memory_bytes,
				   [QUOTA_CPU] = (uint64_t)more * l->cpu_milli,
				   [QUOTA_PIDS] = (uint64_t)more * l->pids } };

	return check_promises(all, &(struct quota){ 0 }, &to, err);
}
