/* dataset/ordered_work.c -- see the header. */
#include "dataset/ordered_work.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct State {
    const LsOrderedWork *w;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t next, taken; /* the next chunk to make; the first one that is not taken */
    bool *made;          /* by slot */
    bool taking, stop;
} State;

/* Takes all chunks that are next. Called and left with the lock. */
static void take_made(State *s)
{
    const LsOrderedWork *w = s->w;
    if (s->taking)
        return;
    s->taking = true;
    while (!s->stop && s->taken < w->chunks && s->made[s->taken % w->slots]) {
        const int64_t chunk = s->taken;
        pthread_mutex_unlock(&s->lock);
        const bool ok = w->take(w->to, chunk, (int)(chunk % w->slots));
        pthread_mutex_lock(&s->lock);
        s->made[chunk % w->slots] = false;
        s->taken++;
        s->stop |= !ok;
        pthread_cond_broadcast(&s->changed);
    }
    s->taking = false;
}

static void *work(void *arg)
{
    State *s = arg;
    const LsOrderedWork *w = s->w;
    pthread_mutex_lock(&s->lock);
    while (!s->stop && s->next < w->chunks) {
        if (s->next >= s->taken + w->slots) {
            pthread_cond_wait(&s->changed, &s->lock);
            continue;
        }
        const int64_t chunk = s->next++;
        pthread_mutex_unlock(&s->lock);
        w->make(w->to, chunk, (int)(chunk % w->slots));
        pthread_mutex_lock(&s->lock);
        s->made[chunk % w->slots] = true;
        take_made(s);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

bool ls_ordered_work(const LsOrderedWork *w, LsError *e)
{
    State s = {.w = w, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    pthread_t *thread = calloc((size_t)w->threads, sizeof *thread);
    int n = 1; /* this thread works, too */
    s.made = calloc((size_t)w->slots, sizeof *s.made);
    if (thread != NULL && s.made != NULL) {
        while (n < w->threads && pthread_create(&thread[n], NULL, work, &s) == 0)
            n++;
        work(&s);
        while (n > 1)
            pthread_join(thread[--n], NULL);
    } else {
        ls_fail(e, LS_EXIT_FAIL, "out of memory");
    }
    free(thread);
    free(s.made);
    return !s.stop && s.taken == w->chunks;
}
