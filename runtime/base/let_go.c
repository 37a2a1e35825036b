/* runtime/base/let_go.c -- see let_go.h. Pages of an executable are the process's own as soon as it
 * reads them, until memory is short: so weights would count twice, in the file's pages and in the
 * state that starts with them. Other memory would lose its content (a packed program has no pages
 * of a file), so the system is asked first. */
#include "runtime/base/let_go.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

bool ls_can_let_go(const void *at, size_t n)
{
    const uintptr_t from = (uintptr_t)at;
    uintptr_t low, high;
    char line[512], kind[8];
    uint64_t inode;
    bool can = false, begins = true;
    FILE *f = fopen("/proc/self/maps", "re");
    while (f != NULL && !can && fgets(line, sizeof line, f) != NULL) {
        const bool whole = begins;      /* names may be longer than the line */
        begins = strchr(line, '\n') != NULL;
        can = whole
              && sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %7s %*s %*s %" SCNu64, &low, &high, kind,
                        &inode)
                     == 4
              && from >= low && from < high && n <= high - from && strcmp(kind, "r--p") == 0
              && inode != 0;
    }
    if (f != NULL)
        fclose(f);
    return can;
}

void ls_let_go(const void *at, size_t n)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)at / page * page;
    madvise((void *)from, (uintptr_t)at + n - from, MADV_DONTNEED);
}
