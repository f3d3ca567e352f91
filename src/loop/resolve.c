#include "loop/resolve.h"

#include <ares.h>
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/log.h"
#include "base/str.h"
#include "loop/loop.h"

#define TRY_MS 2000 /* for a server's first answer; c-ares doubles it */
#define TRIES 3
#define OWNER_MAX 255u
#define RESOLV_CONF "/etc/resolv.conf"

/* A socket of c-ares. */
struct watch {
	struct list node;
	struct resolver *resolver; /* borrowed */
	int fd;                    /* borrowed */
	struct loop_io *io;        /* owned */
};

struct resolver {
	struct loop *loop; /* borrowed */
	ares_channel channel;
	char *servers; /* owned; NULL: the machine's */
	uint32_t timeout_ms;
	struct stat config;       /* of resolv.conf, as the channel has read it */
	struct loop_timer *timer; /* owned: c-ares' own times */
	struct list watches, lookups;
	unsigned count;
	bool is_closing;
};

/* Kept until c-ares is through with it, which may be after its time or its owner is. */
struct resolve {
	struct list node;
	struct resolver *resolver; /* borrowed */
	char owner[OWNER_MAX + 1];
	uint16_t port;
	resolve_cb cb; /* NULL: nobody wants to hear any more */
	void *user;
	struct loop_timer *deadline; /* owned; NULL once it has been told */
	struct loop_task told;
	bool is_asked; /* c-ares will call back */
	int code;
	size_t n;
	union resolve_address addresses[RESOLVE_ADDRESSES_MAX];
};

/* ---- c-ares on the loop ---- */

static void set_timer(struct resolver *r)
{
	struct timeval tv;

	if (ares_timeout(r->channel, NULL, &tv))
		loop_timer_start(r->timer,
				 (uint64_t)tv.tv_sec * 1000 + (uint64_t)tv.tv_usec / 1000 + 1, 0);
	else
		loop_timer_stop(r->timer);
}

