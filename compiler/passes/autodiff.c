/* compiler/passes/autodiff.c -- reverse-mode autodiff: gradients of the loss by every trained
 * parameter.
 *
 * requires the loss; appends nodes of phase LS_BACKWARD, keeps all others; sets LsGraph.grad.
 *
 * Only values between a trained parameter and the loss get a gradient. Nodes are visited once, from
 * the last to the first. A second contribution to a value is added as soon as it arrives, so that
 * the order of the sums follows the file and every value has at most one partial gradient.
 *
 * A concatenation whose operands begin with those of an earlier one passes it the gradient of all
 * of them. In a DenseNet, whose layers read all earlier layers, one sum then flows from layer to
 * layer instead of one per earlier layer. */
#include "compiler/ops/pad_sum.h"
#include "compiler/ops/row.h"
#include "compiler/per_sample/per_sample.h"
#include "compiler/passes/passes.h"

#include <assert.h>
#include <string.h>

typedef struct Diff {
    LsCtx *cx;
    LsGraph *g;
    uint32_t nnode, nvalue;     /* of the forward part */
    bool *moves;                /* by value: real, and depends on a trained parameter */
    bool *matters;              /* by value: the loss depends on it */
    LsValueId *grad;            /* by value: its gradient so far */
    LsGrad *part; uint32_t npart, cap_part;     /* all gradients so far, with the values that they
                                                 * belong to */
} Diff;

static bool real_out(const LsGraph *g, LsValueId v) { return ls_type(g, v) == LS_REAL; }

static void find_moving(Diff *d)
{
    const LsGraph *g = d->g;
    for (uint32_t i = 1; i < d->nvalue; i++)
        d->moves[i] = g->value[i].kind == LS_V_PARAM;
    for (uint32_t i = 1; i < d->nnode; i++) {
        bool any = false;
        for (int k = 0; k < g->node[i].nin && g->node[i].op != LS_OP_DETACH; k++)
            any |= d->moves[ls_in(g, (LsNodeId){i}, k).i];
        for (int k = 0; any && k < g->node[i].nout; k++) {
            LsValueId v = ls_out(g, (LsNodeId){i}, k);
            d->moves[v.i] = real_out(g, v);
        }
    }
}

static void find_mattering(Diff *d)
{
    const LsGraph *g = d->g;
    d->matters[g->objective.loss.i] = true;
    for (uint32_t i = d->nnode; i-- > 1;) {
        bool any = false;
        for (int k = 0; k < g->node[i].nout; k++)
            any |= d->matters[ls_out(g, (LsNodeId){i}, k).i];
        for (int k = 0; any && k < g->node[i].nin; k++)
            d->matters[ls_in(g, (LsNodeId){i}, k).i] = true;
    }
}

/* The node passes gradients on: some operand moves, and with it some result that matters. */
static bool on_path(const Diff *d, uint32_t n)
{
    bool in = false, out = false;
    for (int k = 0; k < d->g->node[n].nin; k++)
        in |= d->moves[ls_in(d->g, (LsNodeId){n}, k).i];
    for (int k = 0; k < d->g->node[n].nout; k++) {
        LsValueId v = ls_out(d->g, (LsNodeId){n}, k);
        out |= d->matters[v.i] && d->moves[v.i];
    }
    return in && out;
}

/* Reports every operator without a gradient on a path, once, with the number of its nodes and the
 * name of the first. */
static bool all_have_gradients(Diff *d)
{
    uint32_t *count = ls_arena_alloc(d->cx->arena, LS_NOPS, sizeof *count);
    uint32_t *first = ls_arena_alloc(d->cx->arena, LS_NOPS, sizeof *first);
    bool all = true;
    for (uint32_t i = 1; i < d->nnode; i++) {
        uint16_t op = d->g->node[i].op;
        if (ls_op[op]->grad != NULL || !on_path(d, i))
            continue;
        if (count[op]++ == 0)
            first[op] = i;
    }
    for (int op = 0; op < LS_NOPS; op++)
        if (count[op] > 0)
            all = ls_error(
                d->cx, ls_where(d->g, (LsNodeId){first[op]}), LS_E_NO_GRAD,
                "freeze the parameters before it (--freeze) or replace it",
                "%s has no gradient; %u such node%s between a trained parameter and the loss",
                ls_op[op]->name, count[op], count[op] == 1 ? " lies" : "s lie");
    return all;
}

