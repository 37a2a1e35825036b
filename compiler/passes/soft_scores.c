/* compiler/passes/soft_scores.c -- see soft_scores.h. */
#include "compiler/passes/soft_scores.h"

#include "compiler/ir/op.h"

enum { DEPTH = 16 };

static bool is_soft(const LsGraph *g, LsNodeId n)
{
    return g->node[n.i].op == LS_OP_REGRESSION_LOSS && g->node[n.i].attr.loss.nclass > 0;
}

/* Nodes that lie between the scores and the loss. */
static bool is_between(const LsGraph *g, LsNodeId n)
{
    switch (ls_op[g->node[n.i].op]->kernel) {
    case LS_K_VIEW:
    case LS_K_MAP:
    case LS_K_REDUCE:
    case LS_K_FUSED:
    case LS_K_MOVE: return true;
    default: return false;
    }
}

/* The log-softmax along `axis` that v is made of. */
static LsNodeId find(const LsGraph *g, LsValueId v, int axis, int depth)
{
    const LsNodeId n = ls_is(v) ? g->value[v.i].def : (LsNodeId){0}, none = {0};
    if (n.i == 0 || depth == DEPTH)
        return none;
    if (g->node[n.i].op == LS_OP_LOG_SOFTMAX)
        return g->node[n.i].attr.axis.axis == axis ? n : none;
    LsNodeId found = none;
    for (int k = 0; is_between(g, n) && k < g->node[n.i].nin && found.i == 0; k++)
        found = find(g, ls_in(g, n, k), axis, depth + 1);
    return found;
}

static bool reads(const LsGraph *g, LsValueId v, LsValueId label, int depth)
{
    const LsNodeId n = ls_is(v) ? g->value[v.i].def : (LsNodeId){0};
    bool any = v.i == label.i;
    for (int k = 0; n.i != 0 && depth < DEPTH && is_between(g, n) && k < g->node[n.i].nin; k++)
        any = any || reads(g, ls_in(g, n, k), label, depth + 1);
    return any;
}

LsNodeId ls_soft_scores(const LsGraph *g, LsNodeId loss)
{
    return is_soft(g, loss) ? find(g, ls_in(g, loss, 0), g->node[loss.i].attr.loss.axis, 0)
                            : (LsNodeId){0};
}

bool ls_soft_reads(const LsGraph *g, LsNodeId loss, LsValueId label)
{
    return is_soft(g, loss) && reads(g, ls_in(g, loss, 0), label, 0);
}

bool ls_makes_soft_scores(const LsGraph *g, LsNodeId n)
{
    for (uint32_t i = 1; g->node[n.i].op == LS_OP_LOG_SOFTMAX && i < g->nnode; i++)
        if (ls_soft_scores(g, (LsNodeId){i}).i == n.i)
            return true;
    return false;
}
