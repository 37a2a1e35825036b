/* tests/whole/guarded_memory.h -- memory between two pages that nobody may touch. It ends with its
 * last page, as far as its alignment allows; the rest of its pages has a pattern that must stay. */
#ifndef LS_TESTS_WHOLE_GUARDED_MEMORY_H
#define LS_TESTS_WHOLE_GUARDED_MEMORY_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { UNTOUCHED = 0x5a };

/* Where memory lies within its pages. */
typedef struct Guard { size_t page, all, before, after; } Guard;

static inline Guard guard_of(size_t bytes, size_t align)
{
    Guard g = {.page = (size_t)sysconf(_SC_PAGESIZE)};
    g.all = (bytes / g.page + 1) * g.page;
    g.before = (g.all - bytes) / align * align;
    g.after = g.all - bytes - g.before;
    return g;
}

static inline void *guarded(size_t bytes, size_t align)
{
    const Guard g = guard_of(bytes, align);
    char *map = mmap(NULL, g.all + 2 * g.page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                     -1, 0);
    if (map == MAP_FAILED || mprotect(map, g.page, PROT_NONE) != 0
        || mprotect(map + g.page + g.all, g.page, PROT_NONE) != 0)
        exit((fprintf(stderr, "no guarded memory\n"), 1));
    char *at = map + g.page + g.before;
    memset(at - g.before, UNTOUCHED, g.before);
    memset(at + bytes, UNTOUCHED, g.after);
    return at;
}

/* Ends the process with 1 if something was written beside the memory. */
static inline void unguard(void *memory, size_t bytes, size_t align)
{
    const Guard g = guard_of(bytes, align);
    char *at = memory, *begin = at - g.before;
    for (size_t k = 0; k < g.before + g.after; k++)
        if ((k < g.before ? begin[k] : at[bytes + k - g.before]) != UNTOUCHED)
            exit((fprintf(stderr, "something was written beside %zu bytes of memory\n", bytes), 1));
    munmap(begin - g.page, g.all + 2 * g.page);
}

#endif
