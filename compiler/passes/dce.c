/* compiler/passes/dce.c -- dead code elimination: nodes without a reader become NOP, and vanish at
 * the next rewrite. requires run order; keeps ids; keeps nodes that write state */
#include "compiler/passes/passes.h"

static void mark_roots(const LsGraph *g, bool *live)
{
    for (uint32_t i = 0; i < g->noutput; i++)
        live[g->output[i].i] = true;
    for (uint32_t i = 0; i < g->ngrad; i++)
        live[g->grad[i].grad.i] = true;
    live[g->objective.loss.i] = true;
}

bool ls_dce(LsCtx *cx, LsGraph *g)
{
    bool *live = ls_arena_alloc(cx->arena, g->nvalue, sizeof *live);
    mark_roots(g, live);
    for (uint32_t i = g->nnode; i-- > 1;) {
        LsNode *n = &g->node[i];
        bool used = ls_op[n->op]->writes != 0;
        for (uint32_t k = 0; k < n->nout; k++)
            used |= live[n->out + k];
        if (!used)
            *n = (LsNode){.op = LS_OP_NOP, .onnx = n->onnx, .name = n->name};
        for (uint32_t k = 0; k < n->nin; k++)
            live[g->operand[n->in + k].i] = true;
    }
    return true;
}
