/* runtime/engine/thread_pool.c -- a pool of threads that take pieces of a range until none is left.
 *
 * A job is one call of ls_parallel. Its range is cut into pieces, and every thread has a contiguous
 * share of them: the same part of the range in every job, so that it mostly reads data that it
 * wrote itself and that its core has cached. A thread takes its own pieces from the front, and then
 * those of others from the back. A compare-and-swap takes a piece, so a late thread (asleep, or not
 * scheduled by the system) delays the job only if it holds a piece. The job's fields are written
 * before its shares are published and not again before `done` has reached the number of pieces, so
 * the owner of a piece may read them without a lock.
 *
 * Idle threads look for work for a short while and then sleep on a condition: steps follow each
 * other within microseconds while training runs, but a pool must not burn a core when its program
 * waits. */
#include "runtime/engine/thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
    SPIN = 4000,                /* polls before an idle thread sleeps: some 50 us */
    SPIN_CALLER = 20000,        /* polls before the caller yields its core to the last pieces */
    PIECES = 8,                 /* per thread: evens out pieces of unequal length */
    STACK = 8 << 20,            /* bytes; kernels keep tiles of up to a few MiB on the stack */
};

/* Free pieces [from, to) of a thread: from + (to << 32). */
typedef struct Share { _Alignas(64) atomic_uint_fast64_t left; } Share;

struct LsPool {
    int threads;                /* the caller included, which is thread 0 */
    atomic_int started;         /* threads that know their number */
    pthread_t *thread;
    Share *share;               /* by thread */
    LsParallelFor parallel_for; /* the caller's threads; NULL: the pool has its own */
    void *context;
    LsRun *run;                 /* the job: see the head comment */
    LsPart fn;
    void *const *arg;
    int64_t units, pieces;
    _Alignas(64) atomic_uint_fast64_t job;      /* number of jobs so far */
    _Alignas(64) atomic_int_fast64_t done;
    _Alignas(64) atomic_int asleep;     /* threads waiting on `work` */
    atomic_int waiting;         /* the caller waits on `ready` */
    atomic_int stop;
    pthread_mutex_t lock;
    pthread_cond_t work, ready;
};

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

/* Takes a piece of a share, the first or the last; -1: there is none. */
static int64_t take(Share *s, bool last)
{
    uint_fast64_t left = atomic_load_explicit(&s->left, memory_order_relaxed), from, to;
    do {
        from = left & UINT32_MAX;
        to = left >> 32;
        if (from >= to)
            return -1;
    } while (!atomic_compare_exchange_weak_explicit(&s->left, &left,
                                                    last ? from | (to - 1) << 32 : left + 1,
                                                    memory_order_acquire, memory_order_relaxed));
    return (int64_t)(last ? to - 1 : from);
}

static void compute(LsPool *p, int64_t piece)
{
    int64_t pieces = p->pieces;
    p->fn(p->run, p->arg, p->units * piece / pieces, p->units * (piece + 1) / pieces);
    /* Ordered with `waiting` as in await: at least one side sees the other's write. */
    if (atomic_fetch_add(&p->done, 1) + 1 == pieces && atomic_load(&p->waiting)) {
        pthread_mutex_lock(&p->lock);
        pthread_cond_signal(&p->ready);
        pthread_mutex_unlock(&p->lock);
    }
}

/* Work of thread `me`: its own pieces, then free pieces of others. */
static void work(LsPool *p, int me)
{
    for (int k = 0; k < p->threads; k++) {
        Share *s = &p->share[(me + k) % p->threads];
        for (int64_t piece; (piece = take(s, k > 0)) >= 0;)
            compute(p, piece);
    }
}

static void work_for(void *of, int k) { work(of, k); }

static void sleep_for_work(LsPool *p, uint_fast64_t seen)
{
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add(&p->asleep, 1);
    while (atomic_load(&p->job) == seen && !atomic_load(&p->stop))
        pthread_cond_wait(&p->work, &p->lock);
    atomic_fetch_sub(&p->asleep, 1);
    pthread_mutex_unlock(&p->lock);
}

static void *worker(void *user)
{
    LsPool *p = user;
    int me = atomic_fetch_add(&p->started, 1) + 1;
    uint_fast64_t seen = 0;
    while (!atomic_load_explicit(&p->stop, memory_order_relaxed)) {
        int spin = 0;
        while (spin < SPIN && atomic_load_explicit(&p->job, memory_order_acquire) == seen
               && !atomic_load_explicit(&p->stop, memory_order_relaxed)) {
            relax();
            spin++;
        }
        if (spin == SPIN)
            sleep_for_work(p, seen);
        seen = atomic_load_explicit(&p->job, memory_order_acquire);
        work(p, me);
    }
    return NULL;
}

