/* codegen/kernels/pointwise.c -- LS_K_FUSED: pointwise bodies; bodies with reductions are in
 * reduce.c. */
#include "codegen/kernels/fused_body.h"
#include "codegen/kernels/reduce.h"

static void pointwise(const LsKernelText *k)
{
    LsBody body = ls_body_new(k);
    const LsBoxes b = ls_boxes(k, body.nest);
    const LsGrid part = ls_boxes_grid("part", &b);
    body.wide = b.wide;
    ls_emit_part(k, &part);
    ls_body_declare(&body);
    int open = ls_boxes_open(k->e, body.nest, &b);
    ls_body_rows(&body);
    ls_boxes_inner(k->e, body.nest, &b);
    ls_body_point(&body);
    ls_emit_close(k->e, open + 2);
    ls_emit_launch(k, &part, 1);
}

static bool reduces(const LsGraph *g, LsNodeId n)
{
    const LsNode *node = &g->node[n.i];
    return ls_reduces(node->attr.fused.body, node->nout);
}

static void fused_emit(const LsKernelText *k)
{
    ls_emit_line(k->e, "LS_EXACT_BEGIN");
    if (reduces(k->g, k->n))
        ls_reduce_emit(k);
    else
        pointwise(k);
    ls_emit_line(k->e, "LS_EXACT_END");
}

static int64_t fused_workspace(const LsGraph *g, LsNodeId n, const LsTarget *t)
{
    return reduces(g, n) ? ls_reduce_workspace(g, n, t) : 0;
}

const LsEmitter ls_emitter_fused = {.emit = fused_emit, .workspace = fused_workspace};
