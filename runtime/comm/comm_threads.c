/* runtime/comm/comm_threads.c -- see comm_threads.h.
 *
 * Every ordered pair of ranks has a list of messages that only one side has named so far. Whoever
 * names the other side finds its partner there. One lock guards all of it but the copies; each rank
 * sleeps on a condition of its own. */
#include "runtime/comm/comm_threads.h"

#include "runtime/comm/comm_records.h"

#include <assert.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One side's half of a message. */
typedef enum { ALONE, MATCHED, COPYING, DONE } HalfState;
typedef struct Half {
    struct Half *next;          /* in the pair's list */
    struct Half *other;
    void *data;                 /* only read, if this side sends */
    int64_t bytes;
    uint32_t tag;
    int rank;                   /* which has it */
    bool sends;
    HalfState state;
} Half;

typedef struct Room {           /* what ranks share */
    pthread_mutex_t lock;
    int size, open;             /* ranks; those that are not closed */
    Half **lonely;              /* by sender and receiver: in the order of their naming */
    pthread_cond_t *news;       /* by rank */
    int *copies;                /* by rank: copies under way from or to its memory */
    bool *gone;                 /* by rank: it is closed */
    int waiting;                /* ranks in the barrier */
    int64_t barriers;           /* complete ones */
    LsError why;                /* the first failure, as others see it; code LS_EXIT_DONE: none */
    int culprit;                /* the rank that met it */
    bool told;                  /* some rank prints it */
} Room;

typedef struct Rank {
    LsComm comm;
    Room *room;
    LsRecords halves;
    int64_t begun;              /* messages nobody has waited for */
} Rank;

static Rank *rank_of(LsComm *c) { return (Rank *)(void *)c; }

static void wake_all(Room *r)
{
    for (int k = 0; k < r->size; k++)
        pthread_cond_broadcast(&r->news[k]);
}

/* The first failure is everybody's. */
__attribute__((format(printf, 4, 5)))
static void fail_all(Room *r, int culprit, LsExit code, const char *fmt, ...)
{
    char text[sizeof r->why.text];
    va_list ap;
    if (r->why.code != LS_EXIT_DONE)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    ls_fail(&r->why, code, "%s", text);
    r->culprit = culprit;
    wake_all(r);
}

/* Returns false with the failure, when nobody copies from or to this rank's memory any more. */
static bool failed(const LsComm *c, Room *r, LsError *e)
{
    while (r->copies[c->rank] > 0)
        pthread_cond_wait(&r->news[c->rank], &r->lock);
    return ls_fail(e, r->why.code, "%s", r->why.text);
}

/* Fails if rank `of` is closed, so that nobody waits for it for ever. */
static void miss(Room *r, int of)
{
    if (r->gone[of])
        fail_all(r, of, LS_EXIT_RANK, "rank %d ended while others still wait for it", of);
}

/* Takes the first half with that tag that waits for a half of this direction. */
static Half *find_partner(Half **list, uint32_t tag, bool sends)
{
    for (Half **at = list; *at != NULL; at = &(*at)->next)
        if ((*at)->tag == tag && (*at)->sends != sends) {
            Half *found = *at;
            *at = found->next;
            return found;
        }
    return NULL;
}

static void append(Half **list, Half *h)
{
    while (*list != NULL)
        list = &(*list)->next;
    h->next = NULL;
    *list = h;
}

/* Both ranks learn that they do not mean the same message. */
static bool match(Room *r, Half *h, Half *other)
{
    if (h->bytes != other->bytes) {
        const Half *from = h->sends ? h : other, *to = h->sends ? other : h;
        fail_all(r, h->rank, LS_EXIT_CHECK,
                 "rank %d sends %lld bytes with tag %u, but rank %d takes %lld", from->rank,
                 (long long)from->bytes, from->tag, to->rank, (long long)to->bytes);
        return false;
    }
    h->other = other;
    other->other = h;
    h->state = other->state = MATCHED;
    pthread_cond_signal(&r->news[other->rank]);
    return true;
}

static bool begin(LsComm *c, int peer, Half what, LsTransfer *x, LsError *e)
{
    Rank *me = rank_of(c);
    Room *r = me->room;
    assert(peer >= 0 && peer < r->size && what.bytes >= 0);
    Half *h = ls_records_take(&me->halves, e);
    if (h == NULL)
        return false;
    *h = what;
    h->rank = c->rank;
    me->begun++;
    *x = (LsTransfer){h, peer, what.bytes};
    pthread_mutex_lock(&r->lock);
    bool ok = r->why.code == LS_EXIT_DONE;
    if (ok) {
        const int from = h->sends ? c->rank : peer, to = h->sends ? peer : c->rank;
        Half **list = &r->lonely[from * r->size + to],
             *other = find_partner(list, h->tag, h->sends);
        if (other == NULL)
            append(list, h);
        else
            ok = match(r, h, other);
    }
    ok = ok || failed(c, r, e);
    pthread_mutex_unlock(&r->lock);
    return ok;
}

static bool send_bytes(LsComm *c, int peer, uint32_t tag, const void *data, int64_t bytes,
                       LsTransfer *x, LsError *e)
{
    return begin(c, peer,
                 (Half){.data = (void *)(uintptr_t)data, .bytes = bytes, .tag = tag, .sends = true},
                 x, e);
}

