#include "sandbox/row.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "sandbox/profile.h"
#include "json/jv.h"
#include "json/jw.h"

/* sandbox_row.flags */
#define ROW_WARM (1u << 0)
#define ROW_STRICT_CALLS (1u << 1)
#define ROW_STRICT_PROC (1u << 2)
#define ROW_INTERNAL (1u << 3)
#define SPEC_JSON_MAX (256u << 10)

void row_texts_done(struct row_texts *t)
{
	buf_done(&t->spec);
	buf_done(&t->env);
	buf_done(&t->metadata);
}

void row_write_limits(const struct limits *l, struct jw *w)
{
	jw_object_begin(w);
	jw_uint_field(w, "memory", l->memory_bytes);
	jw_uint_field(w, "disk", l->disk_bytes);
	jw_uint_field(w, "inodes", l->inodes);
	jw_uint_field(w, "cpu", l->cpu_milli);
	jw_uint_field(w, "cpuMask", l->cpu_mask);
	jw_uint_field(w, "pids", l->pids);
	jw_uint_field(w, "nofile", l->nofile);
	jw_object_end(w);
}

static int write_spec(const struct sandbox *sb, const struct layers *layers, struct buf *b)
{
	struct jw w = jw_begin(b);

	jw_object_begin(&w);
	kit_write(&sb->kit, &w);
	jw_key(&w, "limits");
	row_write_limits(&sb->limits, &w);
	if (layers->n > 0) {
		jw_key(&w, "layers");
		layers_write(layers, &w);
	}
	if (sb->volumes.n > 0) {
		jw_key(&w, "volumes");
		volumes_write(&sb->volumes, &w);
	}
	lifecycle_write(&sb->life, &w);
	if (sb->note)
		jw_str_field(&w, "note", sb->note);
	if (sb->grant)
		jw_str_field(&w, "tools", sb->grant);
	jw_object_end(&w);
	return jw_end(&w);
}

static int write_pairs(const struct pairs *p, struct buf *b)
{
	struct jw w = jw_begin(b);

	pairs_write(p->items, p->len, &w);
	return jw_end(&w);
}

static uint32_t row_flags(const struct sandbox *sb)
{
	return (sb->is_warm ? ROW_WARM : 0) | (sb->is_internal ? ROW_INTERNAL : 0) |
	       (sb->strict & TEMPLATE_STRICT_CALLS ? ROW_STRICT_CALLS : 0) |
	       (sb->strict & TEMPLATE_STRICT_PROC ? ROW_STRICT_PROC : 0);
}

/* On its way between having a box and having none, it is what it was before: a crash ends the way.
 */
static enum sandbox_state settled(enum sandbox_state s)
{
	if (s == SANDBOX_SUSPENDING)
		return SANDBOX_RUNNING;
	return s == SANDBOX_STARTING ? SANDBOX_SUSPENDED : s;
}

int row_fill(const struct sandbox *sb, enum sandbox_state as, struct sandbox_row *ret,
	     struct row_texts *ret_texts)
{
	enum sandbox_state state = settled(as);
	bool is_paused = state_stands_still(state), is_stopped = state == SANDBOX_SUSPENDED;
	bool expires = !is_paused && state_is_live(state);
	int r;

	*ret_texts = (struct row_texts){ 0 };
	r = write_spec(sb, is_stopped && sb->stopped.n > 0 ? &sb->stopped : &sb->layers,
		       &ret_texts->spec);
	if (r == 0)
		r = write_pairs(&sb->env, &ret_texts->env);
	if (r == 0)
		r = write_pairs(&sb->metadata, &ret_texts->metadata);
	if (r < 0)
		return r;
	*ret = (struct sandbox_row){
		.id = sb->id,
		.owner = sb->owner,
		.key_id = sb->key_id,
		.name = sb->name,
		.box_id = is_stopped ? "" : sb->box_id,
		.template = sb->template,
		.reason = sb->reason,
		.state = (uint8_t)state,
		.level = sb->profile,
		.is_live = state_is_live(state),
		.is_kept = is_stopped, /* its files are on disk: it must be known what they are */
		.flags = row_flags(sb),
		.spec = buf_str(&ret_texts->spec),
		.env = buf_str(&ret_texts->env),
		.metadata = buf_str(&ret_texts->metadata),
		.created_ms = sb->created_ms,
		.updated_ms = wall_ms(sb->all),
		.ended_ms = sb->ended_ms,
		.expires_ms = expires ? sb->expires_ms : 0,
		.remaining_ms = is_paused ? (int64_t)sb->remaining_ms : 0,
		.timeout_ms = (int64_t)sb->timeout_ms,
		.idle_ms = (int64_t)sb->idle_ms,
	};
	return 0;
}

