/* tests/runtime/test_rank_exchange.c -- what ranks exchange in an update, with random sums, blocks
 * and buckets, beside a plain recursion over the parts. Ranks are threads. */
#include "runtime/comm/comm_threads.h"
#include "runtime/ranks/rank_exchange.h"
#include "runtime/ranks/slice_sum.h"
#include "runtime/engine/thread_pool.h"
#include "tests/support/suite.h"

#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 5, SUMS = 6, MOST = 400, ROW = 24 };

static unsigned state;
static unsigned draw(unsigned n) { return ((state = state * 1664525u + 1013904223u) >> 8) % n; }

/* Parts are of such sizes that the order of a sum shows. */
static float number(int part, int64_t at)
{
    unsigned x = (unsigned)(part * 7919 + at * 104729 + 1);
    x = (x ^ x >> 13) * 0x5bd1e995u;
    return ((float)(x >> 8) / (1 << 23) - 1) * (float)(1 << x % 12);
}

static float tree(int first, int n, int64_t at)
{
    int left = 1;
    if (n == 1)
        return number(first, at);
    while (2 * left < n)
        left *= 2;
    volatile float a = tree(first, left, at), b = tree(first + left, n - left, at);
    return a + b;
}

/* ---- one slice ---- */

START_TEST(slices_add_up_as_the_tree_says)
{
    static float f[9][3000];
    static double d[9][3000];
    const char *narrow[9], *wide[9];
    LsRun run = {.pool = ls_pool_create(2)};
    int other = 0;
    for (int n = 1; n <= 9; n++)
        for (int round = 0; round < 4; round++) {
            const int count = 1 + (int)draw(3000), to = (int)draw((unsigned)n);
            double in_a_row;
            for (int k = 0; k < n; k++) {
                for (int i = 0; i < count; i++)
                    f[k][i] = number(k, i), d[k][i] = (double)f[k][i];
                narrow[k] = (char *)f[k], wide[k] = (char *)d[k];
            }
            const int skip = (int)draw((unsigned)count);
            ls_slice_sum(&run, narrow, n, 4 * skip, 4 * (count - skip), 4, (char *)(f[to] + skip));
            ls_slice_sum(&run, wide, n, 8 * skip, 8 * (count - skip), 8, (char *)(d[to] + skip));
            for (int i = skip; i < count; i++) {
                volatile float row = number(0, i);
                in_a_row = (double)number(0, i);
                for (int k = 1; k < n; k++)
                    row += number(k, i), in_a_row += (double)number(k, i);
                ck_assert_msg(f[to][i] == tree(0, n, i), "%d slices, element %d", n, i);
                ck_assert(d[to][i] == in_a_row);        /* sums of so few numbers are exact in
                                                         * double */
                other += f[to][i] != row;
            }
        }
    ck_assert_int_gt(other, 0);         /* the order shows */
    ls_pool_destroy(run.pool);
}
END_TEST

/* ---- updates ---- */

/* A program without updates: after an exchange, its sums are there. */
typedef struct Case {
    LsRankSum sum[SUMS];
    LsRankRows rows[2];
    int ranks;
    LsRankChoice choice[2];
    int64_t block;
    LsRanks r;
    LsProgram p;
    LsBucketing how;
    int64_t parts;
    char *window;
    LsComm *comm[RANKS];
    int failed[RANKS];
} Case;

