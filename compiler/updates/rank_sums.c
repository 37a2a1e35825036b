/* compiler/updates/rank_sums.c -- see rank_sums.h. */
#include "compiler/updates/rank_sums.h"

#include "compiler/fold/append.h"

/* Whether so many ranks have equal blocks of a batch's parts and of an update's, which are
 * subtrees. */
static bool may_share(const LsOptimizerOptions *o, int ranks, int steps)
{
    const int block = steps / ranks;
    return (o->parts > 1 ? o->parts : 1) % ranks == 0 && (ranks == 1 || (block & (block - 1)) == 0);
}

/* Finds how many ranks a run may have. With some block of a power of two parts, all larger numbers
 * of ranks are multiples of the smaller ones, up to the limit. */
static bool choose(LsCtx *cx, LsGraph *g, const LsOptimizerOptions *o, int steps)
{
    const bool any = o->ranks == LS_RANKS_ANY;
    int *choice = ls_arena_alloc(cx->arena, LS_MOST_RANKS, sizeof *choice), n = 0;
    for (int ranks = any ? 1 : o->ranks; ranks <= (any ? LS_MOST_RANKS : o->ranks); ranks++)
        if (may_share(o, ranks, steps))
            choice[n++] = ranks;
    g->rank.choice = choice;
    g->rank.nchoice = n;
    if (any && n < 2)
        return ls_error(cx, LS_NOWHERE, LS_E_OPTION,
                        "give --microbatches a power of two, or that times a number of ranks",
                        "--ranks any: no number of ranks but 1 divides an update of %d parts into "
                        "blocks of 1, 2, 4, 8, ... "
                        "parts for each rank",
                        steps);
    return n > 0
           || ls_error(cx, LS_NOWHERE, LS_E_OPTION,
                       "give --microbatches a power of two times the ranks",
                       "--ranks %d: an "
                       "update of %d parts does not divide into blocks of 1, 2, 4, 8, ... parts "
                       "for each rank",
                       o->ranks, steps);
}

bool ls_ranks_begin(LsCtx *cx, LsGraph *g, const LsOptimizerOptions *o, int steps)
{
    if (!choose(cx, g, o, steps))
        return false;
    g->rank.micro_batches = steps;
    g->rank.sliced = ls_rank_slices(o);
    g->rank.updates = ls_graph_new(cx);
    g->rank.updates->rank.choice = g->rank.choice;
    g->rank.updates->rank.nchoice = g->rank.nchoice;
    ls_ranks_count(g, g->rank.choice[0]);
    g->rank.updates->rank.micro_batches = steps;
    g->rank.updates->rank.sliced = g->rank.sliced;
    g->rank.updates->training = true;
    g->rank.updates->batch = g->batch;
    g->rank.updates->source.weightless = g->source.weightless;
    g->rank.updates->objective.over = g->objective.over;
    return true;
}

void ls_ranks_count(LsGraph *g, int ranks) { g->rank.count = g->rank.updates->rank.count = ranks; }

LsValueId ls_rank_source(LsCtx *cx, LsGraph *g, LsValueId v)
{
    const LsValue *x = &g->value[v.i];
    const LsValueId to =
        ls_value_add(cx, g->rank.updates, x->kind, x->name, x->type, &x->shape, x->data);
    LsValue *y = &g->rank.updates->value[to.i];
    y->of_update = x->of_update;
    y->rank_sum = x->rank_sum;
    y->statistic = x->statistic;
    return to;
}

/* State of no meaning between updates. */
static LsValueId add_state(LsCtx *cx, LsGraph *g, const char *name, const LsShape *s)
{
    const LsValueId v = ls_value_add(cx, g, LS_V_STATE, name, LS_REAL, s, NULL);
    g->value[v.i].of_update = true;
    return v;
}

LsValueId ls_rank_sum(LsCtx *cx, LsGraph *g, const char *name, LsValueId v, LsValueId weight,
                      LsValueId p, const LsAttr *part)
{
    const LsShape shape = *ls_shape(g, v), tree = {1, {part->update.sum.levels * ls_count(&shape)}};
    LsValueId in[] = {add_state(cx, g, name, &shape), v, {0}, weight, p};
    g->value[in[0].i].rank_sum = true;
    if (part->update.sum.levels > 0) {
        in[2] = add_state(cx, g, ls_arena_printf(cx->arena, "%s.parts", name), &tree);
        g->value[in[2].i].rank_levels = part->update.sum.levels;
    }
    ls_append(cx, g, LS_OP_LOCAL_SUM, sizeof in / sizeof *in, in, part);
    return ls_rank_source(cx, g, in[0]);
}

void ls_rank_statistics(LsCtx *cx, LsGraph *g, LsValueId factor, int64_t steps)
{
    const uint32_t n = g->nnode;
    for (uint32_t i = 1; i < n; i++) {
        const LsNode old = g->node[i];
        if (old.op != LS_OP_RUNNING_STAT)
            continue;
        const LsValueId run = g->operand[old.in], batch = g->operand[old.in + 1];
        const LsShape rows = {1, {steps * ls_count(ls_shape(g, run))}};
        const LsValueId all =
            add_state(cx, g, ls_arena_printf(cx->arena, "%s.parts", g->value[run.i].name), &rows);
        ls_graph_origin(g, (LsOrigin){old.phase, old.fwd, old.onnx, old.name});
        ls_append(cx, g, LS_OP_PART_STAT, 3, (LsValueId[]){run, batch, all}, &old.attr);
        g->node[i] = (LsNode){.op = LS_OP_NOP, .onnx = old.onnx, .name = old.name};
        ls_graph_origin(g->rank.updates, (LsOrigin){LS_UPDATE, {0}, old.onnx, old.name});
        const LsValueId in[] = {ls_rank_source(cx, g, run), ls_rank_source(cx, g, all), factor};
        ls_append(cx, g->rank.updates, LS_OP_RUNNING_STATS, 2 + ls_is(factor), in, &old.attr);
    }
}

bool ls_rank_slices(const LsOptimizerOptions *o)
{
    if (o->kind == LS_OPT_NONE)
        return false;
    const LsRule *r = ls_rule_of(ls_optimizer_row[o->kind].op);
    const bool averages = o->hyper.ema != 0 || o->kind == LS_FREE_SGD || o->kind == LS_FREE_ADAMW;
    const bool blocks = o->kind == LS_ADAM8 || o->kind == LS_ADAM4;
    return !r->makes && !blocks && o->hyper.bf16 == 0 && !averages && o->clip_norm == 0
        && !o->scale.on;
}
