/* compiler/ops/scatter.c -- IR rows that write by index, and those that gather by an index of every
 * element; see move.def. */
#include "compiler/ops/row.h"

static bool takes_indices(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    LsType type = ls_type(g, ls_in(g, n, 1));
    return type == LS_I64 || type == LS_I32
        || ls_error(cx, ls_where(g, n), LS_E_TYPE, NULL, "the indices are %s, not integers",
                    ls_type_name(type));
}

/* x and the indices have the same axes, of the same lengths but for the axis. */
static bool fits_each(LsCtx *cx, LsGraph *g, LsNodeId n, const LsShape *x)
{
    const LsShape *index = ls_in_shape(g, n, 1);
    bool fits = x->rank == index->rank;
    for (int k = 0; fits && k < x->rank; k++)
        fits = k == g->node[n.i].attr.gather.axis || x->dim[k] == index->dim[k];
    return fits
           || ls_error(
               cx, ls_where(g, n), LS_E_SHAPE, NULL,
               "the indices are %s, the operand is %s: they differ along other axes than %d",
               ls_shape_text(g->arena, index), ls_shape_text(g->arena, x),
               g->node[n.i].attr.gather.axis);
}

static bool gather_each_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    return takes_indices(cx, g, n) && fits_each(cx, g, n, ls_in_shape(g, n, 0))
        && ls_infer_out(cx, g, n, ls_type(g, ls_in(g, n, 0)), ls_in_shape(g, n, 1));
}

static void gather_each_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[],
                             const bool want[], LsValueId dx[])
{
    LsAttr at = g->node[n.i].attr;
    at.gather.x = *ls_in_shape(g, n, 0);
    at.gather.how = LS_SCATTER_ADD;
    if (want[0])
        dx[0] = ls_append2(cx, g, LS_OP_SCATTER_EACH, dy[0], ls_in(g, n, 1), &at);
}

const LsOp ls_op_gather_each = {
    .name = "gather_each", .min_in = 2, .max_in = 2, .nout = 1, .infer = gather_each_infer,
    .grad = gather_each_grad, .kernel = LS_K_GATHER, .layout = LS_LAY_ROW,
};

/* The shape that the updates have where they are not one element. */
static LsShape updates_shape(const LsGraph *g, LsNodeId n)
{
    const LsGatherAttr *at = &g->node[n.i].attr.gather;
    const LsShape *index = ls_in_shape(g, n, 1);
    if (g->node[n.i].op == LS_OP_SCATTER_EACH)
        return *index;
    LsShape s = {0};
    for (int k = 0; k < at->x.rank; k++)
        for (int i = 0; i < (k == at->axis ? index->rank : 1) && s.rank < LS_MAX_RANK; i++)
            s.dim[s.rank++] = k == at->axis ? index->dim[i] : at->x.dim[k];
    return s;
}

static bool scatter_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    const LsGatherAttr at = g->node[n.i].attr.gather;
    const LsShape *updates = ls_in_shape(g, n, 0), want = updates_shape(g, n);
    LsType type = ls_type(g, ls_in(g, n, 0));
    LsValueId base = ls_in(g, n, 2);
    if (!takes_indices(cx, g, n)
        || (g->node[n.i].op == LS_OP_SCATTER_EACH && !fits_each(cx, g, n, &at.x)))
        return false;
    if (ls_is(base) && ls_type(g, base) != type)
        return ls_error(cx, ls_where(g, n), LS_E_TYPE, "insert a Cast on one side",
                        "the data is %s, the updates are %s", ls_type_name(ls_type(g, base)),
                        ls_type_name(type));
    if (type == LS_BOOL && at.how != LS_SCATTER_SET)
        return ls_error(cx, ls_where(g, n), LS_E_TYPE, "insert a Cast to int32 or float",
                        "bools are not combined");
    if (updates->rank != 0 && !ls_shape_same(updates, &want))
        return ls_error(cx, ls_where(g, n), LS_E_SHAPE, NULL,
                        "the updates are %s, the indices ask for %s",
                        ls_shape_text(g->arena, updates), ls_shape_text(g->arena, &want));
    return ls_infer_out(cx, g, n, type, &at.x);
}

/* ---- gradients, for scatters of rows and of elements alike ---- */
typedef struct Grad {
    LsCtx *cx; LsGraph *g;
    LsOpCode gather, scatter;
    LsAttr at;
    LsValueId updates, index, base, y, dy;
} Grad;

static LsValueId taken(const Grad *r, LsValueId v)
{
    return ls_append2(r->cx, r->g, r->gather, v, r->index,
                      &(LsAttr){.gather = {.axis = r->at.gather.axis}});
}

static LsValueId scattered(const Grad *r, LsScatterHow how, LsValueId updates, LsValueId base)
{
    LsAttr at = r->at;
    at.gather.how = how;
    return ls_append3(r->cx, r->g, r->scatter, updates, r->index, base, &at);
}

