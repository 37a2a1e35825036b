/* tests/support/fail_allocation.c -- loaded before a program (LD_PRELOAD): allocation number
 * LS_FAIL_AT fails, once. With LS_FAIL_COUNT=FILE the number of allocations is written there when
 * the program ends. Those after the end of main are not counted: they are of a library that counts
 * lines. */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long at, done;           /* at: 0 for none */
static bool began, ended;

/* What dlsym allocates while the functions are looked up; never freed. */
static char early[1 << 16];
static size_t used;

static void *early_room(size_t n)
{
    used = (used + 15) / 16 * 16;
    void *p = early + used;
    used += n;
    return used <= sizeof early ? p : NULL;
}

static bool is_early(const void *p)
{
    return (const char *)p >= early && (const char *)p < early + sizeof early;
}

static void *(*real_malloc)(size_t), *(*real_calloc)(size_t, size_t),
    *(*real_realloc)(void *, size_t);
static void (*real_free)(void *);

static void find(void *to, const char *name)
{
    void *f = dlsym(RTLD_NEXT, name);
    memcpy(to, &f, sizeof f);
}

__attribute__((constructor)) static void begin(void)
{
    const char *text = getenv("LS_FAIL_AT");
    find(&real_malloc, "malloc");
    find(&real_calloc, "calloc");
    find(&real_realloc, "realloc");
    find(&real_free, "free");
    at = text != NULL ? atol(text) : 0;
    began = true;
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("LS_FAIL_COUNT");
    const long total = done;
    FILE *f = path != NULL ? fopen(path, "w") : NULL;
    if (f != NULL) {
        fprintf(f, "%ld\n", total);
        fclose(f);
    }
}

static void main_ended(void) { ended = true; }

static bool fails(void)
{
    static bool known;
    if (!known) {               /* not before: the program's own end comes in the reverse order */
        known = true;
        atexit(main_ended);
    }
    if (ended)
        return false;
    const long n = __atomic_add_fetch(&done, 1, __ATOMIC_RELAXED);
    if (n != at)
        return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t n) { return !began ? early_room(n) : fails() ? NULL : real_malloc(n); }

void *calloc(size_t n, size_t size)
{
    return !began ? early_room(n * size) : fails() ? NULL : real_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    if (!began || is_early(p)) {
        void *q = began ? real_malloc(n) : early_room(n);
        if (q != NULL && p != NULL)
            memcpy(q, p, n);
        return q;
    }
    return fails() ? NULL : real_realloc(p, n);
}

void free(void *p)
{
    if (!is_early(p) && p != NULL)
        real_free(p);
}
