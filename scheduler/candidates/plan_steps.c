/* scheduler/candidates/plan_steps.c -- summary figures of a plan. */
#include "scheduler/candidates/plan_steps.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fnv.h"

void ls_plan_hash(const LsPlan *plan, char text[17])
{
    uint64_t hash = LS_FNV_START;
    for (uint32_t s = 0; s < plan->nstep; s++) {
        hash = ls_fnv_number(hash, (uint64_t)plan->step[s].free);
        hash = ls_fnv_number(hash, (uint64_t)plan->step[s].id);
        hash = ls_fnv_number(hash, (uint64_t)plan->step[s].workspace_offset);
    }
    for (uint32_t k = 0; k < plan->noffset; k++)
        hash = ls_fnv_number(hash, (uint64_t)plan->offset[k]);
    for (uint32_t k = 0; k < plan->nreuse; k++)
        hash = ls_fnv_number(ls_fnv_number(hash, plan->reuse[k].out), plan->reuse[k].in);
    snprintf(text, 17, "%016" PRIx64, hash);
}

void ls_plan_copy(LsArena *arena, const LsPlan *from, LsPlan *to)
{
    *to = *from;
    to->step = ls_arena_alloc(arena, from->nstep + 1u, sizeof *to->step);
    to->offset = ls_arena_alloc(arena, from->noffset + 1u, sizeof *to->offset);
    to->reuse = ls_arena_alloc(arena, from->nreuse + 1u, sizeof *to->reuse);
    memcpy(to->step, from->step, from->nstep * sizeof *to->step);
    memcpy(to->offset, from->offset, from->noffset * sizeof *to->offset);
    memcpy(to->reuse, from->reuse, from->nreuse * sizeof *to->reuse);
}

double ls_plan_overhead(const LsPlan *plan)
{
    /* sums in another order differ in their last digits */
    double over = plan->base_cost > 0 ? plan->cost / plan->base_cost - 1 : 0;
    return over > 1e-12 || over < -1e-12 ? over : 0;
}

static int64_t bytes_made(const LsDag *dag, uint32_t node)
{
    int64_t bytes = 0;
    for (uint32_t k = 0; k < dag->node[node].nout; k++)
        bytes += dag->tensor[dag->node[node].out[k]].bytes;
    return bytes;
}

/* Returns the step of the first backward run, or of the first of the recomputations right before
 * it. */
static uint32_t find_turn(const LsDag *dag, const LsPlan *plan)
{
    uint32_t start = 0;
    bool again = false;         /* the last run was its node's second or later */
    for (uint32_t s = 0; s < plan->nstep; s++) {
        const LsPlanStep *step = &plan->step[s];
        if (step->free)
            continue;
        start = again ? start : s;
        again = step->again;
        if (dag->node[step->id].kind == LS_DAG_BACKWARD)
            return start;
    }
    return plan->nstep;
}

static void add_run(LsPlanAgain *sum, const LsDag *dag, uint32_t node)
{
    sum->runs++;
    sum->bytes += bytes_made(dag, node);
    sum->cost += dag->node[node].cost;
}

LsPlanTurn ls_plan_turn(const LsDag *dag, const LsPlan *plan)
{
    LsPlanTurn turn = {0};
    uint32_t at = find_turn(dag, plan);
    for (uint32_t s = 0; s < plan->nstep; s++) {
        const LsPlanStep *step = &plan->step[s];
        if (step->again) {
            add_run(&turn.again[dag->node[step->id].kind], dag, step->id);
            add_run(&turn.all, dag, step->id);
        }
        if (s >= at)
            continue;
        turn.kept_bytes += step->free ? -dag->tensor[step->id].bytes : bytes_made(dag, step->id);
        turn.nkept += step->free ? -1u : dag->node[step->id].nout - step->nreuse;
        for (uint32_t k = 0; k < step->nreuse; k++)
            turn.kept_bytes -= dag->tensor[plan->reuse[step->reuse + k].in].bytes;
    }
    return turn;
}
