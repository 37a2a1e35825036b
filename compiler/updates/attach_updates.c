/* compiler/updates/attach_updates.c -- appends the update of every trained parameter.
 *
 * requires gradients (LsGraph.grad); appends nodes of phase LS_UPDATE, then moves each as far
 * forward as its operands and the readers of its parameter allow, so that a gradient's live range
 * ends right after its use; keeps everything else. With ranks the graph gets sums of gradients, and
 * the updates are a graph of their own, LsGraph.updates. */
#include "compiler/fold/append.h"
#include "compiler/ir/rewrite.h"
#include "compiler/updates/append_update.h"
#include "compiler/updates/decay_groups.h"
#include "compiler/updates/loss_scale.h"
#include "compiler/updates/rank_sums.h"
#include "compiler/per_sample/row_pairs.h"

#include <string.h>

/* Micro-batches of an update. */
static int micro_steps(const LsOptimizerOptions *o)
{
    return (o->accumulate > 1 ? o->accumulate : 1) * (o->parts > 1 ? o->parts : 1);
}

static LsNodeId made_by(const LsGraph *g, LsValueId v) { return g->value[v.i].def; }

/* An update belongs to the forward node of its gradient, and is named after its parameter. */
static void update_origin(LsGraph *g, LsValueId p, LsValueId grad)
{
    const LsNode *made = &g->node[made_by(g, grad).i];
    ls_graph_origin(g, (LsOrigin){LS_UPDATE, made->fwd, made->onnx, g->value[p.i].name});
}

typedef struct Update {         /* shared by all updates */
    const LsOptimizerOptions *o;
    LsGraph *to;                /* has the updates: the graph of the gradients, or
                                 * LsGraph.updates */
    bool sums;                  /* over several micro-batches */
    LsValueId weight;           /* of this micro-batch's gradients; none: `scale` */
    /* Of the graph `to`: */
    LsValueId mean;             /* factor that turns their sum into a mean; none: 1 */
    LsValueId factor;           /* of gradients, before clipping by value; none: 1 */
    LsAttr part;                /* of the accumulated gradients */
    LsValueId shared;           /* by all updates; none: they share nothing */
} Update;

/* Gradients that other ranks add to. */
static bool is_over_ranks(const Update *u) { return ls_over_ranks(u->o); }

/* The accumulator of values like v. */
static LsValueId partial_sums(LsCtx *cx, LsGraph *g, const char *name, LsValueId v,
                              const LsUpdateAttr *part)
{
    LsShape s = *ls_shape(g, v);
    if (part->sum.levels > 0)
        s = (LsShape){1, {part->sum.levels * ls_count(&s)}};
    const LsValueId acc = ls_value_add(cx, g, LS_V_STATE, name, LS_REAL, &s, NULL);
    g->value[acc.i].of_update = true;
    return acc;
}

/* The weights of an update's micro-batches. The gradient of a mean over labels, times the weight of
 * the labels, is the gradient of a sum: it is accumulated together with the weight, and divided by
 * the total weight at the end. Sample counts are known before the update begins: LsRun.share. */
