/* runtime/pool.c -- a pool of threads that take pieces of a range until none is left.
 *
 * A job is one call of ls_parallel. Its range is cut into pieces; `left` counts those nobody has
 * taken. Whoever takes one down by compare-and-swap owns a piece, so a thread that is late
 * (asleep, or not scheduled by the system) is never waited for unless it holds a piece. The job's
 * fields are written before `left` is published and not again before `done` has reached the number
 * of pieces, so the owner of a piece may read them without a lock.
 *
 * Idle threads look for work for a short while and then sleep on a condition: steps follow each
 * other within microseconds while training runs, but a pool must not burn a core when its program
 * waits. */
#include "runtime/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
    SPIN = 4000,                /* looks before an idle thread sleeps: some 50 us */
    SPIN_CALLER = 20000,        /* looks before the caller gives up its core for the last pieces */
    PIECES = 8,                 /* per thread: evens out pieces of unequal length */
    STACK = 8 << 20,            /* bytes; kernels keep tiles of up to a few MiB on the stack */
};

struct LsPool {
    int threads;                /* the caller included */
    pthread_t *thread;
    LsRun *run;                 /* the job: see the head comment */
    LsPart fn;
    void *const *arg;
    int64_t units, pieces;
    _Alignas(64) atomic_int_fast64_t left;
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

/* Takes and computes one piece; false: there is none. */
static bool take(LsPool *p)
{
    int_fast64_t left = atomic_load_explicit(&p->left, memory_order_relaxed);
    do {
        if (left == 0)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&p->left, &left, left - 1,
                                                    memory_order_acquire, memory_order_relaxed));
    int64_t pieces = p->pieces, piece = pieces - left;
    p->fn(p->run, p->arg, p->units * piece / pieces, p->units * (piece + 1) / pieces);
    /* Ordered with `waiting` as in await: one of the two sees the other. */
    if (atomic_fetch_add(&p->done, 1) + 1 == pieces && atomic_load(&p->waiting)) {
        pthread_mutex_lock(&p->lock);
        pthread_cond_signal(&p->ready);
        pthread_mutex_unlock(&p->lock);
    }
    return true;
}

static void sleep_for_work(LsPool *p)
{
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add(&p->asleep, 1);
    while (atomic_load(&p->left) == 0 && !atomic_load(&p->stop))
        pthread_cond_wait(&p->work, &p->lock);
    atomic_fetch_sub(&p->asleep, 1);
    pthread_mutex_unlock(&p->lock);
}

static void *worker(void *user)
{
    LsPool *p = user;
    while (!atomic_load_explicit(&p->stop, memory_order_relaxed)) {
        int spin = 0;
        while (spin < SPIN && atomic_load_explicit(&p->left, memory_order_relaxed) == 0
               && !atomic_load_explicit(&p->stop, memory_order_relaxed)) {
            relax();
            spin++;
        }
        if (spin == SPIN)
            sleep_for_work(p);
        while (take(p))
            ;
    }
    return NULL;
}

/* Until every piece is computed; the caller has found none left to take. */
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
    atomic_store(&p->left, p->pieces);  /* ordered with `asleep` as in sleep_for_work */
    if (atomic_load(&p->asleep) > 0) {
        pthread_mutex_lock(&p->lock);
        pthread_cond_broadcast(&p->work);
        pthread_mutex_unlock(&p->lock);
    }
    while (take(p))
        ;
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

LsPool *ls_pool_create(int threads)
{
    LsPool *p = aligned_alloc(64, (sizeof *p + 63) / 64 * 64);
    if (p == NULL)
        return NULL;
    *p = (LsPool){.threads = 1};
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->ready, NULL);
    p->thread = calloc(threads > 1 ? (size_t)threads : 1, sizeof *p->thread);
    bool ok = p->thread != NULL;
    while (ok && p->threads < threads) {
        ok = start(p, p->threads);
        p->threads += ok;
    }
    if (!ok) {
        ls_pool_destroy(p);
        return NULL;
    }
    return p;
}

void ls_pool_destroy(LsPool *p)
{
    if (p == NULL)
        return;
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->stop, 1);
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (int i = 1; i < p->threads; i++)
        pthread_join(p->thread[i], NULL);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->work);
    pthread_cond_destroy(&p->ready);
    free(p->thread);
    free(p);
}

int ls_pool_threads(const LsPool *p)
{
    return p->threads;
}
