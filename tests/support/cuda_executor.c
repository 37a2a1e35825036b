/* tests/support/cuda_executor.c -- blocks, threads, barriers and shuffles of
 * tests/support/cuda_executor.h.
 *
 * A fiber is made once, on a stack of its own, and takes one thread of block after block. It
 * switches to the scheduler and back by setjmp and longjmp, which unlike swapcontext need no system
 * call. The scheduler lets a thread run until it waits or ends, and releases threads when all that
 * they wait for have arrived. If it can release no thread and not all have ended, the kernel is
 * wrong. */
#undef _FORTIFY_SOURCE          /* its longjmp treats a jump to another stack as an error */
#include "tests/support/cuda_executor.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#if defined __SANITIZE_ADDRESS__
#define SANITIZED 1
#elif defined __has_feature
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifdef SANITIZED
#include <sanitizer/common_interface_defs.h>
#endif

enum { THREADS = 1024, WARP = 32, STACK = 128 << 10, GUARD = 4096, ARRAYS = 256 };

typedef enum { READY, WAITING, ENDED } State;

typedef struct Thread {
    ExecNow now;
    State state;
    ExecWait wait;              /* while WAITING: kind, lanes and place of the wait */
    uint32_t mask;
    int line;
    unsigned by;
    uint64_t out, in;           /* of a shuffle */
    bool started;               /* `at` is valid */
    char *stack;
    jmp_buf at;
    void *fake;                 /* of the sanitizer */
} Thread;

typedef struct Mma { float a[4], b[2], c[4]; } Mma;     /* given by a lane, and got */

typedef struct Array { void *p; int64_t block; } Array;

static struct {
    Thread thread[THREADS];
    int count, self;            /* threads of a block; the one that runs */
    bool exact_factors;
    unsigned order;
    uint64_t random;
    int turn[THREADS];          /* threads in the order in which they run */
    const ExecPart *part;
    const struct LsRun *run;
    void *const *arg;
    int64_t block;
    Array array[ARRAYS]; int narray;
    jmp_buf scheduler;
    void *fake;
    const void *bottom; size_t size;    /* the scheduler's stack, for the sanitizer */
    char error[320], told[320];
} ex;

const ExecNow *exec_now;

/* ---- errors ---- */
static const char *where(int t, char *to, size_t size)
{
    const Thread *h = &ex.thread[t];
    int n = snprintf(to, size, "thread (%d, %d) ", t % ex.part->x, t / ex.part->x);
    to += n, size -= (size_t)n;
    if (h->state == ENDED)
        snprintf(to, size, "has ended");
    else if (h->state == READY)
        snprintf(to, size, "runs");
    else if (h->wait == EXEC_BLOCK)
        snprintf(to, size, "waits for the block at line %d", h->line);
    else
        snprintf(to, size, "waits for lanes %08" PRIx32 " %sat line %d", h->mask,
                 h->wait == EXEC_SHUFFLE ? "to shuffle "
                 : h->wait == EXEC_MMA   ? "to multiply "
                                         : "",
                 h->line);
    return to - n;
}

static void fail(int a, const char *and, int b)
{
    char one[100], other[100];
    if (ex.error[0] == '\0')
        snprintf(ex.error, sizeof ex.error, "%s: block %" PRId64 ": %s%s%s", ex.part->name,
                 ex.block, where(a, one, sizeof one), and,
                 b < 0 ? "" : where(b, other, sizeof other));
}

void exec_exact_factors(void) { ex.exact_factors = true; }

const char *exec_error(void)
{
    memcpy(ex.told, ex.error, sizeof ex.told);
    ex.error[0] = '\0';
    return ex.told[0] != '\0' ? ex.told : NULL;
}

/* ---- fibers ---- */
static void leave_for(void **fake, const void *bottom, size_t size)
{
#ifdef SANITIZED
    __sanitizer_start_switch_fiber(fake, bottom, size);
#else
    (void)fake, (void)bottom, (void)size;
#endif
}

static void arrive(void *fake, const void **bottom, size_t *size)
{
#ifdef SANITIZED
    __sanitizer_finish_switch_fiber(fake, bottom, size);
#else
    (void)fake, (void)bottom, (void)size;
#endif
}

static void give_way(Thread *h)
{
    leave_for(&h->fake, ex.bottom, ex.size);
    if (_setjmp(h->at) == 0)
        _longjmp(ex.scheduler, 1);
    arrive(h->fake, &ex.bottom, &ex.size);
}

static void fiber(void)
{
    arrive(NULL, &ex.bottom, &ex.size);
    for (;;) {
        ex.part->unit(ex.run, ex.arg, ex.part->x, ex.part->y);
        Thread *h = &ex.thread[ex.self];
        h->state = ENDED;
        give_way(h);
    }
}

