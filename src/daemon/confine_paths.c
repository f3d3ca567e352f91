/* Which of the machine's files the operator has named. */
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "config/config.h"
#include "daemon/confine.h"
#include "mcpc/servers.h"
#include "tools/skills.h"

#define UNIX_PREFIX "unix:"

struct adding {
	struct confinement *c;
	int r;
};

static int add_file(struct confinement *c, const char *path)
{
	if (!path)
		return 0;
	if (c->n_files >= CONFINE_FILES_MAX)
		return -E2BIG;
	c->files[c->n_files] = str_dup(str_of(path));
	return c->files[c->n_files++] ? 0 : -ENOMEM;
}

static void add_file_of_server(void *user, const char *path)
{
	struct adding *a = user;

	if (a->r == 0)
		a->r = add_file(a->c, path);
}

static bool is_url(const char *text)
{
	return strstr(text, "://") != NULL;
}

static int add_files(struct confinement *c, const struct config *config, const struct buf *json)
{
	struct adding a = { .c = c };

	a.r = add_file(c, config->tls_cert);
	if (a.r == 0)
		a.r = add_file(c, config->tls_key);
	if (a.r == 0 && config->jwt_jwks && !is_url(config->jwt_jwks))
		a.r = add_file(c, config->jwt_jwks);
	/* Libraries ask these for whom to trust. */
	if (a.r == 0)
		a.r = add_file(c, getenv("SSL_CERT_FILE"));
	if (a.r == 0 && json->len > 0)
		mcpc_servers_files(buf_str(json), json->len, add_file_of_server, &a);
	return a.r;
}

/* Of the system, and for more than one purpose. "*": whatever lies directly there. */
static const char *const shared[] = {
	"/",
	"/*bin",
	"/boot",
	"/dev",
	"/etc",
	"/etc/pki",
	"/etc/ssl",
	"/home",
	"/home/*",
	"/lib*",
	"/media",
	"/mnt",
	"/opt",
	"/proc",
	"/root",
	"/run",
	"/run/user",
	"/run/user/*",
	"/srv",
	"/sys",
	"/tmp",
	"/usr",
	"/usr/*",
	"/usr/local/etc",
	"/usr/local/lib",
	"/usr/local/share",
	"/var",
	"/var/cache",
	"/var/lib",
	"/var/local",
	"/var/log",
	"/var/mail",
	"/var/opt",
	"/var/spool",
	"/var/tmp",
};

bool confinement_is_beneath(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

bool confinement_is_shared(const char *dir)
{
	const char *home = getenv("HOME");
	_free_ char *own_home = home ? realpath(home, NULL) : NULL;
	_free_ char *real = realpath(dir, NULL);

	if (!real)
		return false;
	for (size_t i = 0; i < sizeof(shared) / sizeof(shared[0]); i++)
		if (fnmatch(shared[i], real, FNM_PATHNAME) == 0)
			return true;
	return own_home && confinement_is_beneath(own_home, real);
}

int confinement_check(const char *setting, const char *path, struct err *err)
{
	if (!path || !confinement_is_shared(path))
		return 0;
	return err_set(err, EINVAL,
		       "%s: '%.150s' holds other things as well: choose a directory "
		       "for this alone",
		       setting, path);
}

static int add_tree(struct confinement *c, const char *path)
{
	size_t n = 0;

	while (c->trees[n])
		n++;
	c->trees[n] = str_dup(str_of(path));
	return c->trees[n] ? 0 : -ENOMEM;
}

static int add_skills(struct confinement *c, const struct config *config)
{
	char own[PATH_MAX];

	if (config->skills_dir)
		return add_tree(c, config->skills_dir);
	if (str_format(own, sizeof(own), "%s/" SKILLS_FOLDER, config->state_dir) < 0)
		return -ENAMETOOLONG;
	(void)mkdir(own, 0755);
	return add_tree(c, own);
}

bool confinement_has_unix(const struct config *config)
{
	return strncmp(config->listen, UNIX_PREFIX, strlen(UNIX_PREFIX)) == 0;
}

int confinement_init(struct confinement *c, const struct config *config, const char *data_dir,
		     const struct buf *servers_json, struct err *err)
{
	int r;

	*c = (struct confinement){ .data_dir = data_dir };
	if (confinement_has_unix(config))
		c->listens_at = config->listen + strlen(UNIX_PREFIX);
	r = confinement_check("skills_dir", config->skills_dir, err);
	if (r == 0)
		r = confinement_check("images_dir", config->images_dir, err);
	if (r < 0)
		return r;
	r = add_files(c, config, servers_json);
	if (r == 0)
		r = add_skills(c, config);
	if (r == 0 && config->images_dir)
		r = add_tree(c, config->images_dir);
	return r < 0 ? err_sys(err, r, "files that the daemon needs") : 0;
}

void confinement_done(struct confinement *c)
{
	for (size_t i = 0; i < c->n_files; i++)
		free(c->files[i]);
	for (size_t i = 0; i < sizeof(c->trees) / sizeof(c->trees[0]); i++)
		free(c->trees[i]);
}
