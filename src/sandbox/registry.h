/* The inside of the service, shared by its files and known to no other folder: the registry, one
 * sandbox, and the ways in which something happens later.
 *
 * Rules that all files here rely on:
 * - Callbacks of the service's users come from the loop's next turn (later_post()), or directly
 * from what a box, the store or the provider says; never from inside a call of the user.
 * - Callbacks among ourselves (`then`) may come from inside the call when it is refused at once, so
 *   such a call is the last thing that a function does.
 * - What the store or the provider will call back is a struct flight: when the registry goes first,
 *   the flight is left alone and ends without touching anything. */
#pragma once

#include "base/list.h"
#include "loop/loop.h"
#include "sandbox/capacity.h"
#include "sandbox/kit.h"
#include "sandbox/layers.h"
#include "sandbox/objects.h"
#include "sandbox/pairs.h"
#include "sandbox/sandbox.h"
#include "sandbox/series.h"
#include "sandbox/template.h"
#include "sandbox/usage.h"
#include "sandbox/volume.h"
#include "store/store.h"
#include "telemetry/metrics.h"

struct builds;
struct events;
struct execution;
struct guest_client;
struct map;
struct output_budget;
struct prepare;
struct slots;
struct span;

#define SANDBOX_TEMPLATE_MAX 63
#define SANDBOX_TEXT_MAX 239        /* bytes of a reason */
#define SANDBOX_WAITERS_MAX 1024u   /* callers that share one change of one sandbox */
#define SANDBOX_EXECUTIONS_MAX 128u /* running at once in one sandbox */
/* Ended ones of a sandbox that the store has not taken. Beyond them no other is begun if it refuses
 * them; if it is only slow, those who wait for an end are told of it when the store has it. */
#define SANDBOX_UNRECORDED_MAX 64u
#define SANDBOX_BEHIND_MAX (SANDBOX_UNRECORDED_MAX + SANDBOX_EXECUTIONS_MAX) /* slow or not */
#define SANDBOX_FILE_OPS_MAX 32u    /* at once in one sandbox */
#define SANDBOX_FILE_WAITS_MAX 256u /* operations that wait for others to end */
#define SANDBOX_WATCHES_MAX 24u     /* of those at once, what has no end of its own */
#define PROVIDER_PATIENCE_MS 10000u
#define GUEST_PATIENCE_MS 10000u /* how long recovery waits for boxes to answer */
#define SILENCE_MS 30000u        /* see sandbox_settings */
#define TICK_MS 1000u            /* between two tries of what has failed */
#define SWEEP_MS 60000u          /* between two looks for boxes that nobody knows */

/* ---- later ---- */

/* Runs in the next turn; is_over: the registry is going, only free yourself. */
struct later {
	struct list node;
	void (*run)(struct later *l, bool is_over);
};
void later_post(struct sandboxes *all, struct later *l, void (*run)(struct later *l, bool is_over));

/* Tells a caller in the next turn why not: tell(cb, user, err), which knows what cb is. Without
 * memory from inside the call, for that cannot be helped. */
typedef void (*refusal_fn)(void (*cb)(void), void *user, const struct err *err);
void later_refuse(struct sandboxes *all, refusal_fn tell, void (*cb)(void), void *user,
		  const struct err *err);

struct flight {
	struct list node;
	struct sandboxes *all; /* borrowed; NULL: it is gone */
};
void flight_begin(struct sandboxes *all, struct flight *f);
bool flight_end(struct flight *f); /* false: touch nothing but yourself */

/* An operation of several steps that is under way: it is dropped, without a word, when the registry
 * goes; what ends is taken out of the list first. */
struct pending {
	struct list node;
	void (*drop)(struct pending *p);
};

/* One caller who waits for a sandbox_cb. */
struct answer;
/* NULL without memory: the caller has then been told, at once for once. */
struct answer *answer_create(struct sandboxes *all, sandbox_cb cb, void *user);
/* In the next turn. sb may be NULL; err NULL: success. */
void answer_give(struct answer *a, struct sandbox *sb, const struct err *err);
void answer_busy(struct answer *a, const struct sandbox *sb); /* its state does not allow it */
void answer_drop(struct answer *a);                           /* without a word; takes NULL */
void answer_mark_existing(struct answer *a); /* sandbox_info() will say is_existing to this one */

/* ---- the registry ---- */

struct recovery { /* from sandboxes_provider_ready() until its callback */
	bool is_active;
	void (*done)(void *user, const struct err *err); /* NULL: has been told */
	void *user;
	unsigned attaching; /* provider calls on their way */
	unsigned awaited;   /* boxes that have not said yet what lives in them */
	bool is_listed;     /* the boxes are known */
	uint64_t until_ms;
};

