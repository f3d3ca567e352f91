/* What '@' words in a probe's command line stand for. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attack.h"
#include "base/fd.h"
#include "base/str.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void add_pids(struct world *w, struct buf *b)
{
	(void)buf_printf(b, "%d %d %d %d ", (int)getpid(), (int)launcher_pid(w->launcher),
			 (int)w->neighbour.l.pid, (int)getppid());
}

static void add_addresses(struct world *w, struct buf *b)
{
	struct ifaddrs *list = NULL;

	(void)w;
	if (getifaddrs(&list) < 0)
		return;
	for (struct ifaddrs *i = list; i; i = i->ifa_next) {
		char text[INET6_ADDRSTRLEN];
		const void *address = NULL;

		if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET)
			address = &((struct sockaddr_in *)(void *)i->ifa_addr)->sin_addr;
		if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET6)
			address = &((struct sockaddr_in6 *)(void *)i->ifa_addr)->sin6_addr;
		if (address && inet_ntop(i->ifa_addr->sa_family, address, text, sizeof(text)))
			(void)buf_printf(b, "%s ", text);
	}
	freeifaddrs(list);
}

/* The first word of a small file, when it is long enough to be told from chance. */
static void add_word_of(struct buf *b, const char *path, size_t at_least)
{
	char text[4096];

	if (fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) <= 0)
		return;
	text[strcspn(text, " \n")] = '\0';
	if (strlen(text) >= at_least)
		(void)buf_printf(b, "%s ", text);
}

static void add_secrets(struct world *w, struct buf *b)
{
	char host[256] = "";

	(void)gethostname(host, sizeof(host) - 1);
	(void)buf_printf(b, "%s %s %s ", w->secret, w->dir, w->abstract);
	if (strlen(host) >= 5 && strcmp(host, "sandbox") != 0 && strcmp(host, "localhost") != 0)
		(void)buf_printf(b, "%s ", host);
	add_word_of(b, "/etc/machine-id", 16);
	add_word_of(b, "/proc/sys/kernel/random/boot_id", 16);
	add_word_of(b, "/sys/class/net/eth0/address", 10);
	add_word_of(b, "/proc/cmdline", 12);
}

static void add_canary(struct world *w, struct buf *b)
{
	(void)buf_printf(b, "%s/canary ", w->dir);
}

static void add_canary_dir(struct world *w, struct buf *b)
{
	(void)buf_printf(b, "%s/dir ", w->dir);
}

static void add_port(struct world *w, struct buf *b)
{
	(void)buf_printf(b, "%u ", w->port);
}

static void add_abstract(struct world *w, struct buf *b)
{
	(void)buf_printf(b, "%s ", w->abstract);
}

static const struct {
	const char *word;
	void (*add)(struct world *w, struct buf *b);
} words[] = {
	{ "@pids", add_pids },         { "@addresses", add_addresses }, { "@secrets", add_secrets },
	{ "@canary", add_canary },     { "@dir", add_canary_dir },      { "@port", add_port },
	{ "@abstract", add_abstract },
};

static void add_word(struct world *w, struct str word, struct buf *b)
{
	for (size_t i = 0; i < COUNT(words); i++)
		if (str_is(word, words[i].word)) {
			words[i].add(w, b);
			return;
		}
	(void)buf_append(b, word.data, word.len);
	(void)buf_putc(b, ' ');
}

size_t world_expand(struct world *w, const char *line, struct buf *ret_text, const char **ret_argv,
		    size_t max)
{
	struct str rest = str_of(line), word;
	size_t n = 0;

	while (str_split(&rest, ' ', &word))
		add_word(w, word, ret_text);
	assert_false(ret_text->failed);
	for (char *p = ret_text->data; *p && n < max; p++) {
		ret_argv[n++] = p;
		p += strcspn(p, " ");
		*p = '\0';
	}
	return n;
}