static bool receive_bytes(LsComm *c, int peer, uint32_t tag, void *data, int64_t bytes,
                          LsTransfer *x, LsError *e)
{
    return begin(c, peer, (Half){.data = data, .bytes = bytes, .tag = tag}, x, e);
}

/* Copies without the lock. */
static void copy(Room *r, Half *h)
{
    Half *other = h->other, *from = h->sends ? h : other, *to = h->sends ? other : h;
    h->state = other->state = COPYING;
    r->copies[h->rank]++;
    r->copies[other->rank]++;
    pthread_mutex_unlock(&r->lock);
    if (h->bytes > 0)
        memmove(to->data, from->data, (size_t)h->bytes);
    pthread_mutex_lock(&r->lock);
    h->state = other->state = DONE;
    r->copies[h->rank]--;
    r->copies[other->rank]--;
    pthread_cond_signal(&r->news[other->rank]);
}

static bool wait_for(LsComm *c, LsTransfer *x, LsError *e)
{
    Rank *me = rank_of(c);
    Room *r = me->room;
    Half *h = x->engine;
    pthread_mutex_lock(&r->lock);
    while (h->state != DONE && r->why.code == LS_EXIT_DONE) {
        if (h->state == MATCHED)
            copy(r, h);
        else if (h->state == ALONE && r->gone[x->peer])
            miss(r, x->peer);
        else
            pthread_cond_wait(&r->news[c->rank], &r->lock);
    }
    const bool ok = h->state == DONE || failed(c, r, e);
    pthread_mutex_unlock(&r->lock);
    if (ok) {
        ls_records_give(&me->halves, h);
        me->begun--;
    }
    return ok;
}

static bool barrier(LsComm *c, LsError *e)
{
    Room *r = rank_of(c)->room;
    pthread_mutex_lock(&r->lock);
    const int64_t mine = r->barriers;
    if (r->why.code == LS_EXIT_DONE && ++r->waiting == r->size) {
        r->waiting = 0;
        r->barriers++;
        wake_all(r);
    }
    while (r->barriers == mine && r->why.code == LS_EXIT_DONE) {
        for (int k = 0; k < r->size; k++)
            miss(r, k);
        if (r->why.code == LS_EXIT_DONE)
            pthread_cond_wait(&r->news[c->rank], &r->lock);
    }
    const bool ok = r->barriers != mine || failed(c, r, e);
    pthread_mutex_unlock(&r->lock);
    return ok;
}

static bool abandon(LsComm *c, const LsError *why)
{
    Room *r = rank_of(c)->room;
    LsError ignored = {0};
    pthread_mutex_lock(&r->lock);
    fail_all(r, c->rank, why->code, "rank %d: %s", c->rank, why->text);
    failed(c, r, &ignored);
    const bool prints = !r->told && (r->culprit == c->rank || r->gone[r->culprit]);
    r->told |= prints;
    pthread_mutex_unlock(&r->lock);
    return prints;
}

static void free_room(Room *r)
{
    for (int k = 0; k < r->size; k++)
        pthread_cond_destroy(&r->news[k]);
    pthread_mutex_destroy(&r->lock);
    free(r->lonely);
    free(r->news);
    free(r->copies);
    free(r->gone);
    free(r);
}

static void free_rank(Rank *me)
{
    ls_records_end(&me->halves);
    free(me);
}

/* Halves of this rank may still stand in lists, which nobody reads after a failure. */
static void close_rank(LsComm *c)
{
    Rank *me = rank_of(c);
    Room *r = me->room;
    pthread_mutex_lock(&r->lock);
    if (me->begun > 0)
        fail_all(r, c->rank, LS_EXIT_RANK, "rank %d ended before its messages were complete",
                 c->rank);
    failed(c, r, &(LsError){0});
    r->gone[c->rank] = true;
    wake_all(r);
    const bool last = --r->open == 0;
    pthread_mutex_unlock(&r->lock);
    free_rank(me);
    if (last)
        free_room(r);
}

static const LsCommEngine threads = {"threads", send_bytes, receive_bytes, wait_for,
                                     barrier,   abandon,    close_rank};

static Room *make_room(int size)
{
    const size_t n = (size_t)size;
    Room *r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    *r = (Room){.lonely = calloc(n * n, sizeof *r->lonely),
                .news = calloc(n, sizeof *r->news),
                .copies = calloc(n, sizeof *r->copies),
                .gone = calloc(n, sizeof *r->gone),
                .open = size};
    pthread_mutex_init(&r->lock, NULL);
    if (r->lonely == NULL || r->news == NULL || r->copies == NULL || r->gone == NULL) {
        free_room(r);
        return NULL;
    }
    for (r->size = 0; r->size < size; r->size++)
        pthread_cond_init(&r->news[r->size], NULL);
    return r;
}

bool ls_comm_threads_open(int size, LsComm *c[], LsError *e)
{
    Room *r = make_room(size);
    bool ok = r != NULL;
    for (int k = 0; k < size; k++) {
        Rank *me = ok ? calloc(1, sizeof *me) : NULL;
        ok = me != NULL;
        if (ok)
            *me = (Rank){
                .comm = {&threads, k, size, size}, .room = r, .halves = {.size = sizeof(Half)}};
        c[k] = ok ? &me->comm : NULL;
    }
    if (ok)
        return true;
    for (int k = 0; k < size; k++)
        free(c[k]);
    if (r != NULL)
        free_room(r);
    return ls_fail(e, LS_EXIT_FAIL, "out of memory");
}