struct sandboxes {
	struct loop *loop;         /* borrowed */
	const struct store *store; /* borrowed */
	struct metrics *metrics;   /* borrowed or NULL */
	struct events *events;     /* borrowed or NULL */
	struct tracer *tracer;     /* borrowed or NULL */
	struct sandbox_settings settings;
	struct sandbox_clock clock;
	struct quota_book *quota; /* owned */
	struct map *kept;         /* owned, by owner: what they keep on the disk */
	bool is_loaded;           /* all that the store has */
	bool is_counting;         /* a round of usage_checkpoint() is under way */
	bool is_counting_alone;   /* in it the launcher is asked no more */
	void (*quota_of)(void *user, const char *owner, struct quota *ret); /* or NULL */
	void *quota_user;
	struct capacity capacity;
	bool (*machine_use)(void *user, struct machine_use *ret); /* or NULL */
	void *machine_user;

	struct provider provider;
	bool has_provider;
	struct build_state building; /* of this launcher */
	bool is_recovered;           /* once: rows and boxes were made to agree */
	void (*on_reach)(void *user, struct sandbox *sb); /* NULL: nobody asks */
	void *reach_user;
	bool needs_list; /* the provider could not say which boxes there are: to be asked again */

	struct list sandboxes; /* owned, all of them; oldest first */
	struct map *by_id;     /* borrowed: live ones, and ended ones that are not recorded */
	struct map *by_name;   /* owner, NUL, name; the same */
	struct map *by_box;    /* those that have a box */
	size_t by_state[SANDBOX_STATE_COUNT];
	size_t n_running;                    /* executions */
	struct output_budget *output_budget; /* owned: of all that is kept of executions here */
	struct list strays; /* owned: executions whose sandbox is gone, not yet recorded */

	struct map *layers;                     /* owned: how many name a layer, by its id */
	struct slots *slots;                    /* owned: the launcher's templates */
	struct later pools_later;               /* self-linked unless pools are to follow */
	struct builds *builds;                  /* owned */
	struct objects *objects[OBJECTS_COUNT]; /* owned */

	struct list pending; /* struct pending */
	struct list flights; /* calls to store and provider that are not back */
	struct list asks;    /* of these, calls to the provider */
	size_t n_asks;
	struct list later;
	struct loop_task turn;

	struct list dirty;            /* sandboxes whose row could not be written */
	struct list dirty_executions; /* ended ones, the same */
	struct loop_timer *tick;      /* runs while something waits to be tried again */
	struct loop_timer *reap;
	struct loop_timer *sweep;
	struct loop_timer *account;
	uint64_t reap_at_ms; /* 0: not set */
	unsigned sweeps;
	bool is_ticking, is_sweeping, is_cutting, is_spool_clean;
	struct recovery recovery;
};

enum wait_kind {
	WAIT_CREATE,
	WAIT_PAUSE,
	WAIT_RESUME,
	WAIT_SUSPEND,
	WAIT_START,
	WAIT_END,
	WAIT_COUNT
};

struct sandbox {
	struct list node;
	struct sandboxes *all; /* borrowed */
	unsigned refs;
	char id[ID_LEN + 1], box_id[ID_LEN + 1]; /* box_id "": none yet */
	char owner[SANDBOX_OWNER_MAX + 1], name[SANDBOX_NAME_MAX + 1];
	char key_id[ID_LEN + 1];                 /* "": none */
	char template[SANDBOX_TEMPLATE_MAX + 1]; /* as it was asked for: the kit has what it was */
	struct kit kit;                          /* owned; its layers are held */
	struct prepare *prepare;                 /* owned: what its start waits for; NULL */
	char start_id[ID_LEN + 1];               /* of what was started, until it is recorded */
	uint32_t template_id;                    /* while it is being created */
	uint8_t profile;                         /* enum profile_id */
	uint32_t strict;                         /* of a custom one: enum template_flag */
	enum sandbox_state state;
	char reason[SANDBOX_TEXT_MAX + 1];
	struct limits limits;
	struct quota charged;       /* what it counts for its owner */
	struct pairs env, metadata; /* owned */
	struct layers layers;       /* below what it writes; held */
	struct layers stopped;      /* SUSPENDING: what it will be made of; held */
	bool was_paused;            /* SUSPENDING: before */
	struct volume_mounts volumes;
	struct lifecycle life;
	char *note;  /* owned; NULL: none */
	char *grant; /* the same */

