/* One line a call to stderr: `2026-01-02T03:04:05.678Z info launch: message key=value`, or the same
 * as a JSON object. Level and format are the only mutable globals of the program. Library folders
 * never log above debug. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };
enum log_format { LOG_LOGFMT, LOG_JSON };

void log_set_level(enum log_level level);
void log_set_format(enum log_format format);
bool log_is_on(enum log_level level);
int log_level_from(const char *name, enum log_level *ret); /* -EINVAL */
/* Control characters in the text are escaped: hostile input cannot forge a line. */
void log_line(enum log_level level, const char *module, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* A message with fields to search by: log_record(LOG_INFO, "http", "request", LOG_STR("method", m),
 * LOG_UINT("status", 200)). A line that gets too long loses its last fields, and says so. */
enum log_field_type { LOG_FIELD_STR, LOG_FIELD_INT, LOG_FIELD_UINT, LOG_FIELD_MS, LOG_FIELD_BOOL };
struct log_field {
	const char *key; /* NULL ends the fields */
	enum log_field_type type;
	union {
		const char *text; /* NULL: the field is left out */
		int64_t i;
		uint64_t u;
	};
};
#define LOG_STR(k, v) ((struct log_field){ .key = (k), .type = LOG_FIELD_STR, .text = (v) })
#define LOG_INT(k, v) ((struct log_field){ .key = (k), .type = LOG_FIELD_INT, .i = (v) })
#define LOG_UINT(k, v) ((struct log_field){ .key = (k), .type = LOG_FIELD_UINT, .u = (v) })
/* Microseconds, written as milliseconds with three decimals. */
#define LOG_MS(k, us) ((struct log_field){ .key = (k), .type = LOG_FIELD_MS, .u = (us) })
#define LOG_BOOL(k, v) ((struct log_field){ .key = (k), .type = LOG_FIELD_BOOL, .u = (v) })
#define log_record(level, module, message, ...) \
	log_fields(level, module, message, (const struct log_field[]){ __VA_ARGS__, { 0 } })
void log_fields(enum log_level level, const char *module, const char *message,
		const struct log_field *fields);

#define log_error(module, ...) log_line(LOG_ERROR, module, __VA_ARGS__)
#define log_warn(module, ...) log_line(LOG_WARN, module, __VA_ARGS__)
#define log_info(module, ...) log_line(LOG_INFO, module, __VA_ARGS__)
#define log_debug(module, ...) log_line(LOG_DEBUG, module, __VA_ARGS__)