static LsValueId two(const Grad *r, LsOpCode op, LsValueId a, LsValueId b)
{
    return ls_append2(r->cx, r->g, op, a, b, NULL);
}

static LsValueId number(const Grad *r, LsValueId truth)
{
    return ls_append1(r->cx, r->g, LS_OP_CAST, truth, &(LsAttr){.cast = LS_REAL});
}

static LsValueId where(const Grad *r, LsValueId c, LsValueId x, LsValueId y)
{
    return ls_append3(r->cx, r->g, LS_OP_WHERE, c, x, y, NULL);
}

/* dy in equal shares to all that equal the result: the base and updates of that place. */
static void extreme_grad(const Grad *r, const bool want[], LsValueId dx[])
{
    LsValueId of_base = number(r, two(r, LS_OP_EQUAL, r->base, r->y));
    LsValueId of_update = number(r, two(r, LS_OP_EQUAL, r->updates, taken(r, r->y)));
    LsValueId ties = scattered(r, LS_SCATTER_ADD, of_update, of_base);
    LsValueId share = two(r, LS_OP_DIV, r->dy, ties);
    if (want[0])
        dx[0] = two(r, LS_OP_MUL, of_update, taken(r, share));
    if (want[2])
        dx[2] = two(r, LS_OP_MUL, of_base, share);
}

/* dy times the product of the other factors: y / x where the factor x is not 0. Where x is, the
 * product is computed with 1 in its place; among several updates 0 of one place nothing else has a
 * gradient. */
static void product_grad(const Grad *r, const bool want[], LsValueId dx[])
{
    LsCtx *cx = r->cx;
    LsGraph *g = r->g;
    LsValueId zero = ls_const_real(cx, g, 0), one = ls_const_real(cx, g, 1);
    if (want[2]) {
        LsValueId safe = where(r, two(r, LS_OP_EQUAL, r->base, zero), one, r->base);
        LsValueId rest = two(r, LS_OP_DIV, scattered(r, LS_SCATTER_MUL, r->updates, safe), safe);
        dx[2] = two(r, LS_OP_MUL, r->dy, rest);
    }
    if (!want[0])
        return;
    LsValueId is_zero = two(r, LS_OP_EQUAL, r->updates, zero);
    LsValueId none = ls_expand(cx, g, zero, r->at.gather.x);
    LsValueId zeros = taken(r, scattered(r, LS_SCATTER_ADD, number(r, is_zero), none));
    LsValueId alone = two(r, LS_OP_AND, is_zero, two(r, LS_OP_EQUAL, zeros, one));
    LsValueId others = scattered(r, LS_SCATTER_MUL, where(r, alone, one, r->updates), r->base);
    LsValueId there = taken(r, two(r, LS_OP_MUL, r->dy, others));
    LsValueId elsewhere = two(r, LS_OP_DIV, taken(r, two(r, LS_OP_MUL, r->dy, r->y)),
                              where(r, is_zero, one, r->updates));
    dx[0] = where(r, alone, there, elsewhere);
}

static void scatter_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[], const bool want[],
                         LsValueId dx[])
{
    bool each = g->node[n.i].op == LS_OP_SCATTER_EACH;
    const Grad r = {.cx = cx, .g = g, .gather = each ? LS_OP_GATHER_EACH : LS_OP_GATHER,
                    .scatter = each ? LS_OP_SCATTER_EACH : LS_OP_SCATTER,
                    .at = g->node[n.i].attr, .updates = ls_in(g, n, 0), .index = ls_in(g, n, 1),
                    .base = ls_in(g, n, 2), .y = ls_out(g, n, 0), .dy = dy[0]};
    switch (r.at.gather.how) {
    case LS_SCATTER_MAX: case LS_SCATTER_MIN: extreme_grad(&r, want, dx); return;
    case LS_SCATTER_MUL: product_grad(&r, want, dx); return;
    default: break;
    }
    if (want[0])
        dx[0] = taken(&r, dy[0]);
    if (want[2])
        dx[2] = r.at.gather.how == LS_SCATTER_ADD
            ? dy[0] : scattered(&r, LS_SCATTER_SET, ls_const_real(cx, g, 0), dy[0]);
}

static double scatter_flops(const LsGraph *g, LsNodeId n)
{
    return (double)ls_count(ls_in_shape(g, n, 0));
}

const LsOp ls_op_scatter = {        /* updates, indices, base */
    .name = "scatter", .min_in = 3, .max_in = 3, .nout = 1, .infer = scatter_infer,
    .grad = scatter_grad, .flops = scatter_flops, .kernel = LS_K_GATHER, .layout = LS_LAY_ROW,
};
const LsOp ls_op_scatter_each = {   /* updates, indices, base */
    .name = "scatter_each", .min_in = 2, .max_in = 3, .nout = 1, .infer = scatter_infer,
    .grad = scatter_grad, .flops = scatter_flops, .kernel = LS_K_GATHER, .layout = LS_LAY_ROW,
};