static void make(Case *c, int ranks, int64_t block)
{
    const int most = ranks * (1 << draw(3));    /* that the program takes */
    int64_t at = 0;
    for (int k = 0; k < SUMS; k++) {
        LsRankSum *s = &c->sum[k];
        *s = (LsRankSum){.at = at, .count = 1 + draw(MOST), .after = 2 * (uint32_t)k + draw(2)};
        s->bytes = (4 * s->count + 64 * most - 1) / (64 * most) * (64 * most);
        at += s->bytes;
    }
    const int64_t all = ranks * block;
    c->rows[0] = (LsRankRows){{LS_AT_STATE, 0}, ROW};
    c->rows[1] = (LsRankRows){{LS_AT_STATE, all * ROW}, 4};
    const int64_t sums = (all * (ROW + 4) + 63) / 64 * 64;
    c->ranks = ranks;
    c->block = block;
    c->choice[0] = (LsRankChoice){1, 4};
    c->choice[1] = (LsRankChoice){ranks, 2};
    c->r = (LsRanks){.choice = c->choice,
                     .nchoice = 2,
                     .parts = all,
                     .sums = {LS_AT_STATE, sums},
                     .sum_bytes = at,
                     .sum = c->sum,
                     .nsum = SUMS,
                     .rows = c->rows,
                     .nrows = 2};
    c->p = (LsProgram){.real_bytes = 4, .bytes.state = sums + at, .ranks = &c->r};
    c->window = ranks > 1 && draw(2) ? calloc((size_t)ranks, (size_t)at) : NULL;
    c->how = (LsBucketing){1 + draw(6000), draw(3) == 0};
    c->parts = 1 + draw((unsigned)all);
}

typedef struct Own { Case *c; int rank; } Own;

static int64_t own_parts(const Case *c, int rank)
{
    const int64_t left = c->parts - rank * c->block;
    return left < 0 ? 0 : left < c->block ? left : c->block;
}

/* What the rank's parts leave in its state. */
static void fill(const Case *c, int rank, char *to, char *sums)
{
    const int64_t n = own_parts(c, rank), first = rank * c->block;
    for (int k = 0; k < SUMS && n > 0; k++)
        for (int64_t i = 0; i < c->sum[k].count; i++)
            ((float *)(void *)(sums + c->sum[k].at))[i] =
                tree((int)first, (int)n, c->sum[k].at + i);
    for (int64_t j = first; j < first + n; j++) {
        memset(to + c->rows[0].at.offset + j * ROW, (int)(j + 1), ROW);
        memset(to + c->rows[1].at.offset + j * 4, (int)(j + 101), 4);
    }
}

static bool is_right(const Case *c, const LsExchange *x, const char *is, const char *sums)
{
    bool ok = true;
    for (int k = 0; k < SUMS; k++)
        for (int64_t i = 0; i < c->sum[k].count; i++)
            ok &= ((const float *)(const void *)(sums + c->sum[k].at))[i]
                  == tree(0, (int)c->parts, c->sum[k].at + i);
    for (int64_t j = 0; j < c->parts; j++) {
        ok &= is[c->rows[0].at.offset + j * ROW + ROW - 1] == (char)(j + 1)
              && is[c->rows[1].at.offset + j * 4] == (char)(j + 101);
        ok &= ls_exchange_loss(x, j).value == (double)j && ls_exchange_loss(x, j).weight == 0.5;
    }
    return ok && ls_exchange_stop(x) == (c->ranks > 1 ? 15 : 0);
}

static void *run_rank(void *arg)
{
    const Own *own = arg;
    Case *c = own->c;
    LsError e = {0};
    LsMemory m = {.p = &c->p, .state = calloc(1, (size_t)c->p.bytes.state),
                  .sums = c->window != NULL ? c->window + own->rank * c->r.sum_bytes : NULL};
    char *sums = ls_memory_at(&m, c->r.sums);
    LsEngine g = {.p = &c->p, .m = &m, .run.pool = ls_pool_create(1)};
    LsExchange x;
    bool ok = ls_exchange_open(&x, &g, &m, c->comm[own->rank], NULL, c->window, c->how, &e)
        && ls_exchange_agree(&x, 7, &e);
    for (int round = 0; round < 3 && ok; round++) {
        const int64_t n = own_parts(c, own->rank);
        ls_exchange_start(&x, c->parts);
        fill(c, own->rank, m.state, sums);
        for (int64_t j = 0; j < n; j++)
            ls_exchange_note(&x, j, (LsLoss){(double)(own->rank * c->block + j), 0.5});
        const LsHook hook = ls_exchange_hook(&x);
        for (uint32_t step = 0; n > 0 && step < 2 * SUMS; step++)
            hook.after(hook.self, step);
        ok = ls_exchange_finish(&x, 7 + (uint64_t)round, own->rank == 1 ? 15 : 0, &e)
             && is_right(c, &x, m.state, sums);
    }
    if (!ok && c->comm[own->rank] != NULL)
        c->comm[own->rank]->engine->abandon(c->comm[own->rank], &e);
    if (c->comm[own->rank] != NULL)
        c->comm[own->rank]->engine->close(c->comm[own->rank]);
    ls_exchange_close(&x);
    ls_pool_destroy(g.run.pool);
    free(m.state);
    c->failed[own->rank] = !ok;
    return NULL;
}

