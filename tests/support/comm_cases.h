/* tests/support/comm_cases.h -- what every engine between ranks must do. A case is what one rank
 * does; tests run it in all ranks at once. It ends its process where the engine is wrong. */
#ifndef LS_TESTS_SUPPORT_COMM_CASES_H
#define LS_TESTS_SUPPORT_COMM_CASES_H

#include "runtime/comm/comm.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEEN(cond)                                                                                 \
    ((cond)                                                                                        \
         ? (void)0                                                                                 \
         : (fprintf(stderr, "%s:%d: rank %d: %s\n", __FILE__, __LINE__, c->rank, #cond), abort()))
#define WORKS(call)                                                                                \
    ((call) ? (void)0                                                                              \
            : (fprintf(stderr, "%s:%d: rank %d: %s\n", __FILE__, __LINE__, c->rank, e.text),       \
               abort()))

/* Memory that all ranks see, and the rank's own share of a case. */
typedef struct CommShared {
    atomic_int count, told, failed;
    char text[8][600];
    int code[8];
} CommShared;
typedef void CommCase(LsComm *c, CommShared *s);        /* closes c */

static inline unsigned comm_draw(unsigned *state)
{
    return (*state = *state * 1664525u + 1013904223u) >> 8;
}
static inline unsigned char comm_byte(int from, int k, int64_t i)
{
    return (unsigned char)(from * 31 + k * 7 + i + (i >> 8));
}

enum { COMM_MESSAGES = 24, COMM_TAGS = 3 };
typedef struct CommMessage {
    uint32_t tag;
    int64_t bytes;
    unsigned char *data;
    LsTransfer x;
} CommMessage;

/* Message k from one rank to another: both sides know it. */
static inline CommMessage comm_message(int from, int to, int k, int64_t most)
{
    unsigned state = (unsigned)(from * 1000 + to * 100 + k + 1);
    CommMessage m = {.tag = comm_draw(&state) % COMM_TAGS};
    m.bytes = k % 6 == 0 ? 0 : comm_draw(&state) % (k % 2 ? 100 : most);
    m.data = calloc(1, (size_t)m.bytes + 1);
    return m;
}

static inline void comm_check(LsComm *c, const CommMessage *m, int from, int k)
{
    for (int64_t i = 0; i < m->bytes; i++)
        SEEN(m->data[i] == comm_byte(from, k, i));
}

/* Every rank sends messages of many lengths to every other; the receiver names them tag by tag, and
 * all are waited for in yet another order. */
static inline void case_all_to_all(LsComm *c, CommShared *s)
{
    (void)s;
    LsError e = {0};
    CommMessage out[8][COMM_MESSAGES], in[8][COMM_MESSAGES];
    for (int p = 0; p < c->size; p++)
        for (int k = 0; k < COMM_MESSAGES && p != c->rank; k++) {
            out[p][k] = comm_message(c->rank, p, k, 300000);
            for (int64_t i = 0; i < out[p][k].bytes; i++)
                out[p][k].data[i] = comm_byte(c->rank, k, i);
            CommMessage *m = &out[p][k];
            WORKS(c->engine->send(c, p, m->tag, m->data, m->bytes, &m->x, &e));
            in[p][k] = comm_message(p, c->rank, k, 300000);
        }
    for (uint32_t tag = COMM_TAGS; tag-- > 0;)
        for (int p = 0; p < c->size; p++)
            for (int k = 0; k < COMM_MESSAGES && p != c->rank; k++)
                if (in[p][k].tag == tag)
                    WORKS(c->engine->receive(c, p, tag, in[p][k].data, in[p][k].bytes, &in[p][k].x,
                                             &e));
    for (int k = 0; k < COMM_MESSAGES; k++)
        for (int q = 0; q < c->size; q++) {
            const int p = (q + c->rank) % c->size, j = (k * 7 + 3) % COMM_MESSAGES;
            if (p == c->rank)
                continue;
            WORKS(c->engine->wait(c, &in[p][j].x, &e));
            WORKS(c->engine->wait(c, &out[p][k].x, &e));
            comm_check(c, &in[p][j], p, j);
            free(in[p][j].data);
        }
    for (int p = 0; p < c->size; p++)
        for (int k = 0; k < COMM_MESSAGES && p != c->rank; k++)
            free(out[p][k].data);
    c->engine->close(c);
}

/* Two ranks exchange large messages both ways, again and again, in the same memory. */
static inline void case_exchange(LsComm *c, CommShared *s)
{
    (void)s;
    enum { BYTES = 5000003, ROUNDS = 3 };
    LsError e = {0};
    const int next = (c->rank + 1) % c->size, before = (c->rank + c->size - 1) % c->size;
    unsigned char *mine = malloc(BYTES), *theirs = malloc(BYTES);
    for (int round = 0; round < ROUNDS; round++) {
        LsTransfer to, from;
        for (int64_t i = 0; i < BYTES; i++)
            mine[i] = comm_byte(c->rank, round, i);
        WORKS(c->engine->receive(c, before, 9, theirs, BYTES, &from, &e));
        WORKS(c->engine->send(c, next, 9, mine, BYTES, &to, &e));
        WORKS(c->engine->wait(c, &to, &e));
        WORKS(c->engine->wait(c, &from, &e));
        for (int64_t i = 0; i < BYTES; i++)
            SEEN(theirs[i] == comm_byte(before, round, i));
    }
    free(mine);
    free(theirs);
    c->engine->close(c);
}

/* Nobody leaves a barrier before all have come to it. */
static inline void case_barrier(LsComm *c, CommShared *s)
{
    LsError e = {0};
    for (int round = 1; round <= 50; round++) {
        atomic_fetch_add(&s->count, 1);
        WORKS(c->engine->barrier(c, &e));
        SEEN(atomic_load(&s->count) >= round * c->size);
        WORKS(c->engine->barrier(c, &e));
        SEEN(atomic_load(&s->count) == round * c->size);
        WORKS(c->engine->barrier(c, &e));
    }
    c->engine->close(c);
}

/* The end of a rank that failed. */
static inline void comm_failed(LsComm *c, CommShared *s, const LsError *e)
{
    SEEN(e->code != LS_EXIT_DONE);
    snprintf(s->text[c->rank], sizeof s->text[0], "%s", e->text);
    s->code[c->rank] = (int)e->code;
    atomic_fetch_add(&s->failed, 1);
    if (c->engine->abandon(c, e))
        atomic_fetch_add(&s->told, 1);
}

/* Sender and receiver mean different lengths. */
static inline void case_mismatch(LsComm *c, CommShared *s)
{
    LsError e = {0};
    LsTransfer x;
    char data[100] = {0};
    bool ok = true;
    if (c->rank == 0)
        ok = c->engine->send(c, 1, 5, data, 100, &x, &e) && c->engine->wait(c, &x, &e)
             && c->engine->barrier(c, &e);
    else if (c->rank == 1)
        ok = c->engine->receive(c, 0, 5, data, 96, &x, &e) && c->engine->wait(c, &x, &e);
    else
        ok = c->engine->barrier(c, &e);
    SEEN(!ok);
    comm_failed(c, s, &e);
    c->engine->close(c);
}

/* Rank 1 gives up; one rank waits for a message of it, one for the end of its own message, one in
 * the barrier. */
static inline void case_abandon(LsComm *c, CommShared *s)
{
    enum { BYTES = 3000000 };
    LsError e = {0};
    LsTransfer x;
    char *data = calloc(1, BYTES);
    bool ok = true;
    ok = c->engine->barrier(c, &e);     /* rank 1 may be through, and fail, when others are not */
    if (c->rank == 1)
        ok = ls_fail(&e, LS_EXIT_DATA, "numbers.npy: no such file");
    else if (ok && c->rank == 0)
        ok = c->engine->receive(c, 1, 5, data, 1, &x, &e) && c->engine->wait(c, &x, &e);
    else if (ok && c->rank == 2)        /* all of it may fit into buffers on the way */
        ok = c->engine->send(c, 1, 5, data, BYTES, &x, &e) && c->engine->wait(c, &x, &e)
             && c->engine->barrier(c, &e);
    else
        ok = ok && c->engine->barrier(c, &e);
    SEEN(!ok);
    comm_failed(c, s, &e);
    c->engine->close(c);
    free(data);
}

/* Rank 1 ends as if all were done. */
static inline void case_early_end(LsComm *c, CommShared *s)
{
    LsError e = {0};
    LsTransfer x;
    char data[100] = {0};
    if (c->rank == 1) {
        c->engine->close(c);
        return;
    }
    SEEN(!((c->rank == 0 && c->engine->receive(c, 1, 5, data, 100, &x, &e)
            && c->engine->wait(c, &x, &e))
           || (c->rank > 1 && c->engine->barrier(c, &e))));
    comm_failed(c, s, &e);
    c->engine->close(c);
}

#endif
