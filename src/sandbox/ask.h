/* The provider, asked with patience: while it is lost a request waits for it, and one that was on
 * its way when it went is asked once more. then() comes exactly once; from inside the call when it
 * is refused at once; never when the registry is gone. */
#pragma once

#include "base/err.h"
#include "provider/provider.h"

struct sandboxes;

enum ask_kind {
	ASK_CLAIM,
	ASK_ATTACH,
	ASK_LIST,
	ASK_DESTROY,
	ASK_FREEZE,
	ASK_THAW,
	ASK_USAGE,
	ASK_POOL,
	ASK_DEFINE,
	ASK_UNDEFINE,
	ASK_POOL_SET,
	ASK_SNAPSHOT,
	ASK_LAYER_DROP,
	ASK_LAYERS,
	ASK_VOLUME_MAKE,
	ASK_VOLUME_DROP,
	ASK_VOLUMES,
	ASK_KIND_COUNT
};

struct ask {
	enum ask_kind kind;
	const char *box_id;  /* copied; of those that are about a box, but for ASK_CLAIM */
	const char *disk_id; /* copied; of the layer or volume */
	const struct launch_spec *spec;       /* copied; ASK_CLAIM */
	const struct template_spec *template; /* copied; ASK_DEFINE */
	struct pool_spec pool;                /* ASK_POOL_SET */
	uint32_t template_id;                 /* ASK_POOL, ASK_UNDEFINE */
	uint32_t flags;                       /* ASK_SNAPSHOT */
	uint64_t bytes;                       /* ASK_VOLUME_MAKE */
	bool is_impatient;                    /* fails with EPIPE at once */
	/* Frees user when the registry is gone; NULL: that needs nothing. */
	void (*drop)(void *user);
};

/* What a caller is told of a reply that failed. He was checked before the provider was asked, so it
 * is the machine's trouble, EREMOTEIO with the provider's text; but for what the provider says of
 * his wish (ERANGE, EDQUOT, EBUSY, EOPNOTSUPP), and what is over soon (EPIPE, EAGAIN, ENOMEM). */
struct err ask_error(const struct provider_reply *r);
void ask_provider(struct sandboxes *all, const struct ask *a, provider_cb then, void *user);
/* The provider is there: those that wait are asked. */
void ask_flush(struct sandboxes *all);
void ask_drop(struct sandboxes *all); /* the registry goes: those that wait are forgotten */
/* Fails those that have waited too long; true while others wait. */
bool ask_expire(struct sandboxes *all);
