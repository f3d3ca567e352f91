#include "sandbox/ports.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/encode.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/str.h"
#include "provider/guest_client.h"
#include "sandbox/announce.h"
#include "sandbox/registry.h"
#include "json/jv_decode.h"
#include "json/jw.h"

#define KIND "port" /* of the store's objects */
#define OBJECT_ID_SIZE (ID_LEN + 8)
#define TEXT_MAX 1024u

struct exposure {
	struct list node; /* in sandbox.ports, by number */
	struct port_info info;
};

/* ---- what is exposed ---- */

static struct exposure *find(const struct sandbox *sb, uint16_t port)
{
	LIST_FOREACH (&sb->ports, x, struct exposure, node)
		if (x->info.port == port)
			return x;
	return NULL;
}

const struct port_info *port_find(const struct sandbox *sb, uint16_t port)
{
	struct exposure *x = find(sb, port);

	return x ? &x->info : NULL;
}

size_t port_list(const struct sandbox *sb, const struct port_info **ret, size_t cap)
{
	size_t n = 0;

	LIST_FOREACH (&sb->ports, x, struct exposure, node) {
		if (n < cap)
			ret[n] = &x->info;
		n++;
	}
	return n;
}

/* NULL without memory. */
static struct exposure *add(struct sandbox *sb, uint16_t port)
{
	struct exposure *x = calloc(1, sizeof(*x));
	struct list *before = &sb->ports;

	if (!x)
		return NULL;
	x->info.port = port;
	LIST_FOREACH (&sb->ports, other, struct exposure, node)
		if (other->info.port > port && before == &sb->ports)
			before = &other->node;
	list_push_back(before, &x->node);
	sb->n_ports++;
	return x;
}

static void drop(struct sandbox *sb, struct exposure *x)
{
	list_remove(&x->node);
	sb->n_ports--;
	free(x);
}

static void object_id(const char *sandbox_id, uint16_t port, char ret[OBJECT_ID_SIZE])
{
	(void)str_format(ret, OBJECT_ID_SIZE, "%s-%u", sandbox_id, port);
}

static int write_text(const struct port_info *p, struct buf *b)
{
	struct jw w = jw_begin(b);
	char hash[2 * PORT_HASH_LEN + 1];

	encode_hex(p->token_hash, PORT_HASH_LEN, hash);
	jw_object_begin(&w);
	jw_bool_field(&w, "public", p->is_public);
	jw_bool_field(&w, "wake", p->wakes);
	jw_str_field(&w, "token", hash);
	jw_object_end(&w);
	return jw_end(&w);
}

static int read_text(const char *text, struct port_info *ret)
{
	struct jv_doc *doc = NULL;
	const char *hash;
	int r = jv_parse(text, strlen(text), TEXT_MAX, &doc, NULL);
	struct jv root = jv_root(doc);

	if (r == 0)
		r = jv_bool(jv_get(root, "public"), &ret->is_public);
	if (r == 0)
		r = jv_bool(jv_get(root, "wake"), &ret->wakes);
	hash = jv_text(jv_get(root, "token"));
	if (r == 0 && (!hash || decode_hex(hash, strlen(hash), ret->token_hash, PORT_HASH_LEN) !=
					PORT_HASH_LEN))
		r = -EINVAL;
	(void)jv_free(doc);
	return r;
}

/* ---- changes: in the store first ---- */

struct change {
	struct later later; /* of one that is refused at once */
	struct flight flight;
	struct sandbox *sb; /* owned reference */
	struct port_info info;
	bool is_removal;
	bool is_coming; /* counted as one that will be exposed */
	port_cb cb;
	void *user;
	struct err err;
};

static struct change *change_create(struct sandbox *sb, port_cb cb, void *user)
{
	struct change *c = calloc(1, sizeof(*c));

	if (!c) {
		/* NOTE: from inside the call, which without memory cannot be helped. */
		cb(user, NULL, &(struct err){ ENOMEM, "out of memory" });
		return NULL;
	}
	list_init(&c->later.node);
	c->sb = sandbox_ref(sb);
	c->cb = cb;
	c->user = user;
	return c;
}

static void change_free(struct change *c)
{
	if (c->is_coming)
		c->sb->n_ports_coming--;
	sandbox_unref(c->sb);
	free(c);
}

static void run_refused(struct later *l, bool is_over)
{
	struct change *c = LIST_ENTRY(l, struct change, later);

	if (!is_over)
		c->cb(c->user, NULL, &c->err);
	change_free(c);
}