START_TEST(every_rank_has_the_sums_of_all_parts)
{
    for (int round = 0; round < 60; round++) {
        Case c = {.failed = {0}};
        Own own[RANKS];
        pthread_t thread[RANKS];
        LsError e = {0};
        const int ranks = 1 + round % RANKS;
        make(&c, ranks, 1 << draw(3));
        /* one alone may have no engine */
        ck_assert((ranks == 1 && draw(2)) || ls_comm_threads_open(ranks, c.comm, &e));
        for (int k = 0; k < ranks; k++) {
            own[k] = (Own){&c, k};
            ck_assert_int_eq(pthread_create(&thread[k], NULL, run_rank, &own[k]), 0);
        }
        for (int k = 0; k < ranks; k++)
            pthread_join(thread[k], NULL);
        for (int k = 0; k < ranks; k++)
            ck_assert_msg(!c.failed[k], "%s window, %d ranks of %d parts, %d with samples: rank %d",
                          c.window ? "a" : "no", ranks, (int)c.block, (int)c.parts, k);
        free(c.window);
    }
}
END_TEST

/* ---- packets ---- */

typedef struct Teller { LsComm *comm; uint64_t place; LsError error; bool right; } Teller;

/* Twice: at the same place, then rank 2 elsewhere. */
static void *tell(void *arg)
{
    Teller *t = arg;
    LsError *e = &t->error;
    LsPackets p;
    const int me = t->comm->rank;
    bool ok = ls_packets_open(&p, t->comm, 3, 2, 56, e);
    ls_packet_losses(&p, me)[1] = (LsLoss){me, 1};
    memset(ls_packet_rest(&p, me), 'a' + me, 8);
    ok = ok && ls_packets_swap(&p, 5, me == 1 ? 2 : 0, e) && ls_packets_stop(&p) == 2;
    for (int q = 0; q < p.size && ok; q++)
        ok = ls_packet_losses(&p, q)[1].value == q && ls_packet_rest(&p, q)[7] == 'a' + q;
    t->right = ok && !ls_packets_swap(&p, t->place, 0, e);
    ls_packets_close(&p);
    t->comm->engine->close(t->comm);
    return NULL;
}

START_TEST(a_rank_at_another_place_is_named_by_all)
{
    LsComm *comm[4];
    Teller t[4];
    pthread_t thread[4];
    LsError e = {0};
    ck_assert(ls_comm_threads_open(4, comm, &e));
    for (int k = 0; k < 4; k++) {
        t[k] = (Teller){.comm = comm[k], .place = k == 2 ? 7 : 6};
        ck_assert_int_eq(pthread_create(&thread[k], NULL, tell, &t[k]), 0);
    }
    for (int k = 0; k < 4; k++) {
        pthread_join(thread[k], NULL);
        ck_assert_msg(
            t[k].right
                && strcmp(t[k].error.text, "data or checkpoint of rank 2 are not those of rank 0")
                       == 0,
            "rank %d: %s", k, t[k].error.text);
    }
}
END_TEST

/* ---- replicas ---- */

enum { TENSORS = 3, ELEMENTS = 37 };
typedef struct Replica {
    LsComm *comm;
    int64_t spoilt;
    bool start;
    bool same[2];
    LsError error;
} Replica;

/* A program with a parameter, a statistic and a sum, which is no business of others. Twice: as it
 * is, and with one element (spoilt, from 0; -1: none) that changed by one bit. */
