/* Any frame as a message between daemon and launcher, and the checks that stand behind it: what
 * spec_fill_limits() lets through is complete, within bounds and stays as it is. */
#include <string.h>

#include "base/err.h"
#include "fuzz.h"
#include "spec/launch.h"

static uint8_t again[WIRE_FRAME_MAX];

static void check_limits(const struct limits *asked)
{
	struct limits l = *asked, twice;
	struct err err = { 0 };

	if (spec_fill_limits(&l, NULL, &err) < 0) {
		MUST(err.code > 0 && err.text[0] && memcmp(&l, asked, sizeof(l)) == 0);
		return;
	}
	MUST(l.memory_bytes >= LIMIT_MEMORY_MIN && l.memory_bytes <= LIMIT_MEMORY_MAX);
	MUST(l.disk_bytes >= LIMIT_DISK_MIN && l.disk_bytes <= l.memory_bytes);
	MUST(l.inodes && l.cpu_milli && l.pids && l.nofile);
	twice = l;
	MUST(spec_fill_limits(&twice, asked, NULL) == 0 && memcmp(&twice, &l, sizeof(l)) == 0);
}

static long again_template(struct rd *r)
{
	struct template_spec t;
	struct err err = { 0 };
	int n = launch_get_template(r, &t);

	if (n < 0)
		return n;
	check_limits(&t.limits);
	MUST((spec_check_template(&t, &err) < 0) == (err.code > 0));
	MUST(t.id >= 1 && t.id <= TEMPLATE_MAX);
	return launch_put_template(again, sizeof(again), 1, &t);
}

static long again_pool(struct rd *r)
{
	struct pool_spec p;
	int n = launch_get_pool(r, &p);

	return n < 0 ? n : launch_put_pool(again, sizeof(again), 1, &p);
}

static long again_claim(struct rd *r)
{
	struct launch_spec s;
	int n = launch_get_claim(r, &s);

	if (n < 0)
		return n;
	check_limits(&s.limits);
	MUST(spec_check_launch(&s, NULL) == 0);
	return launch_put_claim(again, sizeof(again), 1, &s);
}

static long again_box(struct rd *r)
{
	struct launch_box b;
	int n = launch_get_box(r, &b);

	if (n < 0)
		return n;
	MUST(id_is_valid(b.id));
	return launch_put_box(again, sizeof(again), 1, &b);
}

static long again_box_info(struct rd *r)
{
	struct launch_box_info b;
	int n = launch_get_box_info(r, &b);

	if (n < 0)
		return n;
	MUST(id_is_valid(b.id) && spec_tag_is_valid(b.tag));
	return launch_put_box_info(again, sizeof(again), 1, &b);
}

static long again_info(struct rd *r)
{
	struct launch_info i;
	int n = launch_get_info(r, &i);

	return n < 0 ? n : launch_put_info(again, sizeof(again), 1, &i);
}

static long again_pool_state(struct rd *r)
{
	struct pool_state s;
	int n = launch_get_pool_state(r, &s);

	return n < 0 ? n : launch_put_pool_state(again, sizeof(again), 1, &s);
}

static long again_builds(struct rd *r)
{
	struct build_state s;
	int n = launch_get_builds(r, &s);

	return n < 0 ? n : launch_put_builds(again, sizeof(again), 1, &s);
}

static long again_gone(struct rd *r)
{
	struct box_usage u;
	struct wr w;
	const char *id = rd_str(r);
	int n;

	launch_rd_usage(r, &u);
	n = rd_end(r);
	if (n < 0)
		return n;
	wire_begin(&w, again, sizeof(again), L_GONE, 1);
	wr_str(&w, id);
	launch_wr_usage(&w, &u);
	return wire_finish(&w);
}

static long again_snapshot(struct rd *r)
{
	struct snapshot_spec s;
	int n = launch_get_snapshot(r, &s);

	return n < 0 ? n : launch_put_snapshot(again, sizeof(again), 1, &s);
}

static long again_layer(struct rd *r)
{
	struct layer_info l;
	int n = launch_get_layer(r, &l);

	if (n < 0)
		return n;
	MUST(id_is_valid(l.id));
	return launch_put_layer(again, sizeof(again), 1, &l);
}

static long again_volume(struct rd *r)
{
	struct volume_spec v;
	int n = launch_get_volume(r, &v);

	return n < 0 ? n : launch_put_volume(again, sizeof(again), 1, &v);
}

static long again_volume_info(struct rd *r)
{
	struct volume_info v;
	int n = launch_get_volume_info(r, &v);

	return n < 0 ? n : launch_put_volume_info(again, sizeof(again), 1, &v);
}

static const struct {
	uint16_t type;
	long (*again)(struct rd *r);
} rows[] = {
	{ L_TEMPLATE, again_template },  { L_POOL, again_pool },
	{ L_CLAIM, again_claim },        { L_BOX, again_box },
	{ L_INFO, again_info },          { L_GONE, again_gone },
	{ L_POOL_IS, again_pool_state }, { L_BOX_IS, again_box_info },
	{ L_SNAPSHOT, again_snapshot },  { L_LAYER, again_layer },
	{ L_VOLUME_MAKE, again_volume }, { L_VOLUME_IS, again_volume_info },
	{ L_BUILDS, again_builds },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wire_head head;
	struct rd r;

	if (wire_open(data, size, &head, &r) < 0)
		return 0;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rd copy = r;
		long n;

		if (rows[i].type != head.type)
			continue;
		n = rows[i].again(&copy);
		if (n < 0)
			continue;
		MUST((size_t)n == size);
		MUST(memcmp(again + sizeof(head), data + sizeof(head), size - sizeof(head)) == 0);
	}
	return 0;
}
