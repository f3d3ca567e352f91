/* The service of ports as the api's tests need it: nothing is exposed, and nothing can be reached.
 * What ports do is tested with a real daemon. */
#include <errno.h>

#include "sandbox/ports.h"

void port_expose(struct sandbox *sb, const struct port_info *port, port_cb cb, void *user)
{
	(void)sb;
	(void)port;
	cb(user, NULL, &(struct err){ EBUSY, "the sandbox is ending" });
}

void port_close(struct sandbox *sb, uint16_t port, port_cb cb, void *user)
{
	(void)sb;
	(void)port;
	cb(user, NULL, &(struct err){ ENOENT, "the port is not exposed" });
}

const struct port_info *port_find(const struct sandbox *sb, uint16_t port)
{
	(void)sb;
	(void)port;
	return NULL;
}

size_t port_list(const struct sandbox *sb, const struct port_info **ret, size_t cap)
{
	(void)sb;
	(void)ret;
	(void)cap;
	return 0;
}

int port_check(const struct sandbox *sb, struct err *err)
{
	(void)sb;
	return err_set(err, EBUSY, "the sandbox is ending");
}

int port_dial(struct sandbox *sb, uint16_t port, const struct port_use_ops *ops, void *user,
	      struct port_use **ret, struct err *err)
{
	(void)port;
	(void)ops;
	(void)user;
	(void)ret;
	return port_check(sb, err);
}

int port_listen(struct sandbox *sb, const struct port_use_ops *ops, void *user,
		struct port_use **ret, struct err *err)
{
	return port_dial(sb, 0, ops, user, ret, err);
}

int port_listen_at(struct sandbox *sb, const char *path, const struct port_use_ops *ops, void *user,
		   struct port_use **ret, struct err *err)
{
	(void)path;
	return port_dial(sb, 0, ops, user, ret, err);
}

void port_use_set_busy(struct port_use *u, bool on)
{
	(void)u;
	(void)on;
}

void port_use_touch(struct port_use *u)
{
	(void)u;
}

void port_use_count(struct port_use *u, uint64_t total)
{
	(void)u;
	(void)total;
}

bool port_use_is_of(const struct port_use *u, const struct sandbox *sb, uint16_t port)
{
	(void)u;
	(void)sb;
	(void)port;
	return false;
}

bool port_use_is_same(const struct port_use *a, const struct port_use *b)
{
	return a == b;
}

void port_use_end(struct port_use *u)
{
	(void)u;
}