static void on_timer(void *user)
{
	struct resolver *r = user;

	ares_process_fd(r->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	set_timer(r);
}

static void on_socket(void *user, unsigned events)
{
	struct watch *w = user;
	struct resolver *r = w->resolver;
	int fd = w->fd; /* the watch may go in between */

	ares_process_fd(r->channel, events & (LOOP_READ | LOOP_HANGUP) ? fd : ARES_SOCKET_BAD,
			events & LOOP_WRITE ? fd : ARES_SOCKET_BAD);
	set_timer(r);
}

static struct watch *find_watch(struct resolver *r, int fd)
{
	LIST_FOREACH (&r->watches, w, struct watch, node)
		if (w->fd == fd)
			return w;
	return NULL;
}

static void watch_free(struct watch *w)
{
	list_remove(&w->node);
	w->io = loop_io_free(w->io);
	free(w);
}

static struct watch *watch_create(struct resolver *r, int fd)
{
	struct watch *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL; /* the lookup then ends with its time */
	w->resolver = r;
	w->fd = fd;
	if (loop_io_create(r->loop, fd, on_socket, w, &w->io) < 0) {
		free(w);
		return NULL;
	}
	list_push_back(&r->watches, &w->node);
	return w;
}

static void on_state(void *user, ares_socket_t fd, int readable, int writable)
{
	struct resolver *r = user;
	struct watch *w = find_watch(r, fd);

	if (!readable && !writable) {
		if (w)
			watch_free(w);
		return;
	}
	if (!w)
		w = watch_create(r, fd);
	if (w)
		(void)loop_io_want(w->io,
				   (readable ? LOOP_READ : 0u) | (writable ? LOOP_WRITE : 0u));
}

static int open_channel(struct resolver *r, struct err *err)
{
	struct ares_options o = { .timeout = TRY_MS,
				  .tries = TRIES,
				  .sock_state_cb = on_state,
				  .sock_state_cb_data = r };
	int code = ares_init_options(&r->channel, &o,
				     ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB);

	if (code != ARES_SUCCESS)
		return err_set(err, code == ARES_ENOMEM ? ENOMEM : EIO, "resolver: %s",
			       ares_strerror(code));
	if (r->servers && ares_set_servers_ports_csv(r->channel, r->servers) != ARES_SUCCESS) {
		ares_destroy(r->channel);
		return err_set(err, EINVAL, "resolver: '%.100s' are no servers", r->servers);
	}
	memset(&r->config, 0, sizeof(r->config));
	(void)stat(RESOLV_CONF, &r->config);
	return 0;
}

/* c-ares takes a server of its own, at the loopback address, for what it cannot read. */
static bool is_readable(const char *path)
{
	_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd >= 0;
}

/* What the machine asks may change while we run; one that is in use goes on as it is. */
static void follow_config(struct resolver *r)
{
	ares_channel former = r->channel;
	struct stat now = { 0 };

	if (r->servers || r->count > 0 || stat(RESOLV_CONF, &now) < 0 ||
	    (now.st_ino == r->config.st_ino && now.st_size == r->config.st_size &&
	     now.st_mtim.tv_sec == r->config.st_mtim.tv_sec &&
	     now.st_mtim.tv_nsec == r->config.st_mtim.tv_nsec))
		return;
	if (!is_readable(RESOLV_CONF)) {
		r->config = now; /* said once */
		log_warn("resolve", "%s has changed and cannot be read: the servers stay",
			 RESOLV_CONF);
		return;
	}
	if (open_channel(r, NULL) == 0)
		ares_destroy(former);
	else
		r->channel = former;
}

int resolver_create(struct loop *loop, const struct resolve_options *o, struct resolver **ret,
		    struct err *err)
{
	struct resolver *r;
	int code = ares_library_init(ARES_LIB_INIT_ALL);

	if (code != ARES_SUCCESS)
		return err_set(err, EIO, "resolver: %s", ares_strerror(code));
	r = calloc(1, sizeof(*r));
	if (!r || loop_timer_create(loop, on_timer, r, &r->timer) < 0) {
		free(r);
		return err_sys(err, ENOMEM, "resolver");
	}
	r->loop = loop;
	r->timeout_ms = o && o->timeout_ms ? o->timeout_ms : RESOLVE_MS;
	list_init(&r->watches);
	list_init(&r->lookups);
	if (o && o->servers && !(r->servers = str_dup(str_of(o->servers))))
		code = err_sys(err, ENOMEM, "resolver");
	else
		code = open_channel(r, err);
	if (code < 0) {
		r->timer = loop_timer_free(r->timer);
		free(r->servers);
		free(r);
		return code;
	}
	*ret = r;
	return 0;
}

/* ---- one lookup ---- */

static void free_if_over(struct resolve *q)
{
	if (q->is_asked || q->cb)
		return;
	q->deadline = loop_timer_free(q->deadline);
	loop_task_cancel(&q->told);
	list_remove(&q->node);
	q->resolver->count--;
	free(q);
}

static void tell(void *user)
{
	struct resolve *q = user;
	resolve_cb cb = q->cb;
	void *arg = q->user;
	union resolve_address addresses[RESOLVE_ADDRESSES_MAX];
	size_t n = q->n;
	int code = q->code;

	memcpy(addresses, q->addresses, sizeof(addresses));
	q->cb = NULL;
	free_if_over(q);
	cb(arg, code, addresses, n);
}

static void post(struct resolve *q, int code)
{
	q->deadline = loop_timer_free(q->deadline);
	q->code = code;
	loop_task_post(q->resolver->loop, &q->told);
}

static void on_deadline(void *user)
{
	struct resolve *q = user;

	q->n = 0;
	post(q, -ETIMEDOUT);
}

static void take_addresses(struct resolve *q, const struct ares_addrinfo *found)
{
	for (const struct ares_addrinfo_node *a = found->nodes; a && q->n < RESOLVE_ADDRESSES_MAX;
	     a = a->ai_next) {
		union resolve_address *to = &q->addresses[q->n];

		if ((size_t)a->ai_addrlen > sizeof(*to) ||
		    (a->ai_family != AF_INET && a->ai_family != AF_INET6))
			continue;
		memset(to, 0, sizeof(*to));
		memcpy(to, a->ai_addr, (size_t)a->ai_addrlen);
		if (a->ai_family == AF_INET)
			to->v4.sin_port = htons(q->port);
		else
			to->v6.sin6_port = htons(q->port);
		q->n++;
	}
}

/* An address in place of a name. Not left to c-ares: that of Debian 12 asks servers for it. */
static bool take_literal(struct resolve *q, const char *host)
{
	union resolve_address *a = &q->addresses[0];

	if (inet_pton(AF_INET, host, &a->v4.sin_addr) == 1) {
		a->v4.sin_family = AF_INET;
		a->v4.sin_port = htons(q->port);
	} else if (inet_pton(AF_INET6, host, &a->v6.sin6_addr) == 1) {
		a->v6.sin6_family = AF_INET6;
		a->v6.sin6_port = htons(q->port);
	} else {
		return false;
	}
	q->n = 1;
	return true;
}

static int code_of(int status, size_t n)
{
	switch (status) {
	case ARES_SUCCESS:
		return n > 0 ? 0 : -ENOENT;
	case ARES_ENOTFOUND:
	case ARES_ENODATA:
	case ARES_EBADNAME:
		return -ENOENT;
	case ARES_ETIMEOUT:
		return -ETIMEDOUT;
	case ARES_ENOMEM:
		return -ENOMEM;
	default:
		return -EIO;
	}
}

static void on_found(void *user, int status, int timeouts, struct ares_addrinfo *found)
{
	struct resolve *q = user;
	bool is_waited_for = q->cb && q->deadline;

	(void)timeouts;
	q->is_asked = false;
	if (is_waited_for && found)
		take_addresses(q, found);
	if (found)
		ares_freeaddrinfo(found);
	if (is_waited_for)
		post(q, code_of(status, q->n));
	else
		free_if_over(q);
}

static unsigned count_owner(const struct resolver *r, const char *owner)
{
	unsigned n = 0;

	LIST_FOREACH (&r->lookups, q, struct resolve, node)
		n += strcmp(q->owner, owner) == 0;
	return n;
}

static int check_bounds(const struct resolver *r, const char *owner, const char *host,
			struct err *err)
{
	size_t n = strlen(host);

	if (n == 0 || n > RESOLVE_NAME_MAX || strlen(owner) > OWNER_MAX)
		return err_set(err, EINVAL, "'%.60s' is no name of a host", host);
	if (count_owner(r, owner) >= RESOLVE_OWNER_MAX)
		return err_set(err, EAGAIN, "%u names are being looked up for this owner, no more",
			       RESOLVE_OWNER_MAX);
	if (r->count >= RESOLVE_MAX)
		return err_set(err, EAGAIN, "%u names are being looked up, no more", RESOLVE_MAX);
	return 0;
}

int resolver_ask(struct resolver *r, const char *owner, const char *host, uint16_t port,
		 resolve_cb cb, void *user, struct resolve **ret, struct err *err)
{
	struct ares_addrinfo_hints hints = { .ai_socktype = SOCK_STREAM,
					     .ai_flags = ARES_AI_NUMERICSERV };
	struct resolve *q;
	int code = check_bounds(r, owner, host, err);

	if (code < 0)
		return code;
	follow_config(r);
	q = calloc(1, sizeof(*q));
	if (!q || loop_timer_create(r->loop, on_deadline, q, &q->deadline) < 0) {
		free(q);
		return err_sys(err, ENOMEM, "name of a host");
	}
	q->resolver = r;
	(void)str_copy(q->owner, sizeof(q->owner), owner); /* fits: check_bounds() */
	q->port = port;
	q->cb = cb;
	q->user = user;
	loop_task_init(&q->told, tell, q);
	list_push_back(&r->lookups, &q->node);
	r->count++;
	loop_timer_start(q->deadline, r->timeout_ms, 0);
	*ret = q;
	if (take_literal(q, host)) {
		post(q, 0);
		return 0;
	}
	q->is_asked = true;
	ares_getaddrinfo(r->channel, host, NULL, &hints, on_found, q); /* may call back in it */
	set_timer(r);
	return 0;
}

void resolve_cancel(struct resolve *q)
{
	q->cb = NULL;
	loop_task_cancel(&q->told);
	q->deadline = loop_timer_free(q->deadline);
	free_if_over(q);
}

struct resolver *resolver_free(struct resolver *r)
{
	if (!r)
		return NULL;
	LIST_FOREACH (&r->lookups, q, struct resolve, node)
		resolve_cancel(q);
	ares_destroy(r->channel); /* which calls back for all that it has */
	assert(list_is_empty(&r->lookups) && list_is_empty(&r->watches));
	r->timer = loop_timer_free(r->timer);
	free(r->servers);
	free(r);
	ares_library_cleanup();
	return NULL;
}
