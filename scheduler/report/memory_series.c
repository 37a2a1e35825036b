/* scheduler/report/memory_series.c -- replays a plan and assigns every byte to its owner. */
#include "scheduler/report/memory_series.h"

#include <stdlib.h>
#include <string.h>

typedef struct Book {
    const LsDag *dag;
    const LsPlan *plan;
    LsSeries *s;
    uint32_t *instance;         /* by tensor: its live instance */
    uint8_t *owner;             /* by instance */
    uint32_t ninstance;
    uint8_t *held;              /* by tensor: owner of its live instance; LS_NOWNERS: not live */
    uint8_t *at_peak;           /* copy of `held` at the largest total so far */
} Book;

static uint32_t count_runs(const LsDag *dag, const LsPlan *plan, LsSeries *s, uint32_t *instances)
{
    uint32_t n = 0;
    s->turn = UINT32_MAX;
    for (uint32_t k = 0; k < plan->nstep; k++) {
        const LsPlanStep *step = &plan->step[k];
        if (step->free)
            continue;
        if (dag->node[step->id].kind == LS_DAG_BACKWARD && s->turn == UINT32_MAX)
            s->turn = n;
        *instances += dag->node[step->id].nout;
        s->runs[step->id]++;
        n++;
    }
    s->turn = s->turn < n ? s->turn : n;
    return n;
}

static LsOwner owner_of(const LsDagNode *n, bool again)
{
    return again                       ? LS_OWNER_AGAIN
           : n->kind != LS_DAG_FORWARD ? LS_OWNER_GRADIENT
                                       : LS_OWNER_PASSING;
}

/* Numbers the instances in the order they are made. An instance made before the turn and read after
 * it is kept. */
static void find_owners(Book *b)
{
    uint32_t run = 0, *made = b->instance;
    b->ninstance = 0;
    for (uint32_t k = 0; k < b->plan->nstep; k++) {
        const LsPlanStep *step = &b->plan->step[k];
        if (step->free)
            continue;
        const LsDagNode *n = &b->dag->node[step->id];
        for (uint32_t j = 0; run >= b->s->turn && j < n->nin; j++) {
            uint32_t i = made[n->in[j]];
            if (!b->dag->tensor[n->in[j]].persistent && b->owner[i] == LS_OWNER_PASSING)
                b->owner[i] = LS_OWNER_KEPT;
        }
        for (uint32_t j = 0; j < n->nout; j++) {
            made[n->out[j]] = b->ninstance;
            b->owner[b->ninstance++] = (uint8_t)owner_of(n, step->again);
        }
        run++;
    }
}

static int64_t size_of(const Book *b, uint32_t tensor) { return b->dag->tensor[tensor].bytes; }

static bool is_reused(const Book *b, const LsPlanStep *step, uint32_t out)
{
    for (uint32_t k = 0; k < step->nreuse; k++)
        if (b->plan->reuse[step->reuse + k].out == out)
            return true;
    return false;
}

static LsOwner present(const Book *b, uint32_t t) { return (LsOwner)b->owner[b->instance[t]]; }

/* Books one run: its results, its workspace, and the sample of live bytes. */
static void book_run(Book *b, const LsPlanStep *step, int64_t now[LS_NOWNERS], LsSeriesRun *run)
{
    const LsDagNode *n = &b->dag->node[step->id];
    for (uint32_t j = 0; j < n->nout; j++) {
        uint32_t t = n->out[j];
        b->instance[t] = b->ninstance++;
        if (b->s->owner[t] == LS_NOWNERS)
            b->s->owner[t] = (uint8_t)present(b, t);
        if (!is_reused(b, step, t)) {
            now[present(b, t)] += size_of(b, t);
            b->held[t] = (uint8_t)present(b, t);
        }
    }
    memcpy(run->bytes, now, sizeof run->bytes);
    run->bytes[LS_OWNER_WORKSPACE] = n->workspace;
    for (int k = 0; k < LS_NOWNERS; k++)
        run->total += run->bytes[k];
}