static Update start(LsCtx *cx, LsGraph *g, const LsOptimizerOptions *o)
{
    const int steps = micro_steps(o);
    Update u = {.o = o,
                .to = g->rank.updates != NULL ? g->rank.updates : g,
                .sums = steps > 1 || g->privacy.on,
                .part = {.update = {.sum.scale = 1}}};
    if (!u.sums || g->privacy.on)
        return u;
    /* the fewest ranks */
    u.part.update.sum.levels =
        o->running_sums ? 0 : ls_tree_levels(is_over_ranks(&u) ? steps / g->rank.choice[0] : steps);
    if (g->objective.over == LS_OVER_SUM)
        return u;
    if (g->objective.over == LS_OVER_SAMPLES) {
        u.part.update.sum.scale = 1.0 / steps;
        u.part.update.sum.by_samples = true;
        return u;
    }
    u.weight = g->objective.weight;
    LsNodeId loss = made_by(g, u.weight);
    ls_graph_origin(g, (LsOrigin){LS_UPDATE, loss, g->node[loss.i].onnx, g->node[loss.i].name});
    static const char name[] = "accumulated_label_weight";
    LsValueId all;
    if (is_over_ranks(&u)) {
        all = ls_rank_sum(cx, g, name, u.weight, (LsValueId){0}, (LsValueId){0}, &u.part);
        ls_graph_origin(u.to,
                        (LsOrigin){LS_UPDATE, {0}, g->node[loss.i].onnx, g->node[loss.i].name});
    } else {
        all = partial_sums(cx, g, name, u.weight, &u.part.update);
        all = ls_append2(cx, g, LS_OP_ACCUMULATE, u.weight, all, &u.part);
    }
    u.factor = u.mean = ls_append1(cx, u.to, LS_OP_MEAN_FACTOR, all, NULL);
    return u;
}

/* Sums over all elements of all gradients. */
typedef struct Sums {
    LsValueId finite;           /* 0 if all are finite, else NaN; none without a loss scale */
    LsValueId squares;          /* none without clipping by norm */
} Sums;

static LsValueId plus(LsCtx *cx, LsGraph *g, LsValueId sum, LsValueId v)
{
    return ls_is(sum) ? ls_append2(cx, g, LS_OP_ADD, sum, v, NULL) : v;
}

/* Of a gradient that a product over few rows makes: from its factors. Then the update alone reads
 * the gradient, and may compute it itself (codegen/fusion/gradient_in_update.h). */
static LsValueId square_norm(LsCtx *cx, LsGraph *g, LsValueId v)
{
    const LsValueId by_rows = ls_square_norm_by_rows(cx, g, v);
    return ls_is(by_rows) ? by_rows : ls_all_axes(cx, g, LS_OP_REDUCE_SUM_SQUARE, v);
}

/* unscale: 1 / loss scale; none: 1. */
static Sums sum_up(LsCtx *cx, LsGraph *g, const LsValueId *grad, const Update *u, LsValueId unscale)
{
    Sums s = {{0}, {0}};
    for (uint32_t i = 0; i < ls_gradients(g); i++) {
        LsValueId v = grad[i];
        update_origin(g, g->grad[i].param, v);
        if (ls_is(unscale)) {
            v = ls_append2(cx, g, LS_OP_MUL, v, unscale, NULL);
            s.finite = plus(cx, g, s.finite, ls_all_axes(cx, g, LS_OP_REDUCE_FINITE, v));
        }
        if (u->o->clip_norm > 0)
            s.squares = plus(cx, g, s.squares, square_norm(cx, g, v));
    }
    return s;
}

/* min(1, c / norm) over all gradients together, as a scalar. */
static LsValueId clip_factor(LsCtx *cx, LsGraph *g, LsValueId sum, const Update *u)
{
    const LsAttr at = {.scalar = {.a = u->o->clip_norm, .b = u->o->hyper.apex != 0 ? 0 : 1e-6}};
    if (!ls_is(u->mean))
        return ls_append1(cx, g, LS_OP_CLIP_FACTOR, sum, &at);
    for (int k = 0; k < 2; k++)                     /* sum of squares */
        sum = ls_append2(cx, g, LS_OP_MUL, sum, u->mean, NULL);
    sum = ls_append1(cx, g, LS_OP_CLIP_FACTOR, sum, &at);
    return ls_append2(cx, g, LS_OP_MUL, sum, u->mean, NULL);
}

static LsValueId scalar_state(LsCtx *cx, LsGraph *g, const char *name)
{
    return ls_value_add(cx, g, LS_V_STATE, name, LS_REAL, &(LsShape){0}, NULL);
}