static void need_stack(Thread *h)
{
    if (h->stack != NULL)
        return;
    h->stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (h->stack == MAP_FAILED || mprotect(h->stack, GUARD, PROT_NONE) != 0)
        abort();
}

static void start(Thread *h)
{
    static ucontext_t c;
    h->started = true;
    getcontext(&c);
    c.uc_stack.ss_sp = h->stack + GUARD;
    c.uc_stack.ss_size = STACK - GUARD;
    makecontext(&c, fiber, 0);
    setcontext(&c);
}

static void resume(int t)
{
    Thread *h = &ex.thread[t];
    ex.self = t;
    exec_now = &h->now;
    need_stack(h);
    leave_for(&ex.fake, h->stack + GUARD, STACK - GUARD);
    if (_setjmp(ex.scheduler) == 0) {
        if (h->started)
            _longjmp(h->at, 1);
        start(h);
    }
    arrive(ex.fake, NULL, NULL);
}

/* ---- for kernels ---- */
uint64_t exec_wait(ExecWait what, uint32_t mask, int line, uint64_t bits, unsigned by)
{
    Thread *h = &ex.thread[ex.self];
    h->state = WAITING;
    h->wait = what;
    h->mask = mask;
    h->line = line;
    h->by = by;
    h->out = bits;
    give_way(h);
    return h->in;
}

void exec_mma_at(float c[4], const float a[4], const float b[2], int line)
{
    Mma m;
    memcpy(m.a, a, sizeof m.a);
    memcpy(m.b, b, sizeof m.b);
    memcpy(m.c, c, sizeof m.c);
    exec_wait(EXEC_MMA, 0xffffffffu, line, (uint64_t)(uintptr_t)&m, 0);
    memcpy(c, m.c, sizeof m.c);
}

void exec_shared(void *p, size_t bytes)
{
    Array *a = ex.array;
    while (a < ex.array + ex.narray && a->p != p)
        a++;
    if (a == ex.array + ex.narray) {
        if (ex.narray == ARRAYS)
            abort();
        *a = (Array){p, -1};
        ex.narray++;
    }
    if (a->block != ex.block)
        memset(p, 0xff, bytes);
    a->block = ex.block;
}

void exec_trap(int line)
{
    char text[64];
    snprintf(text, sizeof text, " and is trapped at line %d", line);
    fail(ex.self, text, -1);
}

/* ---- the scheduler ---- */
static bool same_wait(const Thread *a, const Thread *b)
{
    return b->state == WAITING && a->wait == b->wait && a->mask == b->mask && a->line == b->line;
}

/* The lane of the warp with first thread w for which the waiting threads still wait; -1: none. */
static int missing(const Thread *h, int w)
{
    for (int l = 0; l < WARP; l++)
        if (h->mask >> l & 1 && (w + l >= ex.count || !same_wait(h, &ex.thread[w + l])))
            return l;
    return -1;
}

static bool is_tf32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return ex.exact_factors || bits % (1 << 13) == 0;
}

/* The product of the warp whose first thread is w. An element (r, c) of a factor or a sum is a
 * number of one lane: PTX ISA, "Matrix Fragments for mma.m16n8k8", .tf32. */
static void multiply(int w)
{
    double a[16][8], b[8][8];
    for (int l = 0; l < WARP; l++) {
        const Mma *m = (const Mma *)(uintptr_t)ex.thread[w + l].out;
        for (int e = 0; e < 4; e++)
            a[l / 4 + (e % 2 ? 8 : 0)][l % 4 + (e < 2 ? 0 : 4)] = m->a[e];
        for (int e = 0; e < 2; e++)
            b[l % 4 + 4 * e][l / 4] = m->b[e];
        for (int e = 0; e < 6; e++)
            if (!is_tf32(e < 4 ? m->a[e] : m->b[e - 4]))
                fail(w + l, " but brings a factor that is not TF32", -1);
    }
    for (int l = 0; l < WARP; l++) {
        Mma *m = (Mma *)(uintptr_t)ex.thread[w + l].out;
        for (int e = 0; e < 4; e++) {
            const int r = l / 4 + (e < 2 ? 0 : 8), c = l % 4 * 2 + e % 2;
            double sum = m->c[e];
            for (int k = 0; k < 8; k++)
                sum += a[r][k] * b[k][c];
            m->c[e] = (float)sum;
        }
    }
}

