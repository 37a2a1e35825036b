/* codegen/tiling/tile_matrices.c -- see the header.
 *
 * A product computes each element as one sum, in blocks of its inner axis alone, however many rows
 * it has. A sum over rows goes on from tile to tile where each tile ends with such a block. Norms
 * and softmax compute each row, attention each sample, by itself. */
#include "codegen/tiling/tile_matrices.h"

#include "codegen/kernels/matmul.h"
#include "compiler/ops/attention_shape.h"
#include "compiler/passes/fuse.h"

bool ls_rows_are_in(const LsTileRegion *r, LsValueId v)
{
    const LsShape *s = ls_shape(r->g, v);
    return ls_is(v) && s->rank > 1
           && (s->dim[0] == r->samples || (r->rows[v.i] && s->dim[0] % r->samples == 0));
}

/* Rows of the product are rows of A, whose leading axes are no axes of a batch of products. */
static bool has_plain_rows(const LsGraph *g, LsNodeId n)
{
    return ls_shape(g, ls_out(g, n, 0))->rank == 2;
}

bool ls_tile_sums_rows(const LsGraph *g, LsNodeId n)
{
    const LsNode *node = &g->node[n.i];
    return node->op == LS_OP_MATMUL && has_plain_rows(g, n) && node->attr.gemm.trans_a
           && !node->attr.gemm.trans_b && !ls_is(ls_in(g, n, 2));
}

bool ls_tile_keeps_rows(const LsGraph *g, LsNodeId n)
{
    const LsNode *node = &g->node[n.i];
    switch (node->op) {
    case LS_OP_MATMUL: case LS_OP_MATMUL_PART:
        return !has_plain_rows(g, n) || !node->attr.gemm.trans_a;
    case LS_OP_TRANSPOSE: return node->attr.perm.perm[0] == 0;
    case LS_OP_GATHER_GRAD: return node->attr.gather.axis > 0;
    default: return true;
    }
}

/* Each tile ends where a block of the sum does. */
static bool sum_goes_on(const LsTileRegion *r, LsNodeId n)
{
    const LsGraph *g = r->g;
    const LsShape *a = ls_in_shape(g, n, 0);
    const LsNode *node = &g->node[n.i];
    if (!ls_rows_are_in(r, ls_in(g, n, 0)) || !ls_rows_are_in(r, ls_in(g, n, 1))
        || r->target->kind != LS_TARGET_CPU || node->attr.gemm.part
        || ls_type(g, ls_out(g, n, 0)) != LS_REAL
        || (node->rounds == LS_BF16 && !ls_is_dot16(node)))
        return false;
    for (int t = 0; t < r->tiles; t++)
        if (!ls_matmul_block_ends(r->target->real_bytes, ls_is_dot16(node), a->dim[0],
                                  ls_tile_rows(r, a, false, t).end))
            return false;
    return true;
}

static bool product_reads(const LsTileRegion *r, LsNodeId n, int k)
{
    const LsGraph *g = r->g;
    const LsShape *s = ls_in_shape(g, n, k), *y = ls_shape(g, ls_out(g, n, 0));
    if (ls_tile_sums_rows(g, n))
        return true;
    if (has_plain_rows(g, n))
        return k == 0;
    return k < 2 && s->rank == y->rank && s->dim[0] == y->dim[0];
}

static bool product_fits(const LsTileRegion *r, LsNodeId n)
{
    const LsGraph *g = r->g;
    const LsGemmAttr *at = &g->node[n.i].attr.gemm;
    const LsShape *a = ls_in_shape(g, n, 0);
    if (ls_tile_sums_rows(g, n))
        return sum_goes_on(r, n);
    /* Of one term: such products may have a kernel of their own for large results. */
    return a->dim[a->rank - (at->trans_a ? 2 : 1)] > 1 && !(has_plain_rows(g, n) && at->trans_a)
           && !at->part;
}