/* Waits until every piece is computed; the caller has found none left to take. */
static void await(LsPool *p)
{
    for (int spin = 0; spin < SPIN_CALLER; spin++) {
        if (atomic_load_explicit(&p->done, memory_order_acquire) == p->pieces)
            return;
        relax();
    }
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->waiting, 1);
    while (atomic_load(&p->done) != p->pieces)
        pthread_cond_wait(&p->ready, &p->lock);
    atomic_store(&p->waiting, 0);
    pthread_mutex_unlock(&p->lock);
}

void ls_parallel(LsRun *run, LsPart fn, int64_t units, void *const arg[])
{
    LsPool *p = run->pool;
    if (units <= 0)
        return;
    if (p == NULL || p->threads == 1 || units == 1) {
        fn(run, arg, 0, units);
        return;
    }
    p->run = run;
    p->fn = fn;
    p->arg = arg;
    p->units = units;
    p->pieces = units < PIECES * p->threads ? units : PIECES * p->threads;
    atomic_store_explicit(&p->done, 0, memory_order_relaxed);
    for (int64_t t = 0, n = p->threads; t < n; t++) {
        uint_fast64_t from = (uint_fast64_t)(p->pieces * t / n);
        uint_fast64_t to = (uint_fast64_t)(p->pieces * (t + 1) / n);
        atomic_store_explicit(&p->share[t].left, from | to << 32, memory_order_release);
    }
    if (p->parallel_for != NULL) {
        p->parallel_for(p->context, p->threads, work_for, p);
        return;
    }
    atomic_fetch_add(&p->job, 1);       /* ordered with `asleep` as in sleep_for_work */
    if (atomic_load(&p->asleep) > 0) {
        pthread_mutex_lock(&p->lock);
        pthread_cond_broadcast(&p->work);
        pthread_mutex_unlock(&p->lock);
    }
    work(p, 0);
    await(p);
}

static bool start(LsPool *p, int i)
{
    pthread_attr_t attr;
    if (pthread_attr_init(&attr) != 0)
        return false;
    pthread_attr_setstacksize(&attr, STACK);
    int err = pthread_create(&p->thread[i], &attr, worker, p);
    pthread_attr_destroy(&attr);
    return err == 0;
}

/* A pool without threads, and shares for n of them. */
static LsPool *make(size_t n)
{
    LsPool *p = aligned_alloc(64, (sizeof *p + 63) / 64 * 64);
    if (p == NULL)
        return NULL;
    *p = (LsPool){.threads = 1};
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->ready, NULL);
    p->thread = calloc(n, sizeof *p->thread);
    p->share = aligned_alloc(64, n * sizeof *p->share);
    if (p->thread == NULL || p->share == NULL) {
        ls_pool_destroy(p);
        return NULL;
    }
    for (size_t t = 0; t < n; t++)
        atomic_init(&p->share[t].left, 0);
    return p;
}

LsPool *ls_pool_create(int threads)
{
    LsPool *p = make(threads > 1 ? (size_t)threads : 1);
    while (p != NULL && p->threads < threads) {
        if (!start(p, p->threads)) {
            ls_pool_destroy(p);
            return NULL;
        }
        p->threads++;
    }
    return p;
}

LsPool *ls_pool_borrow(LsParallelFor parallel_for, void *context, int tasks)
{
    LsPool *p = make(tasks > 1 ? (size_t)tasks : 1);
    if (p != NULL) {
        p->threads = tasks > 1 ? tasks : 1;
        p->parallel_for = parallel_for;
        p->context = context;
    }
    return p;
}

void ls_pool_forget(LsPool *p)
{
    free(p->share);
    free(p->thread);
    free(p);
}

void ls_pool_destroy(LsPool *p)
{
    if (p == NULL)
        return;
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->stop, 1);
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (int i = 1; i < p->threads && p->parallel_for == NULL; i++)
        pthread_join(p->thread[i], NULL);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->work);
    pthread_cond_destroy(&p->ready);
    ls_pool_forget(p);
}

int ls_pool_threads(const LsPool *p)
{
    return p->threads;
}
