/* base/arena.h -- one arena per compilation owns everything reachable from LsCtx. */
#ifndef LS_BASE_ARENA_H
#define LS_BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

typedef struct LsArena LsArena;

LsArena *ls_arena_new(void);
void ls_arena_free(LsArena *a);

/* Called with p and n when the arena is freed: for what a compilation holds besides memory. */
void ls_arena_at_end(LsArena *a, void (*end)(void *p, size_t n), void *p, size_t n);

/* n * size zeroed bytes, aligned to 64, below 64 bytes to 16; never NULL. Running out of memory ends the process with
 * exit code 1 and a sentence: the one thing the compiler exits on. */
void *ls_arena_alloc(LsArena *a, size_t n, size_t size);

/* The first `used` items of `old` in a block of at least `want`; *cap is
 * updated. Grows by doubling. */
void *ls_arena_grow(LsArena *a, void *old, size_t used, size_t want, size_t size, uint32_t *cap);

char *ls_arena_strdup(LsArena *a, const char *s);
__attribute__((format(printf, 2, 3))) char *ls_arena_printf(LsArena *a, const char *fmt, ...);

#endif