static bool attention_reads(const LsTileRegion *r, LsNodeId n, int k)
{
    const LsShape *s = ls_in_shape(r->g, n, k);
    return k != ls_attention_mask(r->g, n) || s->dim[0] == ls_in_shape(r->g, n, 0)->dim[0];
}

bool ls_tile_row_reads(const LsTileRegion *r, LsNodeId n, int k)
{
    const LsNode *node = &r->g->node[n.i];
    switch (node->op) {
    case LS_OP_MATMUL: return product_reads(r, n, k);
    case LS_OP_LAYER_NORM: return k == 0;
    case LS_OP_LAYER_NORM_GRAD: return k != 2;
    case LS_OP_GATHER: return node->attr.gather.axis == 0 ? k == 1 : k == 0;
    case LS_OP_GATHER_GRAD: return k != 1;
    case LS_OP_ATTENTION: case LS_OP_ATTENTION_GRAD: case LS_OP_ATTENTION_JOINT:
    case LS_OP_ATTENTION_JOINT_GRAD: return attention_reads(r, n, k);
    default: return true;
    }
}

/* Whether the node can run by tiles, if those of its values have rows that should. */
static bool may_fit(const LsTileRegion *r, LsNodeId n)
{
    const LsNode *node = &r->g->node[n.i];
    switch (node->op) {
    case LS_OP_MATMUL: return product_fits(r, n);
    case LS_OP_LAYER_NORM: case LS_OP_LAYER_NORM_GRAD: return node->attr.norm.axis > 0;
    case LS_OP_SOFTMAX: case LS_OP_LOG_SOFTMAX: case LS_OP_SOFTMAX_GRAD:
    case LS_OP_LOG_SOFTMAX_GRAD: return node->attr.axis.axis > 0;
    case LS_OP_RESHAPE: return true;
    case LS_OP_TRANSPOSE: return node->attr.perm.perm[0] == 0;
    case LS_OP_GATHER: return node->phase == LS_FORWARD;
    case LS_OP_GATHER_GRAD: return node->attr.gather.axis > 0;
    case LS_OP_SLICE_GRAD:
        return node->attr.slice.start[0] == 0 && node->attr.slice.step[0] == 1
               && node->attr.slice.stop[0] == node->attr.slice.x.dim[0];
    case LS_OP_ATTENTION: case LS_OP_ATTENTION_GRAD: case LS_OP_ATTENTION_JOINT:
    case LS_OP_ATTENTION_JOINT_GRAD: return true;
    default: return false;
    }
}

bool ls_tile_rows_fit(const LsTileRegion *r, LsNodeId n)
{
    const LsGraph *g = r->g;
    const LsNode *node = &g->node[n.i];
    int reads = 0;
    if (!may_fit(r, n))
        return false;
    for (int k = 0; k < node->nin; k++)
        if (ls_is(ls_in(g, n, k)) && ls_tile_row_reads(r, n, k)) {
            if (!ls_rows_are_in(r, ls_in(g, n, k)))
                return false;
            reads++;
        }
    for (int k = 0; k < node->nout && !ls_tile_sums_rows(g, n); k++)
        if (!ls_rows_are_in(r, ls_out(g, n, k)))
            return false;
    return reads > 0;
}

void ls_tile_row_attr(const LsGraph *g, LsNodeId n, LsSpan own, LsAttr *at)
{
    const int64_t count = own.end - own.first;
    switch (g->node[n.i].op) {
    case LS_OP_RESHAPE: at->shape.shape.dim[0] = count; break;
    case LS_OP_SLICE_GRAD: at->slice.stop[0] = at->slice.x.dim[0] = count; break;
    case LS_OP_GATHER_GRAD: at->gather.x.dim[0] = count; break;
    case LS_OP_MATMUL:
        if (!ls_tile_sums_rows(g, n))
            break;
        at->gemm.part = true;
        at->gemm.of = ls_in_shape(g, n, 0)->dim[0];
        at->gemm.from = own.first;
        break;
    default: break;
    }
}
