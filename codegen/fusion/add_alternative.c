/* codegen/fusion/add_alternative.c -- see the header. */
#include "codegen/fusion/add_alternative.h"

#include "codegen/fusion/drop_nodes.h"

/* Nodes that read v or a view of it, but for views and nodes that go. */
static uint32_t readers(const LsGraph *g, LsValueId v, const bool *goes)
{
    uint32_t n = 0;
    for (uint32_t i = 1; i < g->nnode; i++) {
        if (goes[i] || g->node[i].op == LS_OP_NOP || ls_op[g->node[i].op]->kernel == LS_K_VIEW)
            continue;
        for (int k = 0; k < g->node[i].nin; k++)
            n += ls_viewed(g, ls_in(g, (LsNodeId){i}, k)).i == v.i;
    }
    for (uint32_t i = 0; i < g->noutput; i++)
        n += ls_viewed(g, g->output[i]).i == v.i;
    for (uint32_t i = 0; i < g->ngrad; i++)
        n += ls_viewed(g, g->grad[i].grad).i == v.i;
    return n;
}

/* Whether two values have the same elements at the same bytes. A view keeps them in row-major
 * order. */
static bool same_bytes(const LsGraph *g, LsValueId a, LsValueId b)
{
    const bool rows = g->value[a.i].layout == LS_ROW && g->value[b.i].layout == LS_ROW;
    return ls_type(g, a) == ls_type(g, b) && ls_count(ls_shape(g, a)) == ls_count(ls_shape(g, b))
           && (rows
               || (g->value[a.i].layout == g->value[b.i].layout
                   && ls_shape_same(ls_shape(g, a), ls_shape(g, b))));
}

static bool is_alone(const LsGraph *g, LsNodeId n) { return n.i != 0 && g->node[n.i].nout == 1; }

/* Marks the node that makes v, and what only marked nodes need. */
static void drop(const LsGraph *g, LsValueId v, bool *goes)
{
    const LsNodeId n = g->value[v.i].def;
    if (!is_alone(g, n) || goes[n.i] || readers(g, v, goes) > 0 || ls_op[g->node[n.i].op]->once)
        return;
    goes[n.i] = true;
    for (int k = 0; k < g->node[n.i].nin; k++)
        if (ls_is(ls_in(g, n, k)))
            drop(g, ls_viewed(g, ls_in(g, n, k)), goes);
}

uint32_t ls_other_ways(LsCtx *cx, LsGraph *g, const LsTarget *target)
{
    uint32_t found = 0;
    bool *goes = ls_arena_alloc(cx->arena, g->nnode, sizeof *goes);
    for (uint32_t i = 1; i < g->nnode; i++) {
        if (g->node[i].op != LS_OP_EITHER)
            continue;
        const LsValueId a = ls_viewed(g, ls_in(g, (LsNodeId){i}, 0)),
                        b = ls_viewed(g, ls_in(g, (LsNodeId){i}, 1));
        const LsNodeId first = g->value[a.i].def, second = g->value[b.i].def;
        g->node[i].nin = 1;                     /* from now on a view of the first way */
        if (a.i == b.i)
            continue;
        if (is_alone(g, first) && is_alone(g, second) && same_bytes(g, a, b)
            && readers(g, b, goes) == 0) {
            g->value[b.i].def.i = i;            /* a view of a, so its maker is an alternative of
                                                 * the first one */
            found++;
        } else {
            drop(g, b, goes);
        }
    }
    ls_drop_nodes(g, target, goes);
    return found;
}
