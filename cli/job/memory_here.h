/* cli/job/memory_here.h -- the memory that this machine gives a process. */
#ifndef LS_CLI_JOB_MEMORY_HERE_H
#define LS_CLI_JOB_MEMORY_HERE_H

#include <stdint.h>

/* The largest address space of today's machines: 2^47 bytes. */
static const int64_t LS_MOST_BYTES = INT64_C(1) << 47;

/* Bytes of memory: the installed memory, or less where a control group limits it. 0: not known. */
int64_t ls_memory_here(void);
/* `least`, or less where a control group has a lower limit: a group that a file such as
 * /proc/self/cgroup names, or one above it. root: where groups are mounted, version 2 or 1. */
int64_t ls_memory_limit(const char *groups, const char *root, int64_t least);

#endif
