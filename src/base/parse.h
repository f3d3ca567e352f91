/* Numbers, sizes and durations from text: all of it or -EINVAL; -ERANGE when out of bounds.
 * ret stays untouched on failure. Units are taken in either case; a fraction is rounded down. */
#pragma once

#include <stdint.h>

int parse_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret);
int parse_i64(const char *s, int64_t min, int64_t max, int64_t *ret);
int parse_u32(const char *s, uint32_t min, uint32_t max, uint32_t *ret);
int parse_bool(const char *s, int *ret); /* true/false, yes/no, on/off, 1/0 */

/* "268435456", "256M", "256MiB", "256Mi", "1.5G": K, M, G, T are powers of 1024; "i", "B" or "iB"
 * may follow. */
int parse_size(const char *s, uint64_t min, uint64_t max, uint64_t *ret_bytes);
/* "30", "30s", "1.5s", "250ms", "5m", "2h", "7d": a bare number is seconds. */
int parse_duration(const char *s, uint64_t min_ms, uint64_t max_ms, uint64_t *ret_ms);
/* "0.5", "2", "250m": cores to thousandths of a core. */
int parse_cpu(const char *s, uint32_t min_milli, uint32_t max_milli, uint32_t *ret_milli);
