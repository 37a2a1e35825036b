/* codegen/fusion/drop_nodes.c -- see the header. */
#include "codegen/fusion/drop_nodes.h"

#include "codegen/fusion/fused_alternatives.h"
#include "codegen/fusion/inline_bodies.h"
#include "codegen/kernels/fused_body.h"

#include <fnmatch.h>

bool ls_is_updated(const LsGraph *g, LsValueId v)
{
    LsValueKind kind = g->value[ls_viewed(g, v).i].kind;
    return kind == LS_V_PARAM || kind == LS_V_STATE;
}

uint32_t ls_dropped_maker(const LsGraph *g, const bool *goes, LsValueId v)
{
    uint32_t def = g->value[v.i].def.i;
    return def != 0 && goes[def] ? def : 0;
}

bool ls_is_named(const LsGraph *g, LsNodeId n, const char *const *glob, uint32_t nglob)
{
    const char *name[] = {g->value[ls_out(g, n, 0).i].name, g->node[n.i].name};
    bool named = false;
    for (uint32_t k = 0; k < 2 * nglob; k++)
        named |= name[k % 2] != NULL && fnmatch(glob[k / 2], name[k % 2], 0) == 0;
    return named;
}

void ls_drop_none_wanted(const LsGraph *g, const char *const *glob, uint32_t nglob, bool *goes)
{
    for (uint32_t i = 1; i < g->nnode; i++)
        goes[i] = goes[i] && !ls_is_named(g, (LsNodeId){i}, glob, nglob);
    for (uint32_t i = 0; i < g->noutput; i++)
        goes[g->value[g->output[i].i].def.i] = false;
    for (uint32_t i = 0; i < g->ngrad; i++)
        goes[g->value[g->grad[i].grad.i].def.i] = false;
}

void ls_forget_gradients(LsGraph *g)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < g->ngrad; k++)
        if (ls_is(g->grad[k].grad))
            g->grad[n++] = g->grad[k];
    g->ngrad = n;
}

/* Whether the node is an alternative that adds in another order than the node it replaces. Other
 * ways (add_alternative.h), whose results are views, may. */
static bool adds_otherwise(const LsGraph *g, const LsTarget *t, LsNodeId n)
{
    const LsNode *node = &g->node[n.i];
    const LsFused *f = ls_body_of(g, n);
    return f != NULL && ls_reduces(f, node->nout) && ls_is_alternative(g, n)
        && ls_op[g->node[g->value[node->out].def.i].op]->kernel != LS_K_VIEW
        && !ls_body_same_loops(&(LsKernelText){.g = g, .n = n, .target = t},
                               &(LsKernelText){.g = g, .n = g->value[node->out].def, .target = t});
}

/* Adds an empty operand: values without a maker become views of it (plan_problem.c). */
static uint32_t nothing(LsGraph *g)
{
    g->operand = ls_arena_grow(g->arena, g->operand, g->noperand, g->noperand + 1u,
                               sizeof *g->operand, &g->cap_operand);
    g->operand[g->noperand] = (LsValueId){0};
    return g->noperand++;
}

uint32_t ls_drop_nodes(LsGraph *g, const LsTarget *t, const bool *goes)
{
    uint32_t n = 0;
    for (uint32_t i = 1; i < g->nnode; i++)
        n += goes[i];
    if (n == 0)
        return 0;
    uint32_t none = nothing(g);
    for (uint32_t i = 1; i < g->nnode; i++)
        if (goes[i] || adds_otherwise(g, t, (LsNodeId){i}))
            g->node[i] = (LsNode){.op = LS_OP_NOP, .in = none};
    return n;
}
