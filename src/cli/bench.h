/* The benchmark: probes, each timed in turn with a reference, and rows with a verdict. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "provider/launcher.h"
#include "spec/guest.h"

/* bench_stat.c: times of many runs. */
struct samples {
	uint64_t *ns; /* owned */
	size_t len, cap;
};
int samples_add(struct samples *s, uint64_t ns); /* -ENOMEM */
/* The q-th quantile (0..1) in milliseconds, by nearest rank; 0 when empty. Sorts. */
double samples_ms(struct samples *s, double q);
void samples_done(struct samples *s);

enum verdict { VERDICT_NONE, VERDICT_MET, VERDICT_MISSED, VERDICT_ABSENT, VERDICT_FAILED };

struct bench_row {
	char group[16]; /* the experiment */
	char what[72];
	char reference[48];
	const char *unit; /* of p50 and p99 */
	double p50, p99;  /* p99 < 0: there is none */
	double ref_p50, ref_p99;
	size_t n;
	double ratio;  /* to the reference, or the value itself where there is none */
	double demand; /* 0: none */
	bool at_least; /* the ratio must be at least, not at most, the demand */
	enum verdict verdict;
	char note[160];
};

#define BENCH_ROWS_MAX 64
/* Lives in shared memory: experiments that change their process run in a child. */
struct bench {
	uint32_t n;
	bool quick;            /* what takes long is cut */
	uint64_t load_wait_ms; /* longest wait for a quiet machine, for each experiment */
	uint64_t patience_ms;  /* what is left of it */
	uint64_t waited_ms;    /* in all */
	bool raised;           /* everything measured runs before other work */
	char load_before[64], load_after[64];
	size_t len;
	struct bench_row rows[BENCH_ROWS_MAX];
};

/* One thing that can be timed. It prepares and checks outside of the time that it returns. */
struct probe {
	const char *name;
	int (*once)(void *self, uint64_t *ret_ns, struct err *err);
	void *self;
};

/* bench_run.c */
struct bench_row *bench_add(struct bench *b, const char *group, const char *what);
/* Sets verdict from ratio and demand. */
void bench_judge(struct bench_row *row, double demand, bool at_least);
/* Runs subject and reference in turn, n times each, waiting for a quiet machine now and then; fills
 * the row's figures and their ratio. */
int bench_pair(struct bench *b, struct bench_row *row, const struct probe *subject,
	       const struct probe *reference, uint32_t n, struct err *err);
void bench_load(char *dst, size_t size);
void bench_quiet(struct bench *b);

/* What an agent's runner gives bubblewrap: everything unshared, the system read-only. */
#define BENCH_BWRAP                                                                              \
	"bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--ro-bind", "/", "/",   \
		"--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--uid", "1000", "--gid", \
		"1000", "--cap-drop", "ALL", "--clearenv", "--setenv", "PATH", "/usr/bin:/bin",  \
		"--"

/* bench_bare.c: a program without any box. */
struct bare {
	const char *const *argv;
	int expect; /* exit code */
};
int bare_once(void *self, uint64_t *ret_ns, struct err *err);
bool bare_is_there(const char *program, char *ret_path, size_t size); /* in PATH */
extern const struct bare bare_true, bare_shell, bare_python, bare_node, bare_bwrap;

/* bench_box.c: a command in a box. */
struct box_probe {
	struct launcher *launcher; /* borrowed */
	struct guest_client *live; /* borrowed; runs in this box when there is one */
	uint32_t template_id;
	uint32_t claim_flags; /* enum launch_flag */
	bool until_gone;      /* the time includes the box's removal */
	uint32_t pool;        /* boxes that wait; the box and its interpreter must be of them */
	struct guest_exec exec;
	const char *output; /* what it must print */
};
int box_once(void *self, uint64_t *ret_ns, struct err *err);
/* A launcher with one template and, with pool > 0, so many boxes of it waiting. */
int box_launcher(const struct template_spec *t, uint32_t pool, struct launcher **ret,
		 struct err *err);
int box_wait_pool(struct launcher *l, uint32_t template_id, uint32_t ready, struct err *err);
void box_exec_true(struct guest_exec *e);
void box_exec_code(struct guest_exec *e, uint8_t kind, const char *code);

/* The experiments. Each adds its rows; what fails becomes a row that says so. */
int bench_cold(struct bench *b, struct err *err);
int bench_warm(struct bench *b, struct err *err);
int bench_live(struct bench *b, struct err *err);
int bench_python(struct bench *b, struct err *err);
int bench_numpy(struct bench *b, struct err *err);
int bench_node(struct bench *b, struct err *err);
int bench_throughput(struct bench *b, struct err *err);
int bench_idle(struct bench *b, struct err *err);
int bench_crowd(struct bench *b, struct err *err);
int bench_health(struct bench *b, struct err *err);
int bench_proxy(struct bench *b, struct err *err);
int bench_audit(struct bench *b, struct err *err);
int bench_api(struct bench *b, struct err *err);
int bench_mcp(struct bench *b, struct err *err);
int bench_fleet(struct bench *b, struct err *err);
int bench_flow(struct bench *b, struct err *err);
int bench_fork(struct bench *b, struct err *err);
int bench_store(struct bench *b, struct err *err);
int bench_peers(struct bench *b, struct err *err);

/* bench_print.c */
void bench_print_text(const struct bench *b, struct buf *to);
void bench_print_markdown(const struct bench *b, struct buf *to);
void bench_print_json(const struct bench *b, struct buf *to);
