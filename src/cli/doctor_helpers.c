/* Programs that the kernel itself starts, as the machine's root, for what happens in a box. */
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>

#include "base/fd.h"
#include "cli/doctor.h"

#define HELPER_MAX 257 /* of the kernel's own texts, with the line's end */

static const char *read_setting(const char *path, char text[HELPER_MAX])
{
	if (fd_read_file_at(AT_FDCWD, path, text, HELPER_MAX) < 0)
		return NULL;
	text[strcspn(text, "\n")] = '\0';
	return text;
}

void doctor_judge_modules(struct finding *f, const char *helper, long disabled)
{
	if (!helper) {
		finding_set(f, HEALTH_OK, "the kernel loads none by itself");
	} else if (disabled > 0) {
		finding_set(f, HEALTH_OK, "no more can be loaded (kernel.modules_disabled)");
	} else if (helper[0] == '\0') {
		finding_set(f, HEALTH_OK,
			    "the kernel asks nobody for them (kernel.modprobe is empty)");
	} else {
		finding_set(f, HEALTH_WARN,
			    "a program of unknown format, in a box too, makes the kernel run %.60s "
			    "as root",
			    helper);
		finding_mend(f,
			     "load what the machine needs (overlay, loop, btrfs), then sysctl -w "
			     "kernel.modprobe= (or kernel.modules_disabled=1)");
	}
}

void doctor_check_modules(struct finding *f)
{
	char text[HELPER_MAX];

	doctor_judge_modules(f, read_setting("/proc/sys/kernel/modprobe", text),
			     doctor_sysctl("/proc/sys/kernel/modules_disabled", 0));
}

void doctor_judge_cores(struct finding *f, const char *pattern, bool can_be_limited)
{
	if (pattern && pattern[0] == '@') { /* since Linux 6.16; no limit holds for it */
		finding_set(f, HEALTH_WARN,
			    "a crash in a box is sent to the machine's service at %.60s, whatever "
			    "its limit of core files is",
			    pattern + strspn(pattern, "@"));
		finding_mend(f, "a kernel.core_pattern that begins with | or is a file's name");
	} else if (!pattern || pattern[0] != '|') {
		finding_set(f, HEALTH_OK, "no handler: a crash writes nothing");
	} else if (can_be_limited) {
		finding_set(f, HEALTH_OK, "the handler does not run for boxes (RLIMIT_CORE 1)");
	} else {
		finding_set(f, HEALTH_WARN,
			    "a crash in a box makes the kernel run %.60s as root: your hard limit "
			    "of core files is 0",
			    pattern + 1);
		finding_mend(f,
			     "a hard limit of 1 or more: limits.conf, or LimitCORE=1 of the unit");
	}
}

void doctor_check_cores(struct finding *f)
{
	char text[HELPER_MAX];
	struct rlimit r = { 0 };

	(void)getrlimit(RLIMIT_CORE, &r);
	/* No reason to ask who we are: whoever may raise it can. */
	doctor_judge_cores(f, read_setting("/proc/sys/kernel/core_pattern", text),
			   r.rlim_max >= 1 ||
				   setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 1 }) == 0);
}