static void note_part(Diff *d, LsValueId v, LsValueId dv)
{
    d->part = ls_arena_grow(d->cx->arena, d->part, d->npart, d->npart + 1u,
                            sizeof *d->part, &d->cap_part);
    d->part[d->npart++] = (LsGrad){.param = v, .grad = dv};
}

static void add_grad(Diff *d, LsValueId v, LsValueId dv)
{
    LsValueId *sum = &d->grad[v.i];
    assert(ls_shape_same(ls_shape(d->g, v), ls_shape(d->g, dv)));
    note_part(d, v, dv);
    if (ls_is(*sum)) {
        *sum = ls_sum_grads(d->cx, d->g, *sum, dv);
        note_part(d, v, *sum);
    } else
        *sum = dv;
}

static bool begins_with(const LsGraph *g, const LsNode *all, const LsNode *some)
{
    bool same = some->nin < all->nin;
    for (uint32_t k = 0; same && k < some->nin; k++)
        same = g->operand[all->in + k].i == g->operand[some->in + k].i;
    return same;
}

/* The earlier concatenation that shares the most leading operands with n; none: {0}. */
static LsNodeId beginning_of(const Diff *d, LsNodeId n)
{
    const LsNode *all = &d->g->node[n.i];
    LsNodeId best = {0};
    for (uint32_t i = 1; all->op == LS_OP_CONCAT && i < n.i; i++) {
        const LsNode *some = &d->g->node[i];
        if (some->op == LS_OP_CONCAT && some->attr.axis.axis == all->attr.axis.axis
            && some->nin > 1 && (best.i == 0 || some->nin > d->g->node[best.i].nin)
            && begins_with(d->g, all, some) && on_path(d, i))
            best.i = i;
    }
    return best;
}

/* Passes the gradient of the first operands of concatenation n to the result of the earlier one. */
static void hand_on(Diff *d, LsNodeId n, LsValueId dy, LsNodeId earlier)
{
    LsValueId y = ls_out(d->g, earlier, 0);
    int axis = d->g->node[n.i].attr.axis.axis;
    add_grad(d, y, ls_slice_axis(d->cx, d->g, dy, axis, 0, ls_shape(d->g, y)->dim[axis]));
}

static void differentiate(Diff *d, LsNodeId n)
{
    LsGraph *g = d->g;
    const LsNode node = g->node[n.i];
    LsValueId dy[LS_MAX_OUT] = {{0}};
    LsValueId *dx = ls_arena_alloc(d->cx->arena, node.nin, sizeof *dx);
    bool *want = ls_arena_alloc(d->cx->arena, node.nin, sizeof *want), any = false;
    for (int k = 0; k < node.nout; k++) {
        dy[k] = d->grad[ls_out(g, n, k).i];
        any |= ls_is(dy[k]);
    }
    if (!any)
        return;
    LsNodeId earlier = beginning_of(d, n);
    int first = earlier.i != 0 ? g->node[earlier.i].nin : 0;
    for (int k = first; k < node.nin; k++)
        want[k] = d->moves[ls_in(g, n, k).i];
    ls_graph_origin(g, (LsOrigin){LS_BACKWARD, n, node.onnx, node.name});
    ls_op[node.op]->grad(d->cx, g, n, dy, want, dx);
    for (int k = 0; k < node.nin; k++)
        if (want[k] && ls_is(dx[k]))
            add_grad(d, ls_in(g, n, k), dx[k]);
    if (earlier.i != 0)
        hand_on(d, n, dy[0], earlier);
}

/* Marks the parameters that the loss depends on through a value whose gradient the file or an
 * option stops. */