	bool is_warm, is_existing;
	bool is_internal;   /* of a job of ours: nobody goes on with it after a restart */
	bool is_registered; /* in by_id: holds a reference */
	bool is_recorded;   /* ended, and the store knows */
	bool is_died;       /* its box ended while it was being created */
	bool is_destroying; /* the provider was asked */
	bool is_listed;     /* by the provider, in the list that is looked at */
	bool needs_compare; /* with that list */
	bool needs_link;    /* recovery is to attach it */
	bool is_attaching;
	bool is_frozen;      /* as listed */
	bool is_found_again; /* by recovery: executions may be unknown until it is linked */
	bool is_awaited;     /* recovery waits for what lives in it */
	bool waits_for_link; /* it is resumed, and ends being so when the box has spoken */
	uint64_t began_ns, step_ns[STEP_COUNT], claim_us, store_us, total_us;
	struct span *span, *write_span; /* of its creation: tracing.h */

	int64_t created_ms, expires_ms, ended_ms; /* wall clock */
	uint64_t timeout_ms, idle_ms, remaining_ms;
	uint64_t expires_at, used_at; /* monotonic, ms; expires_at 0: never, or it stands still */
	uint64_t lapse_after;         /* its end of time is not acted upon before */
	uint64_t warned_of;           /* the expires_at that sandbox.expiring has told of */

	struct list waits[WAIT_COUNT]; /* owned struct answer */
	size_t n_waits[WAIT_COUNT];
	struct list dirty; /* in sandboxes.dirty, or self-linked */
	uint64_t write_seq;
	/* Positive errno of the last failed write of it or of its executions; 0: one of those has
	 * been written since. */
	int store_error;

	struct guest_client *guest; /* owned; NULL: no connection */
	struct loop_io *io;         /* owned */
	bool is_guest_ready;
	uint32_t live_left;   /* executions that the box is still to tell of */
	uint64_t lost_at_ms;  /* when the connection went; 0: it did not */
	bool has_cut;         /* executions lost their connection in this very dispatch */
	bool waits_for_flush; /* input is in the queue of the box's socket */
	unsigned relinks;
	bool is_foreign;    /* its box speaks another version */
	uint32_t oom_kills; /* as last seen */
	struct usage usage;
	struct series series;

	struct list executions; /* owned reference each: running, or not yet recorded */
	size_t n_running, n_unrecorded, n_readers;
	struct list file_ops;   /* owned: under way */
	struct list file_waits; /* owned: not begun, the oldest first */
	struct later file_turn; /* self-linked unless some of those are to begin */
	size_t n_file_ops, n_file_waits, n_file_watches;
	uint64_t heard_ms, pinged_ms; /* when its box last said something, and was last asked to */
	struct list watchers;         /* owned */
	size_t n_watchers;
	size_t n_watches;      /* of those, what goes on: no use of the sandbox by itself */
	struct list ports;     /* owned struct exposure */
	struct list port_uses; /* owned */
	size_t n_ports, n_ports_coming, n_port_uses, n_port_busy;
	struct list contexts; /* owned */
	size_t n_contexts;
	size_t n_quiet; /* contexts that wait: their execution and its reader are no use of it */
};

static inline uint64_t now_ms(const struct sandboxes *all)
{
	return all->clock.now_ms(all->clock.user);
}
static inline int64_t wall_ms(const struct sandboxes *all)
{
	return all->clock.wall_ms(all->clock.user);
}

