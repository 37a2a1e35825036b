/* codegen/fusion/read_codes.c -- see the header. */
#include "codegen/fusion/read_codes.h"

#include "codegen/fusion/drop_nodes.h"
#include "codegen/kernels/loop_nest.h"
#include "codegen/kernels/product.h"
#include "compiler/passes/fuse.h"
#include "runtime/kernels/ls_kernel_sizes.h"

#include <string.h>

/* The UNPACK that makes v; none: something else does. */
static LsNodeId unpack_of(const LsGraph *g, LsValueId v)
{
    const LsNodeId def = g->value[v.i].def;
    return g->node[def.i].op == LS_OP_UNPACK ? def : (LsNodeId){0};
}

/* The operand that node n can read as codes; -1: none. */
static int operand_of(const LsGraph *g, LsNodeId n)
{
    const LsNode *node = &g->node[n.i];
    if (node->computed != NULL)
        return -1;
    if (node->op == LS_OP_MATMUL && unpack_of(g, ls_in(g, n, 1)).i != 0
        && ls_product_of(g, n).batch == 1)
        return 1;
    return node->op == LS_OP_GATHER && node->attr.gather.axis == 0
                   && unpack_of(g, ls_in(g, n, 0)).i != 0
               ? 0 : -1;
}

/* How often a kernel unpacks each element: each block of rows packs B again, and a thread takes
 * about two at once. */
static double packings(const LsGraph *g, LsNodeId n)
{
    if (g->node[n.i].op != LS_OP_MATMUL)
        return 0;
    return (double)ls_ceil_div(ls_product_of(g, n).m, 2 * LS_MATMUL_ROWS);
}

/* The codes follow the node's own operands. */
static void take_codes(LsGraph *g, LsNodeId n, int k)
{
    LsNode *node = &g->node[n.i];
    const LsNodeId unpack = unpack_of(g, ls_in(g, n, k));
    const uint32_t to = g->noperand, nin = node->nin;
    g->operand = ls_arena_grow(g->arena, g->operand, to, to + nin + 1, sizeof *g->operand,
                               &g->cap_operand);
    memcpy(g->operand + to, g->operand + node->in, nin * sizeof *g->operand);
    g->operand[to + nin] = ls_in(g, unpack, 0);
    g->noperand += nin + 1;
    LsComputed *c = ls_arena_alloc(g->arena, 1, sizeof *c);
    LsPackedCodes *codes = ls_arena_alloc(g->arena, 1, sizeof *codes);
    *codes = g->node[unpack.i].attr.unpack.codes;
    *c = (LsComputed){.operand = k, .first = (int)nin, .codes = codes,
                      .times = packings(g, n)};
    node->in = to;
    node->nin = (uint16_t)(nin + 1);
    node->computed = c;
}

void ls_read_codes(LsCtx *cx, LsGraph *g, const LsTarget *target)
{
    bool *goes = ls_arena_alloc(cx->arena, g->nnode, sizeof *goes);
    if (target->kind != LS_TARGET_CPU)
        return;
    for (uint32_t i = 1; i < g->nnode; i++)
        goes[i] = g->node[i].op == LS_OP_UNPACK;
    for (uint32_t i = 1; i < g->nnode; i++) {
        const int own = operand_of(g, (LsNodeId){i});
        for (int k = 0; k < g->node[i].nin; k++)
            if (k != own)
                goes[g->value[ls_in(g, (LsNodeId){i}, k).i].def.i] = false;
    }
    for (uint32_t i = 1; i < g->nnode; i++) {
        const int k = operand_of(g, (LsNodeId){i});
        if (k >= 0 && goes[unpack_of(g, ls_in(g, (LsNodeId){i}, k)).i])
            take_codes(g, (LsNodeId){i}, k);
    }
    ls_drop_nodes(g, target, goes);
}