static void read_u32(struct jv object, const char *key, uint32_t *ret)
{
	uint64_t v;

	if (jv_u64(jv_get(object, key), &v) == 0 && v <= UINT32_MAX)
		*ret = (uint32_t)v;
}

void row_read_limits(struct jv l, struct limits *ret)
{
	(void)jv_u64(jv_get(l, "memory"), &ret->memory_bytes);
	(void)jv_u64(jv_get(l, "disk"), &ret->disk_bytes);
	(void)jv_u64(jv_get(l, "cpuMask"), &ret->cpu_mask);
	read_u32(l, "inodes", &ret->inodes);
	read_u32(l, "cpu", &ret->cpu_milli);
	read_u32(l, "pids", &ret->pids);
	read_u32(l, "nofile", &ret->nofile);
}

/* *ret is NULL where there is none. */
static int read_text(struct jv object, const char *key, char **ret)
{
	const char *text = jv_text(jv_get(object, key));

	*ret = text ? strdup(text) : NULL;
	return text && !*ret ? -ENOMEM : 0;
}

static int read_spec(const char *json, struct row_info *ret)
{
	struct jv_doc *doc = NULL;
	int r;

	if (json[0] == '\0')
		return 0;
	r = jv_parse(json, strlen(json), SPEC_JSON_MAX, &doc, NULL);
	if (r < 0)
		return r == -ENOMEM ? r : -EINVAL;
	row_read_limits(jv_get(jv_root(doc), "limits"), &ret->info.limits);
	/* Older rows have none: then the template is a built-in one. */
	r = jv_kind(jv_get(jv_root(doc), "runtime")) == JV_ABSENT
		    ? 0
		    : kit_read(jv_root(doc), &ret->kit);
	if (r == 0)
		r = layers_read(jv_get(jv_root(doc), "layers"), &ret->layers);
	if (r == 0)
		r = volumes_read(jv_get(jv_root(doc), "volumes"), &ret->volumes);
	lifecycle_read(jv_root(doc), &ret->info.life);
	if (r == 0)
		r = read_text(jv_root(doc), "note", &ret->note);
	if (r == 0)
		r = read_text(jv_root(doc), "tools", &ret->grant);
	(void)jv_free(doc);
	return r;
}

int row_read(const struct sandbox_row *row, struct row_info *ret)
{
	struct sandbox_info *i = &ret->info;
	int r;

	*ret = (struct row_info){ 0 };
	r = row->state < SANDBOX_STATE_COUNT ? read_spec(row->spec, ret) : -EUCLEAN;
	if (r == 0)
		r = pairs_parse(row->env, &ret->env);
	if (r == 0)
		r = pairs_parse(row->metadata, &ret->metadata);
	if (r < 0) {
		row_info_done(ret);
		if (r == -ENOMEM)
			return r;
		log_warn("sandbox", "the record of sandbox %s is damaged", row->id);
		return -EUCLEAN;
	}
	i->id = row->id;
	i->owner = row->owner;
	i->key_id = row->key_id;
	i->name = row->name;
	i->template = row->template;
	if (ret->kit.runtime[0] == '\0')
		(void)str_copy(ret->kit.runtime, sizeof(ret->kit.runtime), row->template);
	i->runtime = ret->kit.runtime;
	i->reason = row->reason;
	i->box_id = row->box_id;
	i->state = row->state;
	i->warm = (row->flags & ROW_WARM) != 0;
	i->is_internal = (row->flags & ROW_INTERNAL) != 0;
	i->profile = row->level < PROFILE_ID_COUNT ? row->level : PROFILE_ID_STANDARD;
	i->strict = (row->flags & ROW_STRICT_CALLS ? TEMPLATE_STRICT_CALLS : 0) |
		    (row->flags & ROW_STRICT_PROC ? TEMPLATE_STRICT_PROC : 0);
	i->env = ret->env.items;
	i->n_env = ret->env.len;
	i->metadata = ret->metadata.items;
	i->n_metadata = ret->metadata.len;
	i->volumes = &ret->volumes;
	i->note = ret->note ? ret->note : "";
	i->grant = ret->grant ? ret->grant : "";
	i->created_ms = row->created_ms;
	i->expires_ms = row->expires_ms;
	i->ended_ms = row->ended_ms;
	i->timeout_ms = (uint64_t)row->timeout_ms;
	i->idle_ms = (uint64_t)row->idle_ms;
	i->remaining_ms = (uint64_t)row->remaining_ms;
	return 0;
}

void row_info_done(struct row_info *i)
{
	pairs_done(&i->env);
	pairs_done(&i->metadata);
	kit_done(&i->kit);
	free(i->note);
	free(i->grant);
}
