/* Every local that owns something says so in its declaration. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(fn) __attribute__((cleanup(fn)))
#define _free_ _cleanup_(cleanup_free)
#define _close_ _cleanup_(cleanup_close)
#define _fclose_ _cleanup_(cleanup_fclose)

/* Hands ownership on: the variable is NULL afterwards. */
#define TAKE(ptr)                           \
	({                                  \
		__auto_type taken_ = (ptr); \
		(ptr) = NULL;               \
		taken_;                     \
	})

/* The same for a file descriptor: the variable is -1 afterwards. */
#define TAKE_FD(fd)                \
	({                         \
		int taken_ = (fd); \
		(fd) = -1;         \
		taken_;            \
	})

/* Declares name_p(), the cleanup form of a destructor that takes a pointer and accepts NULL. */
#define CLEANUP_FUNC(type, fn)             \
	static inline void fn##_p(type *p) \
	{                                  \
		if (*p)                    \
			(void)fn(*p);      \
	}

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_close(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
}

static inline void cleanup_fclose(FILE **f)
{
	if (*f)
		(void)fclose(*f);
}