static void end(Book *b, uint32_t t, int64_t now[LS_NOWNERS], LsSeriesRun *run)
{
    now[b->held[t]] -= size_of(b, t);
    b->held[t] = LS_NOWNERS;
    b->s->freed[b->s->nfreed++] = t;
    run->nfreed++;
}

static void hand_over(Book *b, const LsPlanStep *step, int64_t now[LS_NOWNERS], LsSeriesRun *run)
{
    for (uint32_t k = 0; k < step->nreuse; k++) {
        LsDagPair pair = b->plan->reuse[step->reuse + k];
        end(b, pair.in, now, run);
        now[present(b, pair.out)] += size_of(b, pair.out);
        b->held[pair.out] = (uint8_t)present(b, pair.out);
    }
}

static void book_all(Book *b)
{
    int64_t now[LS_NOWNERS] = {0}, most = -1;
    uint32_t n = 0;
    double time = 0;
    LsSeries *s = b->s;
    b->ninstance = 0;
    for (uint32_t k = 0; k < b->plan->nstep; k++) {
        const LsPlanStep *step = &b->plan->step[k];
        if (step->free) {
            end(b, step->id, now, &s->run[n - 1]);
            continue;
        }
        s->run[n] = (LsSeriesRun){
            .node = step->id, .again = step->again, .start = time, .freed = s->nfreed};
        book_run(b, step, now, &s->run[n]);
        if (s->run[n].total > most) {
            s->peak = n;
            most = s->run[n].total;
            memcpy(b->at_peak, b->held, b->dag->ntensor);
        }
        hand_over(b, step, now, &s->run[n]);
        time += b->dag->node[step->id].cost;
        n++;
    }
}

static int by_bytes(const void *x, const void *y)
{
    const LsSeriesLive *a = x, *b = y;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return a->tensor < b->tensor ? -1 : a->tensor > b->tensor;
}

static void list_live(Book *b, LsArena *arena)
{
    LsSeries *s = b->s;
    s->live = ls_arena_alloc(arena, b->dag->ntensor + 1u, sizeof *s->live);
    for (uint32_t t = 0; t < b->dag->ntensor; t++)
        if (b->at_peak[t] != LS_NOWNERS)
            s->live[s->nlive++] = (LsSeriesLive){t, (LsOwner)b->at_peak[t], size_of(b, t)};
    qsort(s->live, s->nlive, sizeof *s->live, by_bytes);
}

static uint8_t *nobody(LsArena *arena, uint32_t n)
{
    uint8_t *owner = ls_arena_alloc(arena, n + 1u, 1);
    memset(owner, LS_NOWNERS, n);
    return owner;
}

LsSeries *ls_series_new(LsArena *arena, const LsDag *dag, const LsPlan *plan)
{
    LsSeries *s = ls_arena_alloc(arena, 1, sizeof *s);
    uint32_t instances = 0;
    s->runs = ls_arena_alloc(arena, dag->nnode, sizeof *s->runs);
    s->nrun = count_runs(dag, plan, s, &instances);
    s->run = ls_arena_alloc(arena, s->nrun + 1u, sizeof *s->run);
    s->freed = ls_arena_alloc(arena, plan->nstep + plan->nreuse + 1u, sizeof *s->freed);
    s->owner = nobody(arena, dag->ntensor);
    Book b = {.dag = dag, .plan = plan, .s = s, .held = nobody(arena, dag->ntensor),
              .at_peak = nobody(arena, dag->ntensor)};
    b.instance = ls_arena_alloc(arena, dag->ntensor, sizeof *b.instance);
    b.owner = ls_arena_alloc(arena, instances, sizeof *b.owner);
    find_owners(&b);
    book_all(&b);
    list_live(&b, arena);
    return s;
}