/* It may be that it can be spoken to now. */
void sandbox_reach(struct sandbox *sb);
/* An empty one, in no table; CREATING. One reference, the caller's. */
struct sandbox *sandbox_alloc(struct sandboxes *all);
struct sandbox *sandbox_ref(struct sandbox *sb);
void sandbox_unref(struct sandbox *sb);
/* Into by_id and by_name; takes the caller's reference. -ENOMEM. */
int sandbox_register(struct sandbox *sb);
void sandbox_unregister(struct sandbox *sb); /* drops that reference: sb may be gone afterwards */
int sandbox_set_box(struct sandbox *sb, const char *box_id); /* and into by_box */
void sandbox_drop_box(struct sandbox *sb);
struct sandbox *sandboxes_by_name(struct sandboxes *all, const char *owner, const char *name);
void sandbox_set_state(struct sandbox *sb, enum sandbox_state to);
/* Recovery only: what was found to be so, whatever the row said. */
void sandbox_adopt_state(struct sandbox *sb, enum sandbox_state s);
void sandbox_set_reason(struct sandbox *sb, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Why nothing can be done in it now: EBUSY, EPIPE. 0 while it can. */
int sandbox_check_usable(const struct sandbox *sb, struct err *err);

/* Adds the caller; -EAGAIN (answered) when there are too many. */
int sandbox_wait(struct sandbox *sb, enum wait_kind kind, struct answer *a);
void sandbox_tell(struct sandbox *sb, enum wait_kind kind, const struct err *err);
void sandbox_drop_waits(struct sandbox *sb); /* without a word */

/* ---- recording (record.c) ---- */

/* Writes the row as of now, with this state. A failure is tried again every second until it
 * succeeds, but for that of one being created. then may be NULL. */
void record_put(struct sandbox *sb, enum sandbox_state state,
		void (*then)(struct sandbox *sb, int r));
void record_answer(struct sandbox *sb, struct answer *a); /* the same, and tells this caller */
/* Tries again what has failed; false: nothing is left to be tried. */
bool record_retry(struct sandboxes *all);
struct err record_error(int r); /* what the caller is told of a failed write */

/* ---- life ---- */

void stop_begin(struct sandbox *sb, const char *reason); /* it is neither creating nor ending */
void stop_destroy(struct sandbox *sb);                   /* STOPPING: (again) */
/* Its box is gone, or about to: ends FAILED. The reason is in sb->reason. */
void stop_failed(struct sandbox *sb);
/* The same, and the box is destroyed. */
void stop_kill(struct sandbox *sb);
/* Its box is gone by itself, whatever the sandbox was about to be. */
void stop_died(struct sandbox *sb);
/* Its box is gone as asked for. */
void stop_gone(struct sandbox *sb);
/* Ended, recorded and without executions: leaves the registry. sb may be gone afterwards. */
void stop_forget(struct sandbox *sb);
/* Destroys a box that no sandbox has. */
void stop_stranger(struct sandboxes *all, const char *box_id);

/* Those who wait for another state will not see it: err says why. */
void stop_tell_waiting(struct sandbox *sb, const struct err *err);
/* What it was made of is needed no more. */
void sandbox_drop_layers(struct sandbox *sb);

/* Asks for a box for it, of the slot in template_id. */
void create_claim(struct sandbox *sb, uint32_t flags, provider_cb then, void *user);
int create_take_box(struct sandbox *sb, struct launcher_box *box, struct err *err);
/* Whether what it wants to have mounted can be had now: EBUSY. */
int create_check_disk(struct sandbox *sb, struct err *err);

void ttl_begin(struct sandbox *sb); /* the time to live begins anew, from timeout_ms */
void ttl_pause(struct sandbox *sb);
void ttl_resume(struct sandbox *sb);

/* ---- timers (reaper.c) ---- */

void reaper_note(struct sandbox *sb); /* what may end it has changed */
void reaper_run(struct sandboxes *all);
void reaper_cut(struct sandboxes *all); /* forgets what ended long ago */
void tick_need(struct sandboxes *all);
void tick_run(struct sandboxes *all);
void sweep_run(struct sandboxes *all);

/* ---- the connection to a box (link.c) ---- */

int link_open(struct sandbox *sb, int fd, bool is_new, struct err *err); /* takes fd */
/* Executions stay as they are; operations on files fail. */
void link_close(struct sandbox *sb);
void link_kick(struct sandbox *sb); /* something was sent: watches for room when it has to wait */
/* One whose connection was lost: finds it again or gives it up. False: it is settled. */
bool link_retry(struct sandbox *sb);

/* ---- recovery ---- */

int recover_load(struct sandboxes *all, struct err *err);
void recover_attach(struct sandbox *sb); /* a new connection */
/* Makes the registry agree with a list of boxes. is_ready: the provider has just come. */
void recover_compare(struct sandboxes *all, const struct provider_reply *r, bool is_ready);
void recover_link_ready(struct sandbox *sb);
/* An attached or awaited one is gone or has answered. */
void recover_settle(struct sandbox *sb);
void recover_check(struct sandboxes *all); /* over? for the tick: also when the time is over */
bool recover_retry(struct sandboxes *all); /* goes on with what is left; false: nothing is */
bool recover_is_waiting(const struct sandboxes *all);
void resume_linked(struct sandbox *sb); /* waits_for_link is over */

/* ---- contexts ---- */

void contexts_load(struct sandboxes *all);                     /* behind the executions */
int contexts_load_env(struct sandboxes *all, struct err *err); /* behind those; blocks */
void contexts_forget(struct sandbox *sb); /* it has ended: nobody begins them anew */
void contexts_drop(struct sandbox *sb);   /* without a word */
void contexts_pause(struct sandbox *sb);  /* their clocks stand still */
void contexts_resume(struct sandbox *sb);

/* ---- files ---- */

void files_fail(struct sandbox *sb, const char *why);
/* Operations whose box has been silent for too long fail. Are there any under way? */
bool files_expire(struct sandboxes *all);
void files_drop(struct sandbox *sb); /* without a word */
void watchers_drop(struct sandbox *sb);

/* ---- ports ---- */

int ports_load(struct sandboxes *all, struct err *err); /* what is exposed; blocks */
void ports_forget(struct sandbox *sb);                  /* it has ended: nothing is exposed */
void ports_end(struct sandbox *sb, uint16_t port);      /* all connections to it; 0: any port */
void ports_drop(struct sandbox *sb);                    /* without a word */