static void *hold(void *arg)
{
    Replica *r = arg;
    LsRankSum sum[SUMS] = {{.count = 1, .bytes = 64}};
    LsRankChoice choice = {4, 1};
    LsRanks ranks = {.choice = &choice,
                     .nchoice = 1,
                     .parts = 4,
                     .sums = {LS_AT_STATE, 1024},
                     .sum_bytes = 64,
                     .sum = sum,
                     .nsum = 1};
    LsStateTensor state[TENSORS];
    float value[512] = {0};
    for (int k = 0; k < TENSORS; k++)
        state[k] = (LsStateTensor){
            .t = {.name = "w", .rank = 1, .dim = {ELEMENTS}, .at = {LS_AT_STATE, 4 * k * ELEMENTS}},
            .kind = (LsStateKind[]){LS_STATE_PARAM, LS_STATE_STAT, LS_STATE_SUM}[k]};
    LsProgram p = {.real_bytes = 4,
                   .bytes.state = sizeof value,
                   .ranks = &ranks,
                   .state = state,
                   .nstate = TENSORS};
    LsMemory m = {.p = &p, .state = (char *)value};
    LsEngine g = {.p = &p, .m = &m, .run.pool = NULL};
    LsExchange x;
    for (int k = 0; k < 2 * ELEMENTS; k++)
        value[k] = (float)k / 3;
    value[2 * ELEMENTS] = (float)r->comm->rank;
    bool ok = ls_exchange_open(&x, &g, &m, r->comm, NULL, NULL, (LsBucketing){0}, &r->error);
    r->same[0] = ok && ls_exchange_compare(&x, 100, r->start, &r->error);
    if (r->spoilt >= 0)
        ((unsigned char *)&value[r->spoilt])[0] ^= 1;
    r->same[1] = ok && ls_exchange_compare(&x, 200, r->start, &r->error);
    ls_exchange_close(&x);
    r->comm->engine->close(r->comm);
    return NULL;
}

static void check_replicas(int odd, int64_t element, bool start, const char *text)
{
    LsComm *comm[4];
    Replica r[4];
    pthread_t thread[4];
    LsError e = {0};
    ck_assert(ls_comm_threads_open(4, comm, &e));
    for (int k = 0; k < 4; k++) {
        r[k] = (Replica){.comm = comm[k], .spoilt = k == odd ? element : -1, .start = start};
        ck_assert_int_eq(pthread_create(&thread[k], NULL, hold, &r[k]), 0);
    }
    for (int k = 0; k < 4; k++) {
        pthread_join(thread[k], NULL);
        ck_assert_msg(r[k].same[0] && r[k].same[1] == (text == NULL), "rank %d: %s", k,
                      r[k].error.text);
        ck_assert_msg(text == NULL || strstr(r[k].error.text, text) != NULL, "rank %d: %s", k,
                      r[k].error.text);
    }
}

START_TEST(a_rank_whose_parameters_changed_is_named_by_all)
{
    check_replicas(-1, -1, false, NULL);
    check_replicas(2, 0, false, "after step 200 the parameters of rank 2 are not those of rank 0");
    check_replicas(0, ELEMENTS - 1, false,
                   "after step 200 the parameters of rank 0 are not those of rank 1");
    check_replicas(1, 2 * ELEMENTS - 1, false,
                   "after step 200 the parameters of rank 1 are not those of rank 0");
    check_replicas(3, 7, true, "rank 3 begins with other weights than rank 0");
    check_replicas(3, 2 * ELEMENTS, false, NULL);        /* a rank's own sum */
}
END_TEST

int main(void)
{
    const TTest *test[] = {slices_add_up_as_the_tree_says, every_rank_has_the_sums_of_all_parts,
                           a_rank_at_another_place_is_named_by_all,
                           a_rank_whose_parameters_changed_is_named_by_all};
    TCase *tc = tcase_create("rank_exchange");
    add_tests(tc, sizeof test / sizeof test[0], test);
    return run_tests("rank_exchange", tc);
}
