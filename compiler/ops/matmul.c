/* compiler/ops/matmul.c -- the matrix product (see net.def), ONNX MatMul and Gemm. */
#include "compiler/onnx/onnx_found_weights.h"
#include "compiler/ops/product_shape.h"
#include "compiler/ops/row.h"

/* Rows and columns of an operand as stored. */
static int64_t rows(const LsShape *s) { return s->dim[s->rank - 2]; }
static int64_t cols(const LsShape *s) { return s->dim[s->rank - 1]; }

static bool matmul_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    const LsGemmAttr *at = &g->node[n.i].attr.gemm;
    LsShape a = *ls_in_shape(g, n, 0), b = *ls_in_shape(g, n, 1);
    if (a.rank < 2 || b.rank < 2)
        return ls_error(cx, ls_where(g, n), LS_E_SHAPE, NULL,
                        "A is %s and B is %s: both must be matrices", ls_shape_text(cx->arena, &a),
                        ls_shape_text(cx->arena, &b));
    int64_t m = at->trans_a ? cols(&a) : rows(&a), ka = at->trans_a ? rows(&a) : cols(&a);
    int64_t kb = at->trans_b ? cols(&b) : rows(&b), nn = at->trans_b ? rows(&b) : cols(&b);
    if (ka != kb)
        return ls_error(cx, ls_where(g, n), LS_E_SHAPE,
                        "a size bound by --dim or --shape may not fit the weights: `lowerset "
                        "inspect` shows the file's own",
                        "A is %s%s and B is %s%s: inner sizes %" PRId64 " and %" PRId64 " differ",
                        ls_shape_text(cx->arena, &a), at->trans_a ? " transposed" : "",
                        ls_shape_text(cx->arena, &b), at->trans_b ? " transposed" : "", ka, kb);
    LsShape la = {.rank = a.rank - 2}, lb = {.rank = b.rank - 2};
    for (int k = 0; k < la.rank; k++)
        la.dim[k] = a.dim[k];
    for (int k = 0; k < lb.rank; k++)
        lb.dim[k] = b.dim[k];
    if (!ls_shape_broadcast(&la, &lb))
        return ls_error(cx, ls_where(g, n), LS_E_SHAPE, NULL,
                        "leading axes of A %s and B %s do not fit", ls_shape_text(cx->arena, &a),
                        ls_shape_text(cx->arena, &b));
    la.dim[la.rank++] = m;
    la.dim[la.rank++] = nn;
    if (ls_is(ls_in(g, n, 2))) {
        const LsShape *c = ls_in_shape(g, n, 2);
        if (c->rank != 1 || c->dim[0] != nn)
            return ls_error(cx, ls_where(g, n), LS_E_SHAPE, NULL, "the bias is %s, the result has %"
                            PRId64 " columns", ls_shape_text(cx->arena, c), nn);
    }
    return ls_infer_out(cx, g, n, LS_REAL, &la);
}

LsShape ls_matmul_shape(const LsGraph *g, LsNodeId n)
{
    const LsGemmAttr *at = &g->node[n.i].attr.gemm;
    const LsShape *a = ls_in_shape(g, n, 0), *b = ls_in_shape(g, n, 1);
    if (g->node[n.i].op != LS_OP_MATMUL_SQUARES)
        return *ls_shape(g, ls_out(g, n, 0));
    return (LsShape){3,
                     {a->dim[0], at->trans_a ? cols(a) : rows(a), at->trans_b ? rows(b) : cols(b)}};
}

static bool matmul_squares_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    const LsGemmAttr *at = &g->node[n.i].attr.gemm;
    const LsShape *a = ls_in_shape(g, n, 0), *b = ls_in_shape(g, n, 1);
    if (a->rank != 3 || b->rank != 3 || a->dim[0] != b->dim[0]
        || (at->trans_a ? rows(a) : cols(a)) != (at->trans_b ? cols(b) : rows(b)))
        return ls_error(cx, ls_where(g, n), LS_E_SHAPE, NULL, "A is %s and B is %s",
                        ls_shape_text(cx->arena, a), ls_shape_text(cx->arena, b));
    return ls_infer_out(cx, g, n, LS_REAL, &(LsShape){1, {a->dim[0]}});
}