static void refuse(struct change *c)
{
	later_post(c->sb->all, &c->later, run_refused);
}

static int apply(struct change *c)
{
	struct exposure *x = find(c->sb, c->info.port);

	if (c->is_removal) {
		if (x)
			drop(c->sb, x);
		ports_end(c->sb, c->info.port);
		return 0;
	}
	if (x) /* whoever came by what was before does not stay */
		ports_end(c->sb, c->info.port);
	else
		x = add(c->sb, c->info.port);
	if (!x)
		return -ENOMEM;
	x->info = c->info;
	return 0;
}

static void on_stored(void *user, int r)
{
	struct change *c = user;
	struct err err = { 0 };

	if (!flight_end(&c->flight)) {
		free(c); /* the sandbox went with the registry */
		return;
	}
	if (r == 0 && !state_is_live(c->sb->state))
		r = err_set(&err, EBUSY, "the sandbox has ended");
	else if (r < 0)
		err = record_error(r);
	else
		r = apply(c);
	if (r < 0 && err.code == 0)
		(void)err_sys(&err, r, "port %u", c->info.port);
	if (r == 0)
		announce_port(c->sb, &c->info, !c->is_removal);
	c->cb(c->user, r < 0 ? NULL : &c->info, r < 0 ? &err : NULL);
	change_free(c);
}

static int store_change(struct change *c)
{
	_cleanup_(buf_done) struct buf text = { 0 };
	char id[OBJECT_ID_SIZE];
	struct object_row row = { .kind = KIND,
				  .id = id,
				  .owner = c->sb->owner,
				  .name = "",
				  .created_ms = c->info.created_ms,
				  .updated_ms = wall_ms(c->sb->all) };
	int r = write_text(&c->info, &text);

	object_id(c->sb->id, c->info.port, id);
	row.text = buf_str(&text);
	if (r < 0)
		return r;
	flight_begin(c->sb->all, &c->flight);
	if (c->is_removal)
		r = store_delete_object(c->sb->all->store, KIND, id, on_stored, c);
	else
		r = store_put_object(c->sb->all->store, &row, on_stored, c);
	if (r < 0)
		(void)flight_end(&c->flight);
	return r;
}

static void submit(struct change *c)
{
	int r = store_change(c);

	if (r == 0)
		return;
	c->err = record_error(r);
	refuse(c);
}

void port_expose(struct sandbox *sb, const struct port_info *port, port_cb cb, void *user)
{
	struct change *c = change_create(sb, cb, user);
	const struct exposure *x = find(sb, port->port);

	if (!c)
		return;
	c->info = *port;
	c->info.created_ms = x ? x->info.created_ms : wall_ms(sb->all);
	if (!x && sb->n_ports + sb->n_ports_coming >= PORT_EXPOSED_MAX)
		(void)err_set(&c->err, EDQUOT, "%u ports of this sandbox are exposed, the limit",
			      PORT_EXPOSED_MAX);
	else if (sb->state == SANDBOX_STOPPING || !state_is_live(sb->state))
		(void)err_set(&c->err, EBUSY, "the sandbox is ending");
	if (c->err.code != 0) {
		refuse(c);
		return;
	}
	c->is_coming = !x;
	sb->n_ports_coming += !x;
	submit(c);
}

void port_close(struct sandbox *sb, uint16_t port, port_cb cb, void *user)
{
	struct change *c = change_create(sb, cb, user);
	const struct exposure *x = find(sb, port);

	if (!c)
		return;
	c->info.port = port;
	c->is_removal = true;
	if (x) {
		c->info = x->info;
		submit(c);
	} else {
		(void)err_set(&c->err, ENOENT, "port %u is not exposed", port);
		refuse(c);
	}
}

/* ---- from and to the store ---- */

static void forget_object(struct sandboxes *all, const char *id)
{
	int r = store_delete_object(all->store, KIND, id, NULL, NULL);

	if (r < 0) /* the next start finds it */
		log_warn("sandbox", "port %s is not forgotten: %s", id, strerror(-r));
}

