/* runtime/engine/member_runs.c -- see member_runs.h.
 *
 * What is the same for all members runs first. Then a member runs all its steps before the next one
 * begins. Its weights are then read and updated while they are in the cache, as in a program of its
 * own; a kernel that went over all members would bring those of each from memory in every step.
 * Lanes run members at the same time, one on each thread: small models need no threads inside. */
#include "runtime/engine/member_runs.h"

#include "runtime/base/tensor_copy.h"
#include "runtime/engine/run_steps.h"
#include "runtime/engine/thread_pool.h"

#include <math.h>
#include <stdlib.h>

/* bytes from one member's to the next */
typedef struct LsOwn { uint32_t arg; int64_t apart; } LsOwn;

/* Bytes from one member's state at this offset to the next; 0: all share it. */
static int64_t state_apart(const LsProgram *p, int64_t offset)
{
    for (uint32_t k = 0; k < p->nstate; k++) {
        const LsTensor one = ls_tensor_of(&p->state[k].t, 0, p->real_bytes);
        if (p->state[k].t.at.offset == offset)
            return p->state[k].t.members > 0 ? ls_tensor_bytes(&one, p->real_bytes) : 0;
    }
    return 0;
}

static int64_t lane_bytes(const LsProgram *p) { return p->bytes.arena / p->ensemble.lanes; }

bool ls_members_open(LsEngine *g, uint32_t n, LsError *e)
{
    const LsProgram *p = g->p;
    g->narg = n;
    g->own = calloc(n + 1u, sizeof *g->own);
    g->loss = calloc((size_t)p->ensemble.members, sizeof *g->loss);
    if (!g->own || !g->loss)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    for (uint32_t k = 0; k < n; k++) {
        const int64_t apart = p->argument.address[k].space == LS_AT_STATE
                                  ? state_apart(p, p->argument.address[k].offset)
                                  : 0;
        if (apart > 0)
            g->own[g->nown++] = (LsOwn){k, apart};
        for (int64_t lane = 1; lane < p->ensemble.lanes; lane++)
            g->arg[lane * n + k] = p->argument.address[k].space == LS_AT_ARENA
                                       ? (char *)g->arg[k] + lane * lane_bytes(p)
                                       : g->arg[k];
    }
    return true;
}

void ls_members_close(LsEngine *g)
{
    free(g->own);
    free(g->loss);
}

/* Points a lane's arguments at a member's state and batch. */
static void point(const LsEngine *g, const LsPhaseTable *t, void **arg, int64_t member)
{
    const LsProgram *p = g->p;
    for (uint32_t k = 0; k < g->nown; k++)
        arg[g->own[k].arg] = (char *)ls_memory_at(g->m, p->argument.address[g->own[k].arg])
                             + member * g->own[k].apart;
    for (uint32_t k = 0; k < g->npatch; k++) {
        const LsTensor *in = &p->input[g->patch[k].input].t;
        const LsTensor one = ls_tensor_of(in, 0, p->real_bytes);
        const bool own = in->members > 0 && t == &p->phase.train;
        arg[g->patch[k].arg] = g->input + g->loader->offset[g->patch[k].input]
                               + (own ? member * ls_tensor_bytes(&one, p->real_bytes) : 0);
    }
}

static double scalar(const LsEngine *g, LsAddress a, int64_t lane)
{
    const char *at = ls_memory_at(g->m, a);
    return ls_real_at(at + (a.space == LS_AT_ARENA ? lane * lane_bytes(g->p) : 0),
                      g->p->real_bytes);
}

static void run_member(LsEngine *g, const LsPhaseTable *t, int64_t lane, int64_t member,
                       struct LsPool *pool, const LsHook *hook, int nhook)
{
    LsRun mine = g->run;
    void **arg = g->arg + lane * g->narg;
    mine.pool = pool;
    mine.seed = g->seeds != NULL ? g->seeds[member] : mine.seed;
    mine.lr = g->rates != NULL ? g->rates[member] : mine.lr;
    point(g, t, arg, member);
    ls_steps_run(&mine, t, arg, hook, nhook);
    g->loss[member] =
        (LsLoss){scalar(g, t->loss, lane), g->p->target.sums ? 0 : (double)mine.valid};
    if (t->weight.space != LS_AT_NONE)
        g->loss[member].weight = scalar(g, t->weight, lane);
}

typedef struct Job { LsEngine *g; const LsPhaseTable *t; } Job;

static void run_lanes(LsRun *run, void *const arg[], int64_t lo, int64_t hi)
{
    const Job *job = arg[0];
    (void)run;
    for (int64_t lane = lo; lane < hi; lane++)
        for (int64_t member = lane; member < job->g->p->ensemble.members;
             member += job->g->p->ensemble.lanes)
            run_member(job->g, job->t, lane, member, NULL, NULL, 0);
}

void ls_members_run(LsEngine *g, const LsPhaseTable *t, const LsHook *hook, int nhook)
{
    Job job = {g, t};
    if (t != &g->p->phase.eval)         /* in the first lane's arena */
        ls_steps_run(&g->run, &g->p->phase.once, g->arg, NULL, 0);
    if (g->p->ensemble.lanes > 1 && nhook == 0) {
        ls_parallel(&g->run, run_lanes, g->p->ensemble.lanes, (void *const[]){&job});
        return;
    }
    for (g->member = 0; g->member < g->p->ensemble.members; g->member++)
        run_member(g, t, 0, g->member, g->run.pool, hook, nhook);
}

LsLoss ls_members_loss(const LsEngine *g)
{
    LsLoss mean = {0, 0};
    int64_t n = 0;
    for (int64_t k = 0; k < g->p->ensemble.members; k++) {
        if (!isfinite(g->loss[k].value))
            continue;
        mean.value += g->loss[k].value;
        mean.weight += g->loss[k].weight;
        n++;
    }
    return n > 0 ? (LsLoss){mean.value / (double)n, mean.weight / (double)n} : g->loss[0];
}
