/* cli/memory_here.c -- see memory_here.h. */
#include "cli/memory_here.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/sysinfo.h>

int64_t ls_memory_here(void)
{
    /* of control groups, versions 2 and 1; one without a limit says "max", or a huge number */
    static const char *const limit[] = {"/sys/fs/cgroup/memory.max",
                                        "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
    struct sysinfo info;
    int64_t least = sysinfo(&info) == 0 ? (int64_t)(info.totalram * (uint64_t)info.mem_unit) : 0, n;
    for (size_t k = 0; k < sizeof limit / sizeof *limit; k++) {
        FILE *f = fopen(limit[k], "r");
        if (f != NULL && fscanf(f, "%" SCNd64, &n) == 1 && n > 0 && n < least)
            least = n;
        if (f != NULL)
            fclose(f);
    }
    return least;
}
