/* base/arena.h -- one arena per compilation owns everything reachable from LsCtx. */
#ifndef LS_BASE_ARENA_H
#define LS_BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

typedef struct LsArena LsArena;

LsArena *ls_arena_new(void);
void ls_arena_free(LsArena *a);

/* Registers end(p, n), called when the arena is freed: for resources other than memory that a
 * compilation holds. */
void ls_arena_at_end(LsArena *a, void (*end)(void *p, size_t n), void *p, size_t n);

/* Returns n * size zeroed bytes, never NULL. The alignment is 64 bytes, or 8 for blocks below 64
 * bytes. Out of memory ends the process with exit code 1 and a sentence: the compiler exits on
 * nothing else. */
void *ls_arena_alloc(LsArena *a, size_t n, size_t size);

/* Returns the first `used` items of `old` in a block for at least `want` items of `size` bytes.
 * Updates *cap; grows by doubling. */
void *ls_arena_grow(LsArena *a, void *old, size_t used, size_t want, size_t size, uint32_t *cap);

/* The same for an array that nobody points into: the memory of `old` is given back, or the array
 * stays where it is. */
void *ls_arena_regrow(LsArena *a, void *old, size_t used, size_t want, size_t size, uint32_t *cap);

char *ls_arena_strdup(LsArena *a, const char *s);
__attribute__((format(printf, 2, 3))) char *ls_arena_printf(LsArena *a, const char *fmt, ...);
__attribute__((format(printf, 2, 0))) char *ls_arena_vprintf(LsArena *a, const char *fmt,
                                                             va_list ap);

/* ---- files that the arena maps ---- */

enum { LS_ARENA_PART = 1 << 20 };       /* bytes to read before they are let go */

/* Maps `bytes` of a regular file from `offset` on, to be read, until the arena is freed. NULL with
 * errno. */
const void *ls_arena_map(LsArena *a, int fd, int64_t offset, size_t bytes);
/* Gives back the memory of bytes that were read from a mapped file: they are read again when they
 * are needed. Other bytes stay as they are. */
void ls_arena_let_go(const LsArena *a, const void *at, size_t n);

#endif