/* What all updates of the optimizer read: a scalar that changes with the number of the update. */
static void find_shared(LsCtx *cx, LsGraph *g, Update *u)
{
    const bool averages = u->o->kind == LS_FREE_SGD || u->o->kind == LS_FREE_ADAMW;
    if (u->o->kind != LS_NADAM && !averages)
        return;
    const LsAttr at = {.update = {.hyper = u->o->hyper, .skips = ls_is(g->scaling.scale)}};
    const char *name = averages ? "average_share" : "momentum_product";
    const LsNodeId loss = made_by(g, ls_viewed(g, g->objective.loss));
    ls_graph_origin(g, (LsOrigin){LS_UPDATE, loss, g->node[loss.i].onnx, name});
    if (averages)
        u->shared = ls_append3(cx, g, LS_OP_AVERAGE_SHARE, scalar_state(cx, g, "largest_rate"),
                               scalar_state(cx, g, "mean_weight"), u->factor, &at);
    else
        u->shared =
            ls_append2(cx, g, LS_OP_MOMENTUM_PRODUCT, scalar_state(cx, g, name), u->factor, &at);
}

static bool keep(LsRewrite *r, LsNodeId n)
{
    (void)r, (void)n;
    return false;
}

/* Node ids in the old order, but each update directly follows the last node that it depends on. */
static void move_updates(LsCtx *cx, LsGraph *g, uint32_t first)
{
    uint32_t *behind = ls_arena_alloc(cx->arena, g->nnode, sizeof *behind);
    uint32_t *next = ls_arena_alloc(cx->arena, g->nnode, sizeof *next);     /* linked list by
                                                                             * place */
    uint32_t *tail = ls_arena_alloc(cx->arena, g->nnode, sizeof *tail);
    uint32_t *reader = ls_arena_alloc(cx->arena, g->nvalue, sizeof *reader);
    LsNodeId *order = ls_arena_alloc(cx->arena, g->nnode, sizeof *order);
    uint32_t n = 0;
    for (uint32_t i = 1; i < g->nnode; i++) {
        for (int k = 0; k < g->node[i].nin; k++) {
            LsValueId v = ls_in(g, (LsNodeId){i}, k);
            uint32_t def = made_by(g, v).i, made = def < first ? def : behind[def];
            behind[i] = behind[i] > made ? behind[i] : made;
            if (i >= first && ls_writes(&g->node[i], k) && reader[v.i] > behind[i])
                behind[i] = reader[v.i];
        }
        if (i < first)
            for (int k = 0; k < g->node[i].nin; k++)
                reader[ls_in(g, (LsNodeId){i}, k).i] = i;
        else {
            uint32_t to = behind[i];
            next[tail[to] != 0 ? tail[to] : to] = i;
            tail[to] = i;
        }
    }
    for (uint32_t i = 0; i < first; i++) {
        if (i > 0)
            order[n++] = (LsNodeId){i};
        for (uint32_t k = next[i]; k != 0; k = next[k])
            order[n++] = (LsNodeId){k};
    }
    ls_rewrite_order(cx, g, keep, NULL, order, n);
}

/* Warns of a file's own loss that is not a plain mean: a sum, a masked mean, or several terms. */
static void warn_of_unknown(LsCtx *cx, const LsGraph *g, const LsOptimizerOptions *o)
{
    LsNodeId n = made_by(g, ls_viewed(g, g->objective.loss));
    if (o->accumulate > 1 && g->objective.of_file && g->node[n.i].op != LS_OP_REDUCE_MEAN)
        ls_warn(cx, n.i != 0 ? ls_where(g, n) : LS_NOWHERE,
                "--loss adds a loss that is a mean over all "
                "the labels of an update",
                "the file computes the loss: with --accumulate=%d an update takes the "
                "mean of its batches' losses, as if each loss were a mean over samples",
                o->accumulate);
}

/* Whether the losses of parts combine to that of the batch: not if the file computes it other than
 * as a mean, or if its terms are means over different numbers of labels. */
