/* scheduler/strategies/paper_procedure.c -- least budget, then the time- and the memory-centred
 * strategy. */
#include "scheduler/strategies/paper_procedure.h"

#include "scheduler/candidates/plan_build.h"
#include "scheduler/lower_sets/least_formula_budget.h"
#include "scheduler/lower_sets/partition_dp.h"
#include "scheduler/order/place_weight_gradients.h"
#include "scheduler/order/run_order.h"

typedef struct Paper {
    LsArena *scratch;
    const LsProb *p;
    LsForward *f;
    LsLive *live;
    LsPaper *out;
} Paper;

/* Runs and packs the strategy; the column keeps the smaller arena. */
static void run(Paper *q, LsStrategy *s, LsPaperColumn column)
{
    LsPaperRun *to = &q->out->run[column];
    LsSeq plain = ls_seq_canonical(q->scratch, q->f, s->cut, s->ncut);
    LsSeq moved = ls_seq_place_leaves(q->scratch, q->p, &plain);
    ls_strategy_price(q->scratch, q->f, true, s);
    if (!to->found || s->peak < to->formula)
        to->formula = s->peak;
    const LsSeq *const seq[] = {&plain, &moved};
    for (int k = 0; k < 2; k++) {
        LsPlan plan;
        ls_live(q->p, seq[k], q->live);
        if (to->found && q->live->peak > to->arena)
            continue;
        ls_plan_build(q->scratch, q->p, seq[k], "paper", LS_PACK_FULL, 0, &plan);
        if (to->found && plan.arena >= to->arena)
            continue;
        *to = (LsPaperRun){true, to->formula, plan.arena, ls_plan_overhead(&plan)};
    }
}

/* Fills both columns of one family. Returns the least budget, at most `some`, which must fit. */
static int64_t run_family(Paper *q, const LsFamily *fam, int64_t some, LsPaperColumn mc,
                          LsPaperColumn tc)
{
    LsDpOptions o = {.budget = ls_least_budget(q->scratch, q->f, fam, some),
                     .price_last = true,
                     .cells = 1024,
                     .most_points = 64};
    for (int m = 0; m < 2; m++) {
        o.greatest = m == 0;
        LsStrategies all = ls_partition(q->scratch, q->f, fam, &o);
        if (all.n > 0)
            run(q, &all.item[0], m == 0 ? mc : tc);
    }
    return o.budget;
}

LsPaper ls_paper(const LsDag *dag, uint32_t most_sets)
{
    LsPaper out = {0};
    LsArena *scratch = ls_arena_new();
    const LsProb *p = ls_prob_new(scratch, dag, true);
    Paper q = {scratch, p, ls_forward_new(scratch, p), ls_live_new(scratch, p), &out};
    out.vertices = q.f->n;
    if (q.f->n > 0) {
        LsStrategies chen = ls_chen(scratch, q.f);
        for (uint32_t k = 0; k < chen.n; k++)
            run(&q, &chen.item[k], LS_PAPER_CHEN);
        int64_t most = 0;           /* by the formula: one block of everything */
        for (uint32_t v = 0; v < q.f->n; v++)
            most += 2 * q.f->mem[v];
        int64_t budget = run_family(&q, ls_family_pruned(q.f), most, LS_PAPER_APPROX_MC,
                                    LS_PAPER_APPROX_TC);
        LsFamily *all = ls_family_all(q.f, most_sets);
        out.sets = all != NULL ? all->n : 0;
        if (all != NULL)
            run_family(&q, all, budget, LS_PAPER_EXACT_MC, LS_PAPER_EXACT_TC);
    }
    ls_arena_free(scratch);
    return out;
}