static bool matmul_part_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    const LsGemmAttr *at = &g->node[n.i].attr.gemm;
    const LsShape *a = ls_in_shape(g, n, 0), *b = ls_in_shape(g, n, 1);
    if (a->rank != 2 || b->rank != 2
        || (at->trans_a ? rows(a) : cols(a)) != (at->trans_b ? cols(b) : rows(b)))
        return ls_error(cx, ls_where(g, n), LS_E_SHAPE, NULL, "A is %s and B is %s",
                        ls_shape_text(cx->arena, a), ls_shape_text(cx->arena, b));
    const LsShape y = {2, {at->trans_a ? cols(a) : rows(a), at->trans_b ? rows(b) : cols(b)}};
    if (ls_is(ls_in(g, n, 2)) && !ls_shape_same(ls_in_shape(g, n, 2), &y))
        return ls_error(cx, ls_where(g, n), LS_E_SHAPE, NULL, "the sum before is %s, not %s",
                        ls_shape_text(cx->arena, ls_in_shape(g, n, 2)),
                        ls_shape_text(cx->arena, &y));
    return ls_infer_out(cx, g, n, LS_REAL, &y);
}

static double matmul_flops(const LsGraph *g, LsNodeId n)
{
    const LsShape *a = ls_in_shape(g, n, 0), y = ls_matmul_shape(g, n);
    int64_t inner = g->node[n.i].attr.gemm.trans_a ? rows(a) : cols(a);
    return 2.0 * (double)ls_count(&y) * (double)inner;
}

static LsValueId product(LsCtx *cx, LsGraph *g, LsValueId a, bool ta, LsValueId b, bool tb,
                         double alpha)
{
    return ls_append2(cx, g, LS_OP_MATMUL, a, b,
                      &(LsAttr){.gemm = {.trans_a = ta, .trans_b = tb, .alpha = alpha}});
}

/* The gradient of B by rows of A: part of a sum over the rows of all nodes. */
static LsValueId part_of_sum(LsCtx *cx, LsGraph *g, LsNodeId n, LsValueId a, LsValueId dy)
{
    const LsGemmAttr at = g->node[n.i].attr.gemm;
    const LsAttr sum = {.gemm = {.trans_a = at.trans_b || !at.trans_a,
                                 .trans_b = at.trans_b && at.trans_a,
                                 .alpha = at.alpha,
                                 .part = true,
                                 .of = at.of,
                                 .from = at.from}};
    return at.trans_b ? ls_append2(cx, g, LS_OP_MATMUL_PART, dy, a, &sum)
                      : ls_append2(cx, g, LS_OP_MATMUL_PART, a, dy, &sum);
}

/* Y = alpha op(A) op(B) + bias. Axes along which an operand was broadcast are summed afterwards. */
static void matmul_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[], const bool want[],
                        LsValueId dx[])
{
    const LsGemmAttr at = g->node[n.i].attr.gemm;
    LsValueId a = ls_in(g, n, 0), b = ls_in(g, n, 1);
    if (want[0]) {
        LsShape s = *ls_shape(g, a);
        dx[0] = at.trans_a ? product(cx, g, b, at.trans_b, dy[0], true, at.alpha)
                           : product(cx, g, dy[0], false, b, !at.trans_b, at.alpha);
        dx[0] = ls_reduce_to(cx, g, dx[0], s);
    }
    if (want[1]) {
        LsShape s = *ls_shape(g, b);
        dx[1] = at.part ? part_of_sum(cx, g, n, a, dy[0])
                : at.trans_b ? product(cx, g, dy[0], true, a, at.trans_a, at.alpha)
                           : product(cx, g, a, !at.trans_a, dy[0], false, at.alpha);
        dx[1] = ls_reduce_to(cx, g, dx[1], s);
    }
    if (g->node[n.i].nin > 2 && want[2]) {
        LsShape s = *ls_in_shape(g, n, 2);
        dx[2] = ls_reduce_to(cx, g, dy[0], s);
    }
}

const LsOp ls_op_matmul = {
    .name = "MatMul", .min_in = 2, .max_in = 3, .nout = 1, .infer = matmul_infer,
    .grad = matmul_grad, .flops = matmul_flops, .kernel = LS_K_MATMUL, .layout = LS_LAY_ROW,
};

const LsOp ls_op_matmul_part = {
    .name = "matmul_part", .min_in = 2, .max_in = 3, .nout = 1, .infer = matmul_part_infer,
    .flops = matmul_flops, .kernel = LS_K_MATMUL, .layout = LS_LAY_ROW,
};

const LsOp ls_op_matmul_squares = {
    .name = "matmul_squares", .min_in = 2, .max_in = 2, .nout = 1, .infer = matmul_squares_infer,
    .flops = matmul_flops, .kernel = LS_K_MATMUL, .layout = LS_LAY_ROW,
};

/* ---- ONNX ---- */
static bool takes_two(LsOnnxNode *n, int max)
{
    for (int k = 0; k < max; k++)
        if (!ls_onnx_takes_real(n, k))
            return false;
    return ls_onnx_takes(n, 2, max);
}

/* NumPy's matmul: a vector A is a row, a vector B a column, and the result drops that axis of 1. A
 * stack of matrices times one matrix becomes one large product, and so does the gradient of the
 * matrix. */
