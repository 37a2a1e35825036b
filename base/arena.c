/* base/arena.c -- blocks from calloc in a list, each twice as large as the last up to a limit: most
 * arenas are small and short-lived. A request above the limit gets its own. */
#include "base/arena.h"

#include "base/heap.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL = 16, ALIGN = 64, FIRST = 1 << 13, BLOCK = 1 << 20 };

typedef struct Block {
    struct Block *next;
    size_t used, size;
    char *byte;                 /* behind the header, aligned */
} Block;

typedef struct Ending {
    struct Ending *next;
    void (*end)(void *p, size_t n);
    void *p;
    size_t n;
} Ending;

struct LsArena {
    Block *block;
    Ending *ending;
    size_t next;                /* bytes of the next block */
};

LsArena *ls_arena_new(void)
{
    LsArena *a = ls_heap_alloc(1, sizeof *a);
    a->next = FIRST;
    return a;
}

void ls_arena_free(LsArena *a)
{
    if (a == NULL)
        return;
    for (Ending *e = a->ending; e != NULL; e = e->next)
        e->end(e->p, e->n);
    for (Block *b = a->block, *next; b != NULL; b = next) {
        next = b->next;
        free(b);
    }
    free(a);
}

static Block *add_block(LsArena *a, size_t bytes)
{
    while (a->next < bytes && a->next < BLOCK)
        a->next *= 2;
    size_t size = bytes > BLOCK ? bytes : a->next;
    /* calloc, not aligned_alloc and memset: large blocks come from the kernel as zeros already. */
    Block *b = ls_heap_alloc(1, sizeof *b + size + ALIGN);
    b->byte = (char *)(((uintptr_t)(b + 1) + ALIGN - 1) / ALIGN * ALIGN);
    b->size = size;
    if (bytes > BLOCK && a->block != NULL) {    /* keep filling the block that has room */
        b->next = a->block->next;
        a->block->next = b;
    } else {
        b->next = a->block;
        a->block = b;
        a->next *= a->next < BLOCK ? 2 : 1;
    }
    return b;
}

void *ls_arena_alloc(LsArena *a, size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes) || bytes > PTRDIFF_MAX - 2 * BLOCK)
        ls_out_of_memory(n, size);
    bytes = (bytes + SMALL - 1) / SMALL * SMALL;
    const size_t align = bytes < ALIGN ? SMALL : ALIGN;     /* most are names and small structs */
    Block *b = a->block;
    size_t at = b == NULL ? 0 : (b->used + align - 1) / align * align;
    if (b == NULL || at > b->size || b->size - at < bytes) {
        b = add_block(a, bytes);
        at = b->used;
    }
    b->used = at + bytes;
    return b->byte + at;
}

void ls_arena_at_end(LsArena *a, void (*end)(void *p, size_t n), void *p, size_t n)
{
    Ending *e = ls_arena_alloc(a, 1, sizeof *e);
    *e = (Ending){a->ending, end, p, n};
    a->ending = e;
}

void *ls_arena_grow(LsArena *a, void *old, size_t used, size_t want, size_t size, uint32_t *cap)
{
    if (want <= *cap)
        return old;
    size_t more = *cap < 8 ? 16 : 2 * (size_t)*cap;
    if (more < want)
        more = want;
    void *p = ls_arena_alloc(a, more, size);
    if (used > 0)
        memcpy(p, old, used * size);
    *cap = (uint32_t)more;
    return p;
}

char *ls_arena_strdup(LsArena *a, const char *s)
{
    size_t n = strlen(s) + 1;
    return memcpy(ls_arena_alloc(a, n, 1), s, n);
}

char *ls_arena_vprintf(LsArena *a, const char *fmt, va_list ap)
{
    va_list again;
    assert(fmt != NULL);        /* else the sanitizers' own null checks trip -Wformat */
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    char *s = ls_arena_alloc(a, (size_t)n + 1, 1);
    vsnprintf(s, (size_t)n + 1, fmt, again);
    va_end(again);
    return s;
}

char *ls_arena_printf(LsArena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *s = ls_arena_vprintf(a, fmt, ap);
    va_end(ap);
    return s;
}