static void load(void *user, const struct object_row *row)
{
	struct sandboxes *all = user;
	struct port_info info = { .created_ms = row->created_ms };
	struct str rest = str_of(row->id), name = { 0 };
	struct exposure *x = NULL;
	struct sandbox *sb;
	uint64_t port = 0;
	char id[ID_LEN + 1];

	(void)str_split(&rest, '-', &name);
	if (name.len == ID_LEN && parse_u64(rest.data, 1, UINT16_MAX, &port) == 0 &&
	    read_text(row->text, &info) == 0) {
		memcpy(id, name.data, ID_LEN);
		id[ID_LEN] = '\0';
		sb = sandboxes_find(all, id, NULL);
		info.port = (uint16_t)port;
		x = sb && !find(sb, info.port) ? add(sb, info.port) : NULL;
	}
	if (x)
		x->info = info;
	else
		forget_object(all, row->id);
}

int ports_load(struct sandboxes *all, struct err *err)
{
	return store_load_objects(all->store, KIND, load, all, err);
}

void ports_forget(struct sandbox *sb)
{
	char id[OBJECT_ID_SIZE];

	LIST_FOREACH (&sb->ports, x, struct exposure, node) {
		object_id(sb->id, x->info.port, id);
		forget_object(sb->all, id);
		drop(sb, x);
	}
}

/* ---- connections ---- */

struct port_use {
	struct list node;   /* in sandbox.port_uses */
	struct sandbox *sb; /* borrowed: its sandbox outlives it */
	uint16_t port;
	uint8_t address;
	uint32_t op; /* while it is being made; 0: it is */
	bool is_busy;
	bool is_listener, is_up;
	const char *path; /* borrowed for the first call: where a listener is, if at no port */
	int fd;           /* owned: came, and done() has not */
	uint64_t bytes;   /* that are counted */
	const struct port_use_ops *ops;
	void *user;
};

static int dial(struct port_use *u, struct err *err);

static void use_free(struct port_use *u)
{
	struct sandbox *sb = u->sb;

	list_remove(&u->node);
	sb->n_port_uses--;
	if (u->is_busy)
		sb->n_port_busy--;
	(void)fd_close(u->fd);
	sandbox_touch(sb);
	reaper_note(sb);
	free(u);
}

static void use_fail(struct port_use *u, const struct err *err)
{
	const struct port_use_ops *ops = u->ops;
	void *user = u->user;

	use_free(u);
	ops->failed(user, err);
}

static void use_over(struct port_use *u)
{
	const struct port_use_ops *ops = u->ops;
	void *user = u->user;

	use_free(u);
	ops->ended(user);
}

static void on_socket(void *user, int fd)
{
	struct port_use *u = user;

	if (u->is_listener)
		u->ops->connected(u->user, fd);
	else
		u->fd = fd;
}

static void on_done(void *user, uint64_t count)
{
	struct port_use *u = user;
	struct err err = { 0 };

	if (u->is_listener) {
		u->is_up = true;
		u->ops->listening(u->user, (uint16_t)count);
		return;
	}
	u->op = 0;
	if (u->fd >= 0) {
		u->ops->connected(u->user, TAKE_FD(u->fd));
		return;
	}
	(void)err_set(&err, ECONNRESET, "port %u closed the connection at once", u->port);
	use_fail(u, &err);
}

static void on_failed(void *user, int code, const char *text)
{
	struct port_use *u = user;
	struct err err = { 0 };

	u->op = 0;
	if (u->is_listener && u->is_up)
		return use_over(u);
	/* Some programs listen on the other loopback only. */
	if ((code == ECONNREFUSED || code == EADDRNOTAVAIL || code == EAFNOSUPPORT) &&
	    u->address == ADDRESS_V4 && !u->is_listener) {
		u->address = ADDRESS_V6;
		if (dial(u, &err) == 0)
			return;
	} else if (code == EADDRNOTAVAIL || code == EAFNOSUPPORT || code == EPERM) {
		(void)err_set(&err, ECONNREFUSED, "nothing listens on port %u", u->port);
	} else {
		(void)err_set(&err, code, "%s", text);
	}
	use_fail(u, &err);
}

static const struct guest_callbacks callbacks = { .socket = on_socket,
						  .done = on_done,
						  .failed = on_failed };

static int dial(struct port_use *u, struct err *err)
{
	struct guest_connect c = { .port = u->port, .address = u->address, .path = u->path };
	int r;

	if (!u->sb->guest)
		return err_set(err, EPIPE, "the sandbox's box is gone");
	if (u->is_listener)
		r = guest_listen(u->sb->guest, &c, &callbacks, u, &u->op, err);
	else
		r = guest_connect(u->sb->guest, &c, &callbacks, u, &u->op, err);
	link_kick(u->sb);
	return r;
}

int port_check(const struct sandbox *sb, struct err *err)
{
	return sandbox_check_usable(sb, err);
}

