/* What a check of the doctor's says, and the numbers it reads. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/parse.h"
#include "cli/doctor.h"

void finding_set(struct finding *f, enum health health, const char *fmt, ...)
{
	va_list ap;

	f->health = health;
	va_start(ap, fmt);
	(void)vsnprintf(f->text, sizeof(f->text), fmt, ap);
	va_end(ap);
}

void finding_mend(struct finding *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(f->mend, sizeof(f->mend), fmt, ap);
	va_end(ap);
}

long doctor_sysctl(const char *path, long missing)
{
	char text[32];
	int64_t v;

	if (fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) <= 0)
		return missing;
	text[strcspn(text, "\n")] = '\0';
	return parse_i64(text, INT64_MIN, INT64_MAX, &v) < 0 ? missing : (long)v;
}