static bool parts_have_the_loss(LsCtx *cx, const LsGraph *g, const LsOptimizerOptions *o)
{
    const LsNodeId n = made_by(g, ls_viewed(g, g->objective.loss));
    if (g->objective.over == LS_OVER_MIXED)
        return ls_error(cx, LS_NOWHERE, LS_E_LOSS,
                        "leave --microbatches out, or --ignore-index and --class-weights",
                        "--microbatches %d: the terms of the loss are means over different numbers "
                        "of labels, so no weight "
                        "of a part is right for all of them",
                        o->parts);
    return !g->objective.of_file || g->node[n.i].op == LS_OP_REDUCE_MEAN
           || ls_error(cx, n.i != 0 ? ls_where(g, n) : LS_NOWHERE, LS_E_LOSS,
                       "--loss adds a loss that is a mean over all labels "
                       "of a batch",
                       "--microbatches %d: the file computes the loss, and its last node is no "
                       "mean over the "
                       "samples, so the losses of parts may not combine to that of the batch",
                       o->parts);
}

/* The gradients of u->to, with their parameters: sums over all ranks. */
static void sum_over_ranks(LsCtx *cx, LsGraph *g, const Update *u, LsValueId *grad)
{
    const uint32_t n = ls_gradients(g);
    u->to->grad = ls_arena_alloc(cx->arena, n, sizeof *u->to->grad);
    u->to->ngrad = n;
    for (uint32_t i = 0; i < n; i++) {
        const LsGrad *of = &g->grad[i];
        update_origin(g, of->param, of->grad);
        grad[i] =
            ls_rank_sum(cx, g, ls_arena_printf(cx->arena, "%s.grad", g->value[of->param.i].name),
                        of->grad, u->weight, of->param, &u->part);
        u->to->grad[i] = (LsGrad){ls_rank_source(cx, g, of->param), grad[i], LS_GRAD};
    }
}

/* The gradients that the updates read: with `apart`, the accumulated sums, which are then made
 * before the updates. */
static void accumulate(LsCtx *cx, LsGraph *g, const Update *u, bool apart, LsValueId *grad,
                       LsValueId *acc)
{
    for (uint32_t i = 0; i < ls_gradients(g); i++) {
        grad[i] = g->grad[i].grad;
        update_origin(g, g->grad[i].param, grad[i]);
        if (u->sums)
            acc[i] = partial_sums(
                cx, g, ls_arena_printf(cx->arena, "%s.grad", g->value[g->grad[i].param.i].name),
                g->grad[i].param, &u->part.update);
        if (u->sums && apart) {
            const LsValueId in[] = {grad[i], acc[i], u->weight};
            LsAttr part = u->part;
            part.update.stays = u->o->sums_stay && !g->privacy.on;
            grad[i] = ls_append(cx, g, LS_OP_ACCUMULATE, 2 + ls_is(u->weight), in, &part);
            acc[i] = (LsValueId){0};
        }
    }
}

/* Sets the factor of all gradients: it needs all of them. */
static void find_factor(LsCtx *cx, LsGraph *g, const LsValueId *grad, Update *u)
{
    const LsValueId unscale = ls_is(g->scaling.scale) ? ls_scaling_inverse(cx, g) : (LsValueId){0};
    const Sums all = sum_up(cx, g, grad, u, unscale);
    if (u->o->clip_norm > 0)
        u->factor = clip_factor(cx, g, all.squares, u);
    if (ls_is(unscale)) {
        u->factor =
            ls_is(u->factor) ? ls_append2(cx, g, LS_OP_MUL, unscale, u->factor, NULL) : unscale;
        u->factor = ls_append2(cx, g, LS_OP_STEP_FACTOR, all.finite, u->factor, NULL);
    }
}

