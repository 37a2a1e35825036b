/* compiler/ops/pad_sum.c -- sums the gradients of one tensor's parts.
 *
 * The gradient of a slice is dy surrounded by zeros. Summing those of all parts of a split would
 * make and add as many whole tensors; neighbouring parts are joined instead. A gradient that is
 * constant along some axes is added in its form before it was expanded; if one addend is (x - mean)
 * a without a bias, the other takes the bias's place. Gathered rows of a table are scattered onto
 * the other gradient in place, instead of onto a tensor of zeros of that size. ls_dce removes the
 * nodes left without a reader. */
#include "compiler/ops/pad_sum.h"
#include "compiler/ops/row.h"

typedef struct Part {           /* v, surrounded by lo and hi zeros */
    LsValueId v;
    LsPadAttr pad;
} Part;

static bool is_part(const LsGraph *g, LsValueId sum, Part *p)
{
    const LsNode *n = &g->node[g->value[sum.i].def.i];
    if (n->op != LS_OP_PAD || n->attr.pad.mode != LS_PAD_CONSTANT || n->attr.pad.value != 0)
        return false;
    *p = (Part){g->operand[n->in], n->attr.pad};
    for (int k = 0; k < ls_shape(g, sum)->rank; k++)
        if (p->pad.lo[k] < 0 || p->pad.hi[k] < 0)
            return false;
    return true;
}

/* The axis along which b begins where a ends, with all other axes equal; -1: none. */
static int seam(const LsGraph *g, const Part *a, const Part *b)
{
    const LsShape *x = ls_shape(g, a->v), *y = ls_shape(g, b->v);
    int axis = -1;
    for (int k = 0; k < x->rank; k++) {
        if (a->pad.lo[k] == b->pad.lo[k] && x->dim[k] == y->dim[k])
            continue;
        if (axis >= 0 || a->pad.lo[k] + x->dim[k] != b->pad.lo[k])
            return -1;
        axis = k;
    }
    return axis;
}

/* Appends to list the parts from which v was joined along the axis, or v itself. */
static int parts_of(const LsGraph *g, LsValueId v, int axis, LsValueId list[])
{
    const LsNode *n = &g->node[g->value[v.i].def.i];
    if (n->op != LS_OP_CONCAT || n->attr.axis.axis != axis) {
        list[0] = v;
        return 1;
    }
    for (int k = 0; k < n->nin; k++)
        list[k] = g->operand[n->in + (uint32_t)k];
    return n->nin;
}

static LsValueId join(LsCtx *cx, LsGraph *g, const Part *a, const Part *b, int axis)
{
    size_t room = 2u + g->node[g->value[a->v.i].def.i].nin + g->node[g->value[b->v.i].def.i].nin;
    LsValueId *list = ls_arena_alloc(g->arena, room, sizeof *list);
    int n = parts_of(g, a->v, axis, list);
    n += parts_of(g, b->v, axis, list + n);
    LsValueId v = ls_append(cx, g, LS_OP_CONCAT, n, list, &(LsAttr){.axis = {axis}});
    LsAttr at = {.pad = a->pad};
    at.pad.hi[axis] = b->pad.hi[axis];
    bool whole = true;
    for (int k = 0; k < ls_shape(g, v)->rank; k++)
        whole &= at.pad.lo[k] == 0 && at.pad.hi[k] == 0;
    return whole ? v : ls_append1(cx, g, LS_OP_PAD, v, &at);
}

static bool is_expanded(const LsGraph *g, LsValueId v)
{
    return g->node[g->value[v.i].def.i].op == LS_OP_EXPAND;
}

static bool is_share(const LsGraph *g, LsValueId v)
{
    const LsNodeId def = g->value[v.i].def;
    return g->node[def.i].op == LS_OP_COUNTED_SHARE && is_expanded(g, ls_in(g, def, 0));
}

/* The value that v was expanded from, or v itself. Of a share that is 0 behind the samples that
 * count (LsCounted): the share, if `counted`: what is added to it makes it 0 there. */
static LsValueId narrow(LsCtx *cx, LsGraph *g, LsValueId v, bool counted)
{
    const LsNodeId def = g->value[v.i].def;
    if (is_expanded(g, v))
        return ls_in(g, def, 0);
    if (!counted || !is_share(g, v))
        return v;
    const LsAttr at = g->node[def.i].attr;
    return ls_append1(cx, g, LS_OP_COUNTED_SHARE, ls_in(g, g->value[ls_in(g, def, 0).i].def, 0),
                      &at);
}

static bool is_counted(const LsGraph *g, LsValueId affine)
{
    return g->node[g->value[affine.i].def.i].attr.scalar.counted.each > 0;
}

