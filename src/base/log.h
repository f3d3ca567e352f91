/* One line of logfmt to stderr: `2026-01-02T03:04:05.678Z info launch: message`. The level is the
 * only mutable global of the program. Library folders never log above debug. */
#pragma once

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

void log_set_level(enum log_level level);
int log_level_from(const char *name, enum log_level *ret); /* -EINVAL */
/* Control characters in the text are escaped: hostile input cannot forge a line. */
void log_line(enum log_level level, const char *module, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#define log_error(module, ...) log_line(LOG_ERROR, module, __VA_ARGS__)
#define log_warn(module, ...) log_line(LOG_WARN, module, __VA_ARGS__)
#define log_info(module, ...) log_line(LOG_INFO, module, __VA_ARGS__)
#define log_debug(module, ...) log_line(LOG_DEBUG, module, __VA_ARGS__)
