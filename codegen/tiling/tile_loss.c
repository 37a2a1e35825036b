/* codegen/tiling/tile_loss.c -- see the header. */
#include "codegen/tiling/tile_loss.h"

#include "codegen/kernels/loss_text.h"

bool ls_tile_is_loss(const LsNode *n)
{
    return n->op == LS_OP_XENT || n->op == LS_OP_NLL;
}

bool ls_tile_is_of_loss(const LsNode *n)
{
    return ls_tile_is_loss(n) || n->op == LS_OP_XENT_GRAD || n->op == LS_OP_NLL_GRAD
           || n->op == LS_OP_REGRESSION_GRAD;
}

bool ls_tile_loss_reads(const LsNode *n, int k)
{
    switch (n->op) {
    case LS_OP_XENT: case LS_OP_NLL: return k == 0;
    case LS_OP_XENT_GRAD:            return k == 1 || k == 4;
    case LS_OP_REGRESSION_GRAD:      return k > 0;
    default:                         return false;
    }
}

/* Result 1 of a cross-entropy is the logarithm of each position. */
bool ls_tile_loss_makes(const LsNode *n, int k)
{
    return n->op == LS_OP_XENT ? k == 1 : !ls_tile_is_loss(n);
}

static bool is_output(const LsGraph *g, LsValueId v)
{
    for (uint32_t k = 0; k < g->noutput; k++)
        if (g->output[k].i == v.i)
            return true;
    return false;
}

bool ls_tile_loss_fits(const LsTileRegion *r, LsNodeId n)
{
    const LsNode *node = &r->g->node[n.i];
    int64_t elements;
    const bool sums = !ls_tile_is_loss(node)
                      || ls_loss_may_go_on(r->g, n, r->target, &elements);
    if (ls_tile_is_loss(node) && is_output(r->g, ls_in(r->g, n, 0)))
        return false;           /* it is there as a whole */
    return sums && node->attr.loss.reduction != LS_LOSS_EACH && node->attr.loss.rows == 0
           && (node->op == LS_OP_REGRESSION_GRAD || node->attr.loss.axis == 1);
}