static int use_begin(struct sandbox *sb, const struct port_use *like, struct port_use **ret,
		     struct err *err)
{
	struct port_use *u;
	int r;

	if (sb->n_port_uses >= PORT_USES_MAX)
		return err_set(err, EAGAIN, "%u connections to this sandbox are open, the limit",
			       PORT_USES_MAX);
	u = calloc(1, sizeof(*u));
	if (!u)
		return err_sys(err, ENOMEM, "connection");
	*u = *like;
	u->fd = -1;
	u->is_busy = true;
	list_push_back(&sb->port_uses, &u->node);
	sb->n_port_uses++;
	sb->n_port_busy++;
	r = dial(u, err);
	if (r < 0) {
		use_free(u);
		return r;
	}
	*ret = u;
	return 0;
}

int port_dial_early(struct sandbox *sb, uint16_t port, const struct port_use_ops *ops, void *user,
		    struct port_use **ret, struct err *err)
{
	struct port_use like = { .sb = sb, .port = port, .ops = ops, .user = user };

	return use_begin(sb, &like, ret, err);
}

int port_dial(struct sandbox *sb, uint16_t port, const struct port_use_ops *ops, void *user,
	      struct port_use **ret, struct err *err)
{
	int r = sandbox_check_usable(sb, err);

	return r < 0 ? r : port_dial_early(sb, port, ops, user, ret, err);
}

int port_listen(struct sandbox *sb, const struct port_use_ops *ops, void *user,
		struct port_use **ret, struct err *err)
{
	struct port_use like = { .sb = sb, .is_listener = true, .ops = ops, .user = user };
	int r = sandbox_check_usable(sb, err);

	return r < 0 ? r : use_begin(sb, &like, ret, err);
}

int port_listen_at(struct sandbox *sb, const char *path, const struct port_use_ops *ops, void *user,
		   struct port_use **ret, struct err *err)
{
	struct port_use like = { .sb = sb,
				 .address = ADDRESS_UNIX,
				 .is_listener = true,
				 .path = path,
				 .ops = ops,
				 .user = user };
	int r = sandbox_check_usable(sb, err);

	return r < 0 ? r : use_begin(sb, &like, ret, err);
}

void port_use_set_busy(struct port_use *u, bool on)
{
	if (u->is_busy == on)
		return;
	u->is_busy = on;
	u->sb->n_port_busy += on ? 1 : (size_t)-1;
	sandbox_touch(u->sb);
	if (!on)
		reaper_note(u->sb);
}

void port_use_touch(struct port_use *u)
{
	sandbox_touch(u->sb);
}

void port_use_count(struct port_use *u, uint64_t total)
{
	if (total <= u->bytes)
		return;
	usage_net(u->sb, total - u->bytes);
	u->bytes = total;
}

bool port_use_is_of(const struct port_use *u, const struct sandbox *sb, uint16_t port)
{
	return u->sb == sb && u->port == port;
}

bool port_use_is_same(const struct port_use *a, const struct port_use *b)
{
	return port_use_is_of(a, b->sb, b->port);
}

void port_use_end(struct port_use *u)
{
	if (!u)
		return;
	if (u->op != 0 && u->sb->guest) {
		(void)guest_cancel(u->sb->guest, u->op);
		guest_forget(u->sb->guest, u->op);
		link_kick(u->sb);
	}
	use_free(u);
}

static struct port_use *first_use(const struct sandbox *sb, uint16_t port)
{
	LIST_FOREACH (&sb->port_uses, u, struct port_use, node)
		if (port == 0 || u->port == port)
			return u;
	return NULL;
}

void ports_end(struct sandbox *sb, uint16_t port)
{
	struct port_use *u;

	while ((u = first_use(sb, port))) {
		const struct port_use_ops *ops = u->ops;
		struct err err = { EPIPE, "the port was closed" };
		void *user = u->user;
		bool is_dialing = u->op != 0 && !u->is_up;

		if (port == 0)
			(void)err_set(&err, EPIPE, "the sandbox's box is gone");
		port_use_end(u);
		if (is_dialing)
			ops->failed(user, &err);
		else
			ops->ended(user);
	}
}

void ports_drop(struct sandbox *sb)
{
	LIST_FOREACH (&sb->port_uses, u, struct port_use, node) {
		list_remove(&u->node);
		(void)fd_close(u->fd);
		free(u);
	}
	LIST_FOREACH (&sb->ports, x, struct exposure, node)
		drop(sb, x);
}
