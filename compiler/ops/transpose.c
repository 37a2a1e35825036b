/* compiler/ops/transpose.c -- permutes axes; DepthToSpace and SpaceToDepth are built from it. */
#include "compiler/ops/row.h"

static bool transpose_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    const LsShape *x = ls_in_shape(g, n, 0);
    LsShape y = {.rank = x->rank};
    for (int k = 0; k < x->rank; k++)
        y.dim[k] = x->dim[g->node[n.i].attr.perm.perm[k]];
    return ls_infer_out(cx, g, n, ls_type(g, ls_in(g, n, 0)), &y);
}

static void transpose_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[],
                           const bool want[], LsValueId dx[])
{
    (void)want;
    int back[LS_MAX_RANK];
    for (int k = 0; k < ls_in_shape(g, n, 0)->rank; k++)
        back[g->node[n.i].attr.perm.perm[k]] = k;
    dx[0] = ls_transpose(cx, g, dy[0], back);
}

const LsOp ls_op_transpose = {
    .name = "Transpose", .min_in = 1, .max_in = 1, .nout = 1, .infer = transpose_infer,
    .grad = transpose_grad, .kernel = LS_K_MOVE, .layout = LS_LAY_FREE,
};

static bool transpose_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 1, 1))
        return false;
    int rank = ls_shape(n->g, n->in[0])->rank;
    int64_t list[LS_MAX_RANK];
    int count = ls_onnx_ints(n, "perm", LS_MAX_RANK, list), perm[LS_MAX_RANK];
    if (count >= 0 && count != rank)
        return ls_onnx_error(n, LS_E_ATTR, NULL, "perm has %d entries, the operand %s has %d axes",
                             count, ls_dims(n->g, n->in[0]), rank);
    uint32_t seen = 0;
    for (int k = 0; k < rank; k++) {
        perm[k] = count < 0 ? rank - 1 - k : ls_onnx_axis(n, list[k], rank);
        if (perm[k] < 0)
            return false;
        if (seen >> perm[k] & 1)
            return ls_onnx_error(n, LS_E_ATTR, NULL, "perm names axis %d twice", perm[k]);
        seen |= 1u << perm[k];
    }
    out[0] = ls_transpose(n->cx, n->g, n->in[0], perm);
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_transpose = {"Transpose", 1, transpose_build};

/* Reshape to six axes, permute, reshape: the two block operators differ only in the numbers. */
static bool blocks(LsOnnxNode *n, LsValueId out[], const LsShape *split, const int perm[6],
                   const LsShape *to)
{
    LsValueId v = ls_reshape(n->cx, n->g, n->in[0], split);
    if (ls_is(v))
        v = ls_transpose(n->cx, n->g, v, perm);
    out[0] = ls_is(v) ? ls_reshape(n->cx, n->g, v, to) : v;
    return ls_is(out[0]);
}

/* N, C, H, W and the block size; false after an error. */
static bool block_size(LsOnnxNode *n, LsShape *x, int64_t *b)
{
    if (!ls_onnx_takes(n, 1, 1))
        return false;
    *x = *ls_shape(n->g, n->in[0]);
    *b = ls_onnx_int(n, "blocksize", 0);
    if (x->rank != 4)
        return ls_onnx_error(n, LS_E_SHAPE, NULL, "the operand is %s, %s takes N x C x H x W",
                             ls_dims(n->g, n->in[0]), n->op);
    if (*b < 1 || *b > INT32_MAX)
        return ls_onnx_error(n, LS_E_ATTR, NULL, "blocksize is %" PRId64, *b);
    return true;
}

static bool depth_to_space_build(LsOnnxNode *n, LsValueId out[])
{
    LsShape x;
    int64_t b;
    if (!block_size(n, &x, &b))
        return false;
    const char *mode = ls_onnx_string(n, "mode", "DCR");
    bool crd = strcmp(mode, "CRD") == 0;
    if (!crd && strcmp(mode, "DCR") != 0)
        return ls_onnx_error(n, LS_E_ATTR, "it is \"DCR\" or \"CRD\"", "mode is \"%s\"", mode);
    if (x.dim[1] % (b * b) != 0)
        return ls_onnx_error(n, LS_E_SHAPE, NULL,
                             "%" PRId64 " channels do not divide by blocksize^2, %" PRId64,
                             x.dim[1], b * b);
    int64_t c = x.dim[1] / (b * b), h = x.dim[2], w = x.dim[3];
    LsShape to = {4, {x.dim[0], c, h * b, w * b}};
    if (crd)
        return blocks(n, out, &(LsShape){6, {x.dim[0], c, b, b, h, w}}, (int[]){0, 1, 4, 2, 5, 3},
                      &to);
    return blocks(n, out, &(LsShape){6, {x.dim[0], b, b, c, h, w}}, (int[]){0, 3, 4, 1, 5, 2}, &to);
}
const LsOnnxOp ls_onnx_depth_to_space = {"DepthToSpace", 1, depth_to_space_build};

static bool space_to_depth_build(LsOnnxNode *n, LsValueId out[])
{
    LsShape x;
    int64_t b;
    if (!block_size(n, &x, &b))
        return false;
    if (x.dim[2] % b != 0 || x.dim[3] % b != 0)
        return ls_onnx_error(n, LS_E_SHAPE, NULL,
                             "%" PRId64 "x%" PRId64 " does not divide by blocksize %" PRId64,
                             x.dim[2], x.dim[3], b);
    LsShape split = {6, {x.dim[0], x.dim[1], x.dim[2] / b, b, x.dim[3] / b, b}};
    LsShape to = {4, {x.dim[0], x.dim[1] * b * b, x.dim[2] / b, x.dim[3] / b}};
    return blocks(n, out, &split, (int[]){0, 3, 5, 1, 2, 4}, &to);
}
const LsOnnxOp ls_onnx_space_to_depth = {"SpaceToDepth", 1, space_to_depth_build};