/* The updates of all parameters, in u->to. */
static void append_updates(LsCtx *cx, const LsGraph *g, const Update *u, const LsValueId *grad,
                           const LsValueId *acc)
{
    const LsOptimizerOptions *o = u->o;
    for (uint32_t i = 0; i < ls_gradients(g) && o->kind != LS_OPT_NONE; i++) {
        const LsGrad *of = &u->to->grad[i];
        update_origin(u->to, of->param, of->grad);
        LsStepIn in = {.p = of->param,
                       .grad = grad[i],
                       .factor = u->factor,
                       .acc = acc[i],
                       .shared = u->shared,
                       .decays = ls_decays(g, g->grad[i].param, o)};
        in.weight = ls_is(acc[i]) ? u->weight : (LsValueId){0};
        in.at.update = (LsUpdateAttr){.hyper = o->hyper,
                                      .clip = o->clip_value,
                                      .skips = ls_is(g->scaling.scale),
                                      .sum.scale = u->part.update.sum.scale,
                                      .sum.by_samples = u->part.update.sum.by_samples,
                                      .sum.levels = ls_is(acc[i]) ? u->part.update.sum.levels : 0,
                                      .sliced = g->rank.sliced};
        ls_append_update(cx, u->to, &in, o);
    }
}

/* The loss scale's state in the graph of updates. */
static void share_scaling(LsCtx *cx, LsGraph *g)
{
    if (g->rank.updates == NULL || !ls_is(g->scaling.scale))
        return;
    g->rank.updates->scaling.scale = ls_rank_source(cx, g, g->scaling.scale);
    g->rank.updates->scaling.counter = ls_rank_source(cx, g, g->scaling.counter);
    g->rank.updates->scaling.skips = ls_rank_source(cx, g, g->scaling.skips);
}

static bool can_update(LsCtx *cx, LsGraph *g, const LsOptimizerOptions *o)
{
    if (o->parts > 1 && !parts_have_the_loss(cx, g, o))
        return false;
    if (o->accumulate > 1 && g->objective.over == LS_OVER_MIXED)
        return ls_error(cx, LS_NOWHERE, LS_E_LOSS,
                        "leave --accumulate out, or --ignore-index and --class-weights",
                        "--accumulate=%d: the terms of the loss are means over different numbers "
                        "of labels, so no weight "
                        "of a batch is right for all of them",
                        o->accumulate);
    return ls_decay_groups_check(cx, g, o)
           && (!ls_over_ranks(o) || ls_ranks_begin(cx, g, o, micro_steps(o)));
}

bool ls_optimizer(LsCtx *cx, LsGraph *g, const LsOptimizerOptions *o)
{
    const uint32_t first = g->nnode;
    const bool scaled = ls_is(g->scaling.scale);
    if ((o->kind == LS_OPT_NONE && !scaled) || g->ngrad == 0)
        return true;
    if (!can_update(cx, g, o))
        return false;
    warn_of_unknown(cx, g, o);
    share_scaling(cx, g);
    Update u = start(cx, g, o);
    LsValueId *grad = ls_arena_alloc(cx->arena, g->ngrad, sizeof *grad);
    LsValueId *acc = ls_arena_alloc(cx->arena, g->ngrad, sizeof *acc);
    if (is_over_ranks(&u))
        sum_over_ranks(cx, g, &u, grad);
    else
        accumulate(cx, g, &u, o->clip_norm > 0 || scaled, grad, acc);
    if (o->clip_norm > 0 || scaled)
        find_factor(cx, u.to, grad, &u);
    find_shared(cx, u.to, &u);
    append_updates(cx, g, &u, grad, acc);
    if (scaled)
        ls_scaling_move(cx, u.to, &o->scale, u.factor, u.sums);
    if (is_over_ranks(&u))
        ls_rank_statistics(cx, g, scaled ? u.factor : (LsValueId){0}, micro_steps(o));
    ls_graph_origin(g, (LsOrigin){LS_FORWARD, {0}, 0, NULL});
    move_updates(cx, g, first);
    return true;
}
