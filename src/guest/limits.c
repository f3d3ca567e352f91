#include "guest/limits.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/parse.h"

static const struct {
	const char *label;
	int what;
} rows[] = {
	{ "Max file locks", RLIMIT_LOCKS }, /* the marks first: see GUEST_MARK_SUM */
	{ "Max resident set", RLIMIT_RSS },
	{ "Max cpu time", RLIMIT_CPU },
	{ "Max file size", RLIMIT_FSIZE },
	{ "Max data size", RLIMIT_DATA },
	{ "Max stack size", RLIMIT_STACK },
	{ "Max core file size", RLIMIT_CORE },
	{ "Max processes", RLIMIT_NPROC },
	{ "Max open files", RLIMIT_NOFILE },
	{ "Max locked memory", RLIMIT_MEMLOCK },
	{ "Max address space", RLIMIT_AS },
	{ "Max pending signals", RLIMIT_SIGPENDING },
	{ "Max msgqueue size", RLIMIT_MSGQUEUE },
	{ "Max nice priority", RLIMIT_NICE },
	{ "Max realtime priority", RLIMIT_RTPRIO },
};
#define COUNT (sizeof(rows) / sizeof(rows[0]))

/* One word, and the blanks behind it. */
static int read_number(const char **text, uint64_t *ret)
{
	size_t n = strcspn(*text, " \n");
	char word[24];

	if (n == 0 || n >= sizeof(word))
		return -EINVAL;
	memcpy(word, *text, n);
	word[n] = '\0';
	*text += n;
	*text += strspn(*text, " ");
	if (strcmp(word, "unlimited") != 0)
		return parse_u64(word, 0, UINT64_MAX, ret);
	*ret = RLIM_INFINITY;
	return 0;
}

int limits_find(const char *text, const char *label, uint64_t *ret_soft, uint64_t *ret_hard)
{
	const char *line = strstr(text, label);
	uint64_t soft, hard;

	if (!line)
		return -EINVAL;
	line += strlen(label);
	line += strspn(line, " ");
	if (read_number(&line, &soft) < 0 || read_number(&line, &hard) < 0)
		return -EINVAL;
	*ret_soft = soft;
	*ret_hard = hard;
	return 0;
}

int limits_take(const char *text)
{
	struct rlimit want[COUNT];
	uint64_t soft, hard;

	for (size_t i = 0; i < COUNT; i++) {
		if (limits_find(text, rows[i].label, &soft, &hard) < 0)
			return -EINVAL;
		want[i] = (struct rlimit){ (rlim_t)soft, (rlim_t)hard };
	}
	for (size_t i = 0; i < COUNT; i++)
		if (syscall(SYS_prlimit64, 0, rows[i].what, &want[i], NULL) < 0)
			return -errno;
	return 0;
}
