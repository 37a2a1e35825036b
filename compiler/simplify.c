/* compiler/simplify.c -- matrix products take transposed operands and row biases into their kernel.
 *
 * requires a forward graph without loss; keeps results to rounding; leaves dead nodes to ls_dce. Exporters
 * write a linear layer as Transpose of the weight, MatMul, Add: as one product its gradient needs no
 * transposed copies either. */
#include "compiler/passes.h"

/* The operand of a transpose that only swaps the last two axes; none if v is not the result of one. */
static LsValueId untransposed(const LsGraph *g, LsValueId v)
{
    LsNodeId def = g->value[v.i].def;
    const LsNode *n = &g->node[def.i];
    int rank = ls_shape(g, v)->rank;
    if (def.i == 0 || n->op != LS_OP_TRANSPOSE || rank < 2)
        return (LsValueId){0};
    for (int k = 0; k < rank; k++) {
        int swapped = k == rank - 1 ? rank - 2 : k == rank - 2 ? rank - 1 : k;
        if (n->attr.perm.perm[k] != swapped)
            return (LsValueId){0};
    }
    return ls_in(g, def, 0);
}

static bool fold_transposes(LsRewrite *r, LsNodeId n)
{
    const LsGraph *g = r->from;
    LsValueId a = ls_in(g, n, 0), b = ls_in(g, n, 1), bias = ls_in(g, n, 2);
    LsValueId plain_a = untransposed(g, a), plain_b = untransposed(g, b);
    if (!ls_is(plain_a) && !ls_is(plain_b))
        return false;
    LsAttr attr = g->node[n.i].attr;
    attr.gemm.trans_a ^= ls_is(plain_a);
    attr.gemm.trans_b ^= ls_is(plain_b);
    LsValueId in[3] = {ls_image(r, ls_is(plain_a) ? plain_a : a),
                       ls_image(r, ls_is(plain_b) ? plain_b : b), ls_image(r, bias)};
    r->map[ls_out(g, n, 0).i] = ls_append(r->cx, r->to, LS_OP_MATMUL, g->node[n.i].nin, in, &attr);
    return true;
}

/* The product behind v, seen through one reshape. */
static LsNodeId product_behind(const LsGraph *g, LsValueId v)
{
    LsNodeId def = g->value[v.i].def;
    if (def.i != 0 && g->node[def.i].op == LS_OP_RESHAPE)
        def = g->value[ls_in(g, def, 0).i].def;
    return def.i != 0 && g->node[def.i].op == LS_OP_MATMUL ? def : (LsNodeId){0};
}

/* y + b, y a product with nobody else reading it and b one number per column. */
static bool take_bias(LsRewrite *r, LsNodeId n, int product_at)
{
    const LsGraph *g = r->from;
    const uint32_t *readers = r->user;
    LsValueId y = ls_in(g, n, product_at), b = ls_in(g, n, 1 - product_at);
    LsNodeId def = product_behind(g, y);
    const LsShape *bs = ls_shape(g, b), *out = ls_shape(g, ls_out(g, n, 0));
    if (def.i == 0 || ls_is(ls_in(g, def, 2)) || readers[y.i] != 1
        || readers[ls_out(g, def, 0).i] != 1 || bs->rank == 0 || !ls_shape_same(out, ls_shape(g, y)))
        return false;
    int64_t columns = out->dim[out->rank - 1];
    const LsShape *ps = ls_shape(g, ls_out(g, def, 0));
    if (bs->dim[bs->rank - 1] != columns || ls_count(bs) != columns || ps->dim[ps->rank - 1] != columns)
        return false;
    /* Operands of the product as it was rewritten, which is where its image was made. */
    LsNodeId image = r->to->value[ls_image(r, ls_out(g, def, 0)).i].def;
    LsValueId bias = ls_reshape(r->cx, r->to, ls_image(r, b), &(LsShape){1, {columns}});
    LsAttr attr = r->to->node[image.i].attr;
    LsValueId in[3] = {ls_in(r->to, image, 0), ls_in(r->to, image, 1), bias};
    LsValueId sum = ls_append(r->cx, r->to, LS_OP_MATMUL, 3, in, &attr);
    r->map[ls_out(g, n, 0).i] = ls_reshape(r->cx, r->to, sum, out);
    return true;
}

static bool visit(LsRewrite *r, LsNodeId n)
{
    switch (r->from->node[n.i].op) {
    case LS_OP_MATMUL: return fold_transposes(r, n);
    case LS_OP_ADD:    return take_bias(r, n, 0) || take_bias(r, n, 1);
    default:           return false;
    }
}

bool ls_simplify(LsCtx *cx, LsGraph *g)
{
    uint32_t *readers = ls_arena_alloc(cx->arena, g->nvalue, sizeof *readers);
    for (uint32_t i = 1; i < g->nnode; i++)
        for (int k = 0; k < g->node[i].nin; k++)
            readers[ls_in(g, (LsNodeId){i}, k).i]++;
    for (uint32_t i = 0; i < g->noutput; i++)
        readers[g->output[i].i]++;
    ls_rewrite(cx, g, visit, readers);
    return ls_dce(cx, g);
}
