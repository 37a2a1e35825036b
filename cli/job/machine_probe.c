/* cli/job/machine_probe.c -- see machine_probe.h. Every thread has a product and memory of its own,
 * and all go on at the same time; their speeds add up. A thread whose core another process takes
 * goes on until it had its time, so that its best is not that of a moment in which it waited. */
#include "cli/job/machine_probe.h"

#include "runtime/base/clock.h"

#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROWS = 8, DEPTH = 256, RUNS = 100, MS = 1000000 };
enum { PART = 1 << 17 };        /* floats that are passed over between two looks at the clock */
enum { PRODUCT_MS = 18, PASS_MS = 18, WAIT = 6, MOST_THREADS = 256 };
static const int64_t MEMORY = 16 << 20;         /* bytes of all threads, at least; of each, four
                                                 * parts at least */

/* C += A B with ROWS x DEPTH and DEPTH x two vectors, in registers. B and C are of vectors. */
#define PRODUCT(NAME, BYTES, TARGET)                                                               \
    TARGET static void NAME(const float *a, const float *b, float *c)                              \
    {                                                                                              \
        typedef float Vector __attribute__((vector_size(BYTES), aligned(4), may_alias));           \
        enum { LANES = BYTES / 4 };                                                                \
        Vector sum[ROWS][2] = {{{0}}};                                                             \
        for (int k = 0; k < DEPTH; k++) {                                                          \
            const Vector left = *(const Vector *)(const void *)(b + 2 * LANES * k);                \
            const Vector right = *(const Vector *)(const void *)(b + 2 * LANES * k + LANES);       \
            _Pragma("GCC unroll 8") for (int r = 0; r < ROWS; r++)                                 \
            {                                                                                      \
                sum[r][0] += a[ROWS * k + r] * left;                                               \
                sum[r][1] += a[ROWS * k + r] * right;                                              \
            }                                                                                      \
        }                                                                                          \
        for (int r = 0; r < ROWS; r++)                                                             \
            for (int j = 0; j < LANES; j++)                                                        \
                c[r] += sum[r][0][j] + sum[r][1][j];                                               \
    }

#if defined __x86_64__
PRODUCT(product_512, 64, __attribute__((target("avx512f"))))
PRODUCT(product_256, 32, __attribute__((target("avx2,fma"))))
#endif
PRODUCT(product_128, 16, )

typedef void Product(const float *a, const float *b, float *c);

static Product *choose(int *lanes)
{
#if defined __x86_64__
    *lanes = 16;
    if (__builtin_cpu_supports("avx512f"))
        return product_512;
    *lanes = 8;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return product_256;
#endif
    *lanes = 4;
    return product_128;
}

typedef struct Prober {
    pthread_t thread;
    float *memory;
    int64_t floats;
    double flops, bytes;        /* of this thread: per ns, at the best of many short times, in which
                                 * it was not held up */
} Prober;

/* ns that this thread ran. */
static int64_t own_ns(void)
{
    struct timespec t;
    return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0 ? t.tv_sec * 1000LL * MS + t.tv_nsec : 0;
}

typedef struct Window { int64_t start, own; int ms; } Window;

static Window window(int ms) { return (Window){ls_now_ns(), own_ns(), ms}; }

/* So many ms went by, and the thread ran for half of them; or WAIT times as many. */
static bool is_over(const Window *w, int64_t now)
{
    const int64_t length = w->ms * (int64_t)MS, passed = now - w->start;
    return passed >= WAIT * length || (passed >= length && own_ns() - w->own >= length / 2);
}

static void probe_product(Prober *p)
{
    static _Thread_local float a[ROWS * DEPTH], b[2 * 16 * DEPTH], c[ROWS];
    int lanes;
    Product *product = choose(&lanes);
    for (int k = 0; k < ROWS * DEPTH; k++)
        a[k] = (float)(k % 7) * 0.125f;
    for (int k = 0; k < 2 * 16 * DEPTH; k++)
        b[k] = (float)(k % 5) * 0.25f;
    const double work = 2.0 * ROWS * DEPTH * 2 * lanes * RUNS;
    const Window w = window(PRODUCT_MS);
    for (int64_t from = w.start, now; !is_over(&w, from); from = now) {
        for (int k = 0; k < RUNS; k++)
            product(a, b, c);
        now = ls_now_ns();
        p->flops = fmax(p->flops, work / (double)(now - from));
    }
    p->memory[0] = c[0];
}

static void probe_memory(Prober *p)
{
    typedef float Vector __attribute__((vector_size(16), may_alias));
    const Window w = window(PASS_MS);
    int64_t part = 0;
    for (int64_t from = w.start, now; !is_over(&w, from); from = now) {
        Vector *at = (Vector *)(void *)(p->memory + part * PART);
        for (int64_t k = 0; k < PART / 4; k++)
            at[k] = at[k] * 0.5f + 1;
        part = (part + 1) % (p->floats / PART);
        now = ls_now_ns();
        p->bytes = fmax(p->bytes, 8.0 * PART / (double)(now - from));
    }
}

static void *probe(void *arg)
{
    Prober *p = arg;
    /* pages are there before time counts */
    memset(p->memory, 0, (size_t)p->floats * sizeof *p->memory);
    probe_product(p);
    probe_memory(p);
    return NULL;
}

/* One of them by this thread. False: threads are short. */
static bool probe_all(Prober *p, int threads)
{
    int n = 1;
    while (n < threads && pthread_create(&p[n].thread, NULL, probe, &p[n]) == 0)
        n++;
    probe(&p[0]);
    for (int k = 1; k < n; k++)
        pthread_join(p[k].thread, NULL);
    return n == threads;
}

bool ls_machine_probe(int threads, LsProbed *to)
{
    Prober *p = threads <= MOST_THREADS ? calloc((size_t)threads, sizeof *p) : NULL;
    const int64_t share = MEMORY / (int64_t)sizeof(float) / PART / threads,
                  floats = PART * (share < 4 ? 4 : share);
    float *memory =
        p != NULL ? aligned_alloc(64, (size_t)(floats * threads) * sizeof *memory) : NULL;
    bool ok = memory != NULL;
    for (int k = 0; ok && k < threads; k++) {
        p[k].memory = memory + k * floats;
        p[k].floats = floats;
    }
    ok = ok && probe_all(p, threads);
    *to = (LsProbed){0, 0};
    for (int k = 0; ok && k < threads; k++) {
        to->flops += p[k].flops;
        to->memory += p[k].bytes;
    }
    free(memory);
    free(p);
    return ok;
}