static void mark_stopped(Diff *d)
{
    LsGraph *g = d->g;
    /* such a value depends on it */
    bool *behind = ls_arena_alloc(d->cx->arena, d->nvalue, sizeof *behind);
    for (uint32_t i = d->nnode; i-- > 1;) {
        bool any = false;
        for (int k = 0; k < g->node[i].nout; k++) {
            const LsValueId v = ls_out(g, (LsNodeId){i}, k);
            any |= behind[v.i] || (g->value[v.i].stopped && d->matters[v.i]);
        }
        for (int k = 0; any && k < g->node[i].nin; k++)
            behind[ls_in(g, (LsNodeId){i}, k).i] = true;
    }
    for (uint32_t i = 1; i < d->nvalue; i++)
        if (g->value[i].kind == LS_V_PARAM)
            g->value[i].stopped = behind[i];
}

/* Collects the gradients of parameters in file order. A parameter that does not affect the loss is
 * left alone. */
static void collect(Diff *d)
{
    LsGraph *g = d->g;
    mark_stopped(d);
    g->grad = ls_arena_alloc(d->cx->arena, d->nvalue, sizeof *g->grad);
    g->ngrad = 0;
    for (uint32_t i = 1; i < d->nvalue; i++) {
        if (g->value[i].kind != LS_V_PARAM)
            continue;
        if (ls_is(d->grad[i]))
            g->grad[g->ngrad++] = (LsGrad){.param = {i}, .grad = d->grad[i]};
        else
            ls_warn(d->cx, LS_NOWHERE, NULL,
                    g->value[i].stopped
                        ? "the gradient of parameter '%s' is stopped on every way, and it is not "
                          "trained"
                        : "parameter '%s' has no influence on the loss and is not trained",
                    g->value[i].name);
    }
}

/* The gradient of the loss by itself, times the loss scale. Per-sample gradients are those of the
 * samples' own losses, whose mean the loss is. */
static LsValueId seed(LsCtx *cx, LsGraph *g, bool samples)
{
    LsValueId one = ls_is(g->scaling.scale) ? g->scaling.scale : ls_const_real(cx, g, 1);
    if (!samples || g->objective.over == LS_OVER_SUM)
        return one;
    return g->objective.of_file ? ls_scale(cx, g, one, (double)g->batch)
                                : ls_append1(cx, g, LS_OP_TIMES_SAMPLES, one, NULL);
}

static bool per_sample(Diff *d, const LsSampleGrads *o)
{
    LsValueId *of = ls_arena_alloc(d->cx->arena, d->g->nvalue, sizeof *of);
    for (uint32_t i = 0; i < d->npart; i++)
        of[d->part[i].grad.i] = d->part[i].param;
    return ls_per_sample(d->cx, d->g, o, of);
}

bool ls_autodiff(LsCtx *cx, LsGraph *g) { return ls_autodiff_samples(cx, g, &(LsSampleGrads){0}); }

bool ls_autodiff_samples(LsCtx *cx, LsGraph *g, const LsSampleGrads *o)
{
    const bool samples = ls_wants_samples(o);
    Diff d = {.cx = cx, .g = g, .nnode = g->nnode, .nvalue = g->nvalue};
    d.moves = ls_arena_alloc(cx->arena, d.nvalue, sizeof *d.moves);
    d.matters = ls_arena_alloc(cx->arena, d.nvalue, sizeof *d.matters);
    d.grad = ls_arena_alloc(cx->arena, d.nvalue, sizeof *d.grad);
    find_moving(&d);
    find_mattering(&d);
    if (!all_have_gradients(&d))
        return false;
    if (d.moves[g->objective.loss.i]) {
        ls_graph_origin(g, (LsOrigin){LS_BACKWARD, g->value[g->objective.loss.i].def, 0, "loss"});
        d.grad[g->objective.loss.i] = seed(cx, g, samples);
        for (uint32_t i = d.nnode; i-- > 1;)
            if (on_path(&d, i))
                differentiate(&d, (LsNodeId){i});
    }
    collect(&d);
    ls_graph_origin(g, (LsOrigin){LS_FORWARD, {0}, 0, NULL});
    if (g->ngrad == 0)
        return ls_error(cx, LS_NOWHERE, LS_E_LOSS,
                        "`lowerset inspect` lists what is trained, and why; --train GLOB adds "
                        "tensors of the file; see "
                        "--freeze, --loss-input",
                        "no trained parameter has influence on the loss");
    return !samples || per_sample(&d, o);
}