static bool is_unbiased(const LsGraph *g, LsValueId v)
{
    LsNodeId def = g->value[v.i].def;
    if (g->node[def.i].op != LS_OP_AFFINE)
        return false;
    const LsValue *bias = &g->value[ls_in(g, def, 3).i];
    return bias->kind == LS_V_CONST && bias->data != NULL && ls_count(&bias->shape) == 1
        && ls_const_at(g, ls_in(g, def, 3), 0) == 0;
}

static LsValueId add_affine(LsCtx *cx, LsGraph *g, LsValueId v, LsValueId more)
{
    LsNodeId def = g->value[v.i].def;
    LsValueId in[] = {ls_in(g, def, 0), ls_in(g, def, 1), ls_in(g, def, 2), more};
    const LsAttr at = g->node[def.i].attr;
    return ls_append(cx, g, LS_OP_AFFINE, 4, in, &at);
}

static bool is_made(const LsGraph *g, LsValueId v) { return g->value[v.i].kind == LS_V_TEMP; }

/* v is rows scattered onto zeros, possibly in several steps. */
static bool is_scattered(const LsGraph *g, LsValueId v)
{
    LsNodeId def = g->value[v.i].def;
    LsValueId base = ls_in(g, def, 2);
    return g->node[def.i].op == LS_OP_GATHER_GRAD && (!ls_is(base) || is_scattered(g, base));
}

/* Scatters the rows of v onto base; the new nodes get the origin of v's nodes. */
static LsValueId scatter_to(LsCtx *cx, LsGraph *g, LsValueId base, LsValueId v)
{
    LsNodeId def = g->value[v.i].def;
    if (ls_is(ls_in(g, def, 2)))
        base = scatter_to(cx, g, base, ls_in(g, def, 2));
    const LsNode now = g->node[0], n = g->node[def.i];
    LsValueId in[] = {ls_in(g, def, 0), ls_in(g, def, 1), base};
    ls_graph_origin(g, (LsOrigin){n.phase, n.fwd, n.onnx, n.name});
    v = ls_append(cx, g, LS_OP_GATHER_GRAD, 3, in, &n.attr);
    ls_graph_origin(g, (LsOrigin){now.phase, now.fwd, now.onnx, now.name});
    return v;
}

static int64_t terms_of(const LsGraph *g, LsNodeId n)
{
    const LsShape *a = ls_in_shape(g, n, 0);
    return a->dim[g->node[n.i].attr.gemm.trans_a ? 0 : 1];
}

/* b is a product of the terms that follow those of a. */
static bool continues(const LsGraph *g, LsValueId a, LsValueId b)
{
    const LsNodeId p = g->value[a.i].def, q = g->value[b.i].def;
    return g->node[p.i].op == LS_OP_MATMUL_PART && g->node[q.i].op == LS_OP_MATMUL_PART
           && !ls_is(ls_in(g, q, 2)) && g->node[p.i].attr.gemm.of == g->node[q.i].attr.gemm.of
           && g->node[p.i].attr.gemm.from + terms_of(g, p) == g->node[q.i].attr.gemm.from;
}

/* The same product, added to a. */
static LsValueId continue_sum(LsCtx *cx, LsGraph *g, LsValueId a, LsValueId b)
{
    const LsNodeId q = g->value[b.i].def;
    const LsAttr at = g->node[q.i].attr;
    const LsValueId in[] = {ls_in(g, q, 0), ls_in(g, q, 1), a};
    return ls_append(cx, g, LS_OP_MATMUL_PART, 3, in, &at);
}

LsValueId ls_sum_grads(LsCtx *cx, LsGraph *g, LsValueId a, LsValueId b)
{
    Part p, q;
    if (is_part(g, a, &p) && is_part(g, b, &q)) {
        int axis = seam(g, &p, &q);
        if (axis >= 0)
            return join(cx, g, &p, &q, axis);
        if ((axis = seam(g, &q, &p)) >= 0)
            return join(cx, g, &q, &p, axis);
    }
    if (continues(g, a, b))
        return continue_sum(cx, g, a, b);
    if (is_unbiased(g, b))
        return add_affine(cx, g, b, narrow(cx, g, a, is_counted(g, b)));
    if (is_scattered(g, b) && is_made(g, a))
        return scatter_to(cx, g, a, b);
    if (is_scattered(g, a) && is_made(g, b))
        return scatter_to(cx, g, b, a);
    LsValueId less = narrow(cx, g, b, false);       /* one of the two stays as large as the sum */
    if (less.i == b.i && is_share(g, b)) {          /* the sum is 0 where the share is, if it is
                                                     * told so */
        const LsAttr at = g->node[g->value[b.i].def.i].attr;
        return ls_append2(cx, g, LS_OP_ADD, a, narrow(cx, g, b, true),
                          &(LsAttr){.scalar = {.counted = at.scalar.counted}});
    }
    return ls_append2(cx, g, LS_OP_ADD, less.i == b.i ? narrow(cx, g, a, false) : a, less, NULL);
}
