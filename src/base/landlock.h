/* Landlock, as far as this kernel has it: what a process may do with files, decided by the process
 * itself, for good, for all that it starts and for every thread that it starts from then on. */
#pragma once

#include <stdint.h>

/* What can be allowed beneath a path. */
#define LANDLOCK_EXECUTE (1ull << 0)
#define LANDLOCK_WRITE_FILE (1ull << 1)
#define LANDLOCK_READ_FILE (1ull << 2)
#define LANDLOCK_READ_DIR (1ull << 3)
#define LANDLOCK_REMOVE_DIR (1ull << 4)
#define LANDLOCK_REMOVE_FILE (1ull << 5)
#define LANDLOCK_MAKE_CHAR (1ull << 6)
#define LANDLOCK_MAKE_DIR (1ull << 7)
#define LANDLOCK_MAKE_REG (1ull << 8)
#define LANDLOCK_MAKE_SOCK (1ull << 9)
#define LANDLOCK_MAKE_FIFO (1ull << 10)
#define LANDLOCK_MAKE_BLOCK (1ull << 11)
#define LANDLOCK_MAKE_SYM (1ull << 12)
#define LANDLOCK_REFER (1ull << 13)     /* ABI 2 */
#define LANDLOCK_TRUNCATE (1ull << 14)  /* ABI 3 */
#define LANDLOCK_IOCTL_DEV (1ull << 15) /* ABI 5 */

/* All that changes something, and all that there is. */
#define LANDLOCK_WRITING                                                                         \
	(LANDLOCK_WRITE_FILE | LANDLOCK_REMOVE_DIR | LANDLOCK_REMOVE_FILE | LANDLOCK_MAKE_CHAR | \
	 LANDLOCK_MAKE_DIR | LANDLOCK_MAKE_REG | LANDLOCK_MAKE_SOCK | LANDLOCK_MAKE_FIFO |       \
	 LANDLOCK_MAKE_BLOCK | LANDLOCK_MAKE_SYM | LANDLOCK_REFER | LANDLOCK_TRUNCATE)
#define LANDLOCK_ALL                                                                    \
	(LANDLOCK_WRITING | LANDLOCK_EXECUTE | LANDLOCK_READ_FILE | LANDLOCK_READ_DIR | \
	 LANDLOCK_IOCTL_DEV)

uint32_t landlock_abi(void); /* 0: the kernel has none */
/* Those of the rights that the ABI knows. */
uint64_t landlock_known(uint32_t abi, uint64_t rights);
/* A set of rules by which nothing of `handled` (only known rights) is allowed until a rule says so;
 * from ABI 6 on no signal and no abstract socket leads out of what is confined. A descriptor or
 * -errno. */
int landlock_create(uint32_t abi, uint64_t handled);
/* Allows the rights beneath the path, links followed; of a file that is no directory those that a
 * file can have. -ENOENT and the like when it cannot be opened. */
int landlock_allow(int rules, const char *path, uint64_t rights);
/* Confines the calling thread, and all that it starts. Needs no-new-privs. */
int landlock_restrict(int rules);