/* Releases the lanes that thread t waits for, if all have arrived. */
static bool release_lanes(int t)
{
    Thread *h = &ex.thread[t];
    int w = t / WARP * WARP;
    if ((h->mask >> (t - w) & 1) == 0 || missing(h, w) >= 0)
        return false;
    uint32_t mask = h->mask;
    if (h->wait == EXEC_MMA)
        multiply(w);
    for (int l = 0; l < WARP; l++)
        if (mask >> l & 1) {
            Thread *to = &ex.thread[w + l];
            unsigned from = (unsigned)l ^ to->by;
            if (to->wait == EXEC_SHUFFLE && (from >= WARP || (mask >> from & 1) == 0))
                fail(w + l, " but takes from a lane beyond", -1);
            else
                to->in = ex.thread[w + (int)from].out;
        }
    for (int l = 0; l < WARP; l++)
        if (mask >> l & 1)
            ex.thread[w + l].state = READY;
    return true;
}

static bool release_block(void)
{
    const Thread *first = &ex.thread[0];
    for (int t = 0; t < ex.count; t++)
        if (first->wait != EXEC_BLOCK || !same_wait(first, &ex.thread[t]))
            return false;
    for (int t = 0; t < ex.count; t++)
        ex.thread[t].state = READY;
    return true;
}

/* No thread can continue: reports which thread waits for which. */
static void stuck(void)
{
    int block = -1;
    for (int t = 0; t < ex.count; t++) {
        const Thread *h = &ex.thread[t];
        int w = t / WARP * WARP, l;
        if (h->state != WAITING)
            continue;
        if (h->wait == EXEC_BLOCK) {
            block = block < 0 ? t : block;
        } else if ((h->mask >> (t - w) & 1) == 0) {
            fail(t, ", not one of them", -1);
        } else if ((l = missing(h, w)) >= 0) {
            fail(t, w + l < ex.count ? ", " : ", which are not all there",
                 w + l < ex.count ? w + l : -1);
        }
    }
    for (int t = 0; t < ex.count && block >= 0; t++)
        if (!same_wait(&ex.thread[block], &ex.thread[t]))
            fail(block, ", ", t);
}

static void shuffle_turns(void)
{
    for (int k = 0; k < ex.count; k++)
        ex.turn[k] = ex.order == 1 ? ex.count - 1 - k : k;
    for (int k = ex.count - 1; k > 0 && ex.order > 1; k--) {
        ex.random = ex.random * 6364136223846793005u + 1442695040888963407u;
        int j = (int)((ex.random >> 33) % (uint64_t)(k + 1)), t = ex.turn[k];
        ex.turn[k] = ex.turn[j];
        ex.turn[j] = t;
    }
}

/* Lets every thread run to its end or the block's next barrier; threads that are first in the order
 * run as far ahead as possible. Returns the number of ended threads. */
static int run_threads(void)
{
    int ended = 0;
    shuffle_turns();
    for (int k = 0; k < ex.count; k++) {
        Thread *h = &ex.thread[ex.turn[k]];
        if (h->state != READY)
            continue;
        resume(ex.turn[k]);
        if (h->state == WAITING && h->wait != EXEC_BLOCK && release_lanes(ex.turn[k]))
            k = -1;
    }
    for (int t = 0; t < ex.count; t++)
        ended += ex.thread[t].state == ENDED;
    return ended;
}

/* Until all have ended; false: an error. */
static bool run_block(void)
{
    while (run_threads() < ex.count && ex.error[0] == '\0')
        if (!release_block()) {
            stuck();
            return false;
        }
    return ex.error[0] == '\0';
}

/* ---- for callers that run kernels ---- */
void exec_order(unsigned seed)
{
    ex.order = seed;
    ex.random = seed;
}

void exec_launch(const ExecPart *part, int64_t units, const struct LsRun *run, void *const arg[])
{
    if (ex.error[0] != '\0')
        return;
    ex.part = part;
    ex.run = run;
    ex.arg = arg;
    ex.count = part->x * part->y;
    ex.narray = 0;
    if (ex.count < 1 || ex.count > THREADS) {
        snprintf(ex.error, sizeof ex.error, "%s: blocks of %d threads", part->name, ex.count);
        return;
    }
    for (ex.block = 0; ex.block < units; ex.block++) {
        for (int t = 0; t < ex.count; t++) {
            ExecNow *now = &ex.thread[t].now;
            now->thread = (Dim3){(unsigned)(t % part->x), (unsigned)(t / part->x), 0};
            now->block = (Dim3){(unsigned)ex.block, 0, 0};
            now->block_dim = (Dim3){(unsigned)part->x, (unsigned)part->y, 1};
            now->grid_dim = (Dim3){(unsigned)units, 1, 1};
            ex.thread[t].state = READY;
        }
        if (!run_block()) {     /* the fibers stopped inside the kernel: make new fibers */
            for (int t = 0; t < THREADS; t++)
                ex.thread[t].started = false;
            return;
        }
    }
}
