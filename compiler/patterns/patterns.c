/* compiler/patterns/patterns.c -- replaces decomposed operators by one node.
 *
 * requires the forward part; keeps names of the results that remain; nodes left without a reader
 * become NOP. */
#include "compiler/patterns/patterns.h"

#include "compiler/passes/passes.h"
#include "compiler/patterns/patterns_attention.h"
#include "compiler/patterns/patterns_norm.h"
#include "compiler/patterns/patterns_pointwise.h"
#include "compiler/patterns/patterns_product.h"

static const struct { LsOpCode root; LsPattern match; } pattern[] = {
    {LS_OP_MUL, ls_match_gelu},             {LS_OP_DIV, ls_match_gelu},
    {LS_OP_MUL, ls_match_hard_swish},       {LS_OP_DIV, ls_match_hard_swish},
    {LS_OP_LOG, ls_match_log_softmax},      {LS_OP_ADD, ls_match_layer_norm},
    {LS_OP_MATMUL, ls_match_attention},     {LS_OP_TRANSPOSE, ls_match_attention_turned},
    {LS_OP_MATMUL, ls_match_transposed},    {LS_OP_ADD, ls_match_bias},
};

static bool visit(LsRewrite *r, LsNodeId n)
{
    LsMatch m = {r, r->from, r->user};
    LsValueId old = ls_out(r->from, n, 0);
    for (size_t k = 0; k < sizeof pattern / sizeof *pattern; k++) {
        if (pattern[k].root != r->from->node[n.i].op)
            continue;
        LsValueId v = pattern[k].match(&m, n);
        if (!ls_is(v))
            continue;
        r->map[old.i] = v;
        r->to->value[v.i].name = r->from->value[old.i].name;
        return true;
    }
    return false;
}

bool ls_patterns(LsCtx *cx, LsGraph *g)
{
    ls_rewrite(cx, g, visit, ls_readers(cx->arena, g, false));
    return ls_dce(cx, g);
}