static bool matmul_build(LsOnnxNode *n, LsValueId out[])
{
    if (!takes_two(n, 2))
        return false;
    LsGraph *g = n->g;
    ls_onnx_weight(n, 1);
    const LsShape a = *ls_shape(g, n->in[0]), b = *ls_shape(g, n->in[1]);
    if (a.rank == 0 || b.rank == 0)
        return ls_onnx_error(n, LS_E_SHAPE, NULL, "A is %s and B is %s: a scalar has no product",
                             ls_shape_text(n->cx->arena, &a), ls_shape_text(n->cx->arena, &b));
    LsShape a2 = a, b2 = b;
    if (a.rank == 1)
        a2 = (LsShape){2, {1, a.dim[0]}};
    if (b.rank == 1)
        b2 = (LsShape){2, {b.dim[0], 1}};
    if (a2.rank > 2 && b2.rank == 2)
        a2 = (LsShape){2, {ls_count(&a) / cols(&a), cols(&a)}};
    LsValueId x = ls_reshape(n->cx, g, n->in[0], &a2), w = ls_reshape(n->cx, g, n->in[1], &b2);
    LsValueId y = product(n->cx, g, x, false, w, false, 1);
    if (!ls_is(y))
        return false;
    LsShape s = *ls_shape(g, y);
    if (a.rank > 2 && b2.rank == 2) {           /* the leading axes of A are restored */
        s = a;
        s.dim[s.rank - 1] = b2.dim[1];
    }
    if (b.rank == 1)
        s.rank--;
    if (a.rank == 1) {
        s.dim[s.rank - 2 + (b.rank == 1)] = s.dim[s.rank - 1 + (b.rank == 1)];
        s.rank--;
    }
    out[0] = ls_reshape(n->cx, g, y, &s);
    return ls_is(out[0]);
}

/* alpha op(A) op(B) + beta C. C becomes the product's bias when it is one row. */
static bool gemm_build(LsOnnxNode *n, LsValueId out[])
{
    if (!takes_two(n, 3))
        return false;
    LsGraph *g = n->g;
    LsCtx *cx = n->cx;
    ls_onnx_weight(n, 1);
    ls_onnx_weight(n, 2);
    LsAttr at = {.gemm = {.trans_a = ls_onnx_int(n, "transA", 0) != 0,
                          .trans_b = ls_onnx_int(n, "transB", 0) != 0,
                          .alpha = ls_onnx_float(n, "alpha", 1)}};
    double beta = ls_onnx_float(n, "beta", 1);
    LsValueId in[3] = {n->in[0], n->in[1]}, c = beta != 0 ? ls_onnx_in(n, 2) : (LsValueId){0};
    if (ls_shape(g, in[0])->rank != 2 || ls_shape(g, in[1])->rank != 2)
        return ls_onnx_error(n, LS_E_SHAPE, NULL, "A is %s and B is %s: Gemm takes matrices",
                             ls_shape_text(cx->arena, ls_shape(g, in[0])),
                             ls_shape_text(cx->arena, ls_shape(g, in[1])));
    if (!ls_is(c)) {
        out[0] = ls_append(cx, g, LS_OP_MATMUL, 2, in, &at);
        return ls_is(out[0]);
    }
    const LsShape cs = *ls_shape(g, c), *b = ls_shape(g, in[1]);
    int64_t columns = at.gemm.trans_b ? rows(b) : cols(b);
    bool row = cs.rank == 1 || (cs.rank == 2 && cs.dim[0] == 1);
    if (beta == 1 && row && cs.dim[cs.rank - 1] == columns) {
        in[2] = ls_reshape(cx, g, c, &(LsShape){1, {columns}});
        out[0] = ls_append(cx, g, LS_OP_MATMUL, 3, in, &at);
        return ls_is(out[0]);
    }
    LsValueId y = ls_append(cx, g, LS_OP_MATMUL, 2, in, &at);
    if (!ls_is(y))
        return false;
    LsShape fit = *ls_shape(g, y);
    if (!ls_shape_broadcast(&fit, &cs) || !ls_shape_same(&fit, ls_shape(g, y)))
        return ls_onnx_error(n, LS_E_SHAPE, NULL, "C is %s, the product is %s",
                             ls_shape_text(cx->arena, &cs),
                             ls_shape_text(cx->arena, ls_shape(g, y)));
    if (beta != 1)
        c = ls_append2(cx, g, LS_OP_MUL, c, ls_const_real(cx, g, beta), NULL);
    out[0] = ls_append2(cx, g, LS_OP_ADD, y, c, NULL);
    return ls_is(out[0]);
}

const LsOnnxOp ls_onnx_matmul = {.name = "MatMul", .since = 1, .build = matmul_build};
const LsOnnxOp ls_onnx_gemm = {.name = "Gemm", .since = 7, .build = gemm_build};
