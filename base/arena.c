/* base/arena.c -- blocks from calloc in a list, each twice as large as the last up to a limit: most
 * arenas are small and short-lived. A request above the limit gets its own. Arrays that are grown
 * and given back lie in mappings of their own: the allocator would keep their memory. */
#include "base/arena.h"

#include "base/heap.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Sanitizers report an access to an array that was given back. Under them a small array moves
 * whenever it is asked to grow, so that each pointer that is kept too long is seen. */
#ifdef __SANITIZE_ADDRESS__
#define MOVES(used) ((used) < 256)
#include <sanitizer/asan_interface.h>
#define FORBID(p, n) ASAN_POISON_MEMORY_REGION(p, n)
#define ALLOW(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#else
#define MOVES(used) false
#define FORBID(p, n) ((void)(p), (void)(n))
#define ALLOW(p, n) ((void)(p), (void)(n))
#endif

enum { SMALL = 8, ALIGN = 64, FIRST = 1 << 13, BLOCK = 1 << 20 };

typedef struct Block {
    struct Block *next;
    size_t used, size;
    size_t mapped;              /* bytes of the mapping that the block is; 0: it is from calloc */
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
        ALLOW(b->byte, b->size);
        if (b->mapped > 0)
            munmap(b, b->mapped);
        else
            free(b);
    }
    free(a);
}

/* A block goes behind the one that is being filled. */
static void add_behind(LsArena *a, Block *b)
{
    Block **at = a->block != NULL ? &a->block->next : &a->block;
    b->next = *at;
    *at = b;
}

static char *first_byte(Block *b)
{
    return (char *)(((uintptr_t)(b + 1) + ALIGN - 1) / ALIGN * ALIGN);
}

static Block *add_block(LsArena *a, size_t bytes)
{
    while (a->next < bytes && a->next < BLOCK)
        a->next *= 2;
    size_t size = bytes > BLOCK ? bytes : a->next;
    /* calloc, not aligned_alloc and memset: large blocks come from the kernel as zeros already. */
    Block *b = ls_heap_alloc(1, sizeof *b + size + ALIGN);
    b->byte = first_byte(b);
    b->size = size;
    if (bytes > BLOCK && a->block != NULL)      /* keep filling the block that has room */
        add_behind(a, b);
    else {
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

/* Items of an array that grows. */
static size_t more_items(size_t want, uint32_t cap)
{
    size_t more = cap < 4 ? 8 : 2 * (size_t)cap;
    return more < want ? want : more;
}

void *ls_arena_grow(LsArena *a, void *old, size_t used, size_t want, size_t size, uint32_t *cap)
{
    if (want <= *cap)
        return old;
    const size_t more = more_items(want, *cap);
    void *p = ls_arena_alloc(a, more, size);
    if (used > 0)
        memcpy(p, old, used * size);
    *cap = (uint32_t)more;
    return p;
}

/* The mapping whose only contents are `p`; NULL: there is none. */
static Block **mapping_of(LsArena *a, const void *p)
{
    for (Block **at = &a->block; *at != NULL; at = &(*at)->next)
        if ((*at)->mapped > 0 && (*at)->byte == p)
            return at;
    return NULL;
}

/* Makes the block a mapping of that many bytes, or a new one (at NULL) in the list. */
static Block *map_block(LsArena *a, Block **at, size_t bytes)
{
    const size_t mapped = bytes + sizeof(Block) + ALIGN;
    Block *b = at != NULL
                   ? mremap(*at, (*at)->mapped, mapped, MREMAP_MAYMOVE)
                   : mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (b == MAP_FAILED)
        ls_out_of_memory(1, bytes);
    b->mapped = mapped;
    b->byte = first_byte(b);
    b->used = b->size = bytes;
    if (at != NULL)
        *at = b;
    else
        add_behind(a, b);
    return b;
}

void *ls_arena_regrow(LsArena *a, void *old, size_t used, size_t want, size_t size, uint32_t *cap)
{
    if (want <= *cap && !MOVES(used))
        return old;
    const size_t more = more_items(want, MOVES(used) ? 0 : *cap), before = *cap * size;
    if (more < BLOCK / size) {
        void *p = ls_arena_alloc(a, more, size);
        if (used > 0)
            memcpy(p, old, used * size);
        *cap = (uint32_t)more;
        FORBID(old, before);
        return p;
    }
    size_t bytes;
    if (__builtin_mul_overflow(more, size, &bytes) || bytes > PTRDIFF_MAX - 2 * BLOCK)
        ls_out_of_memory(more, size);
    Block **at = mapping_of(a, old);
    Block *b = map_block(a, at, bytes);
    if (at == NULL && used > 0) {
        memcpy(b->byte, old, used * size);
        FORBID(old, before);
    }
    *cap = (uint32_t)more;
    return b->byte;
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

static void unmap(void *map, size_t n) { munmap(map, n); }

static size_t page(void) { return (size_t)sysconf(_SC_PAGESIZE); }

const void *ls_arena_map(LsArena *a, int fd, int64_t offset, size_t bytes)
{
    const size_t before = (size_t)offset % page();
    char *map =
        mmap(NULL, before + bytes, PROT_READ, MAP_PRIVATE, fd, (off_t)(offset - (int64_t)before));
    if (map == MAP_FAILED)
        return NULL;
    ls_arena_at_end(a, unmap, map, before + bytes);
    return map + before;
}

void ls_arena_let_go(const LsArena *a, const void *at, size_t n)
{
    const char *from = at;
    for (const Ending *e = a->ending; e != NULL; e = e->next)
        if (e->end == unmap && from >= (const char *)e->p
            && from + n <= (const char *)e->p + e->n) {
            const size_t before = (size_t)(from - (const char *)e->p) % page();
            madvise((void *)(from - before), before + n, MADV_DONTNEED);
            return;
        }
}
