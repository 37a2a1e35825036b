/* compiler/passes/merge_heads.c -- lets attention over q, k and v that are slices of one tensor
 * read that tensor.
 *
 * requires the forward part after ls_patterns; keeps all names except those of slices without other
 * readers. One product computes the rows of q, k and v side by side, as most exporters write it.
 * Attention kernels take rows at any stride, so the slices are not copied, nor are their gradients
 * concatenated in the backward part. */
#include "compiler/ir/rewrite.h"
#include "compiler/ops/attention_shape.h"
#include "compiler/passes/passes.h"

/* Columns of a tensor [N,T,C]: heads side by side. */
typedef struct Columns { LsValueId of; int64_t from, to; } Columns;

/* [N,T,H,D] or, without heads, [N,T,HD] as a slice of columns. */
static bool find_columns(const LsGraph *g, LsValueId v, Columns *c)
{
    LsNodeId n = g->value[v.i].def;
    while (n.i != 0 && g->node[n.i].op == LS_OP_RESHAPE) {
        v = ls_in(g, n, 0);
        n = g->value[v.i].def;
    }
    if (n.i == 0 || g->node[n.i].op != LS_OP_SLICE)
        return false;
    const LsSliceAttr *at = &g->node[n.i].attr.slice;
    const LsShape *x = ls_in_shape(g, n, 0);
    *c = (Columns){ls_in(g, n, 0), at->start[2], at->stop[2]};
    bool whole = x->rank == 3;
    for (int k = 0; whole && k < 3; k++)
        whole = at->step[k] == 1
            && (k == 2 || (at->start[k] == 0 && at->stop[k] == x->dim[k]));
    return whole;
}

/* q, k and v are consecutive in one tensor and cover it; 16-byte accesses stay aligned. */
static bool are_joint(const LsGraph *g, LsNodeId n, const LsAttentionAttr *at, LsValueId *x)
{
    const unsigned by_token = LS_Q_BY_TOKEN | LS_K_BY_TOKEN | LS_V_BY_TOKEN;
    const LsShape *q = ls_in_shape(g, n, 0);
    Columns c[3];
    if ((at->by_token & by_token) != by_token || at->depth % 4 != 0 || at->width % 4 != 0)
        return false;
    for (int k = 0; k < 3; k++)
        if (!find_columns(g, ls_in(g, n, k), &c[k]) || c[k].of.i != c[0].of.i)
            return false;
    const LsShape *whole = ls_shape(g, c[0].of);
    *x = c[0].of;
    return c[0].from == 0 && c[0].to == at->heads * at->depth && c[1].from == c[0].to
        && c[1].to - c[1].from == at->groups * at->depth && c[2].from == c[1].to
        && c[2].to - c[2].from == at->groups * at->width && c[2].to == whole->dim[2]
        && whole->dim[0] == q->dim[0] && whole->dim[1] == q->dim[1];
}

static bool visit(LsRewrite *r, LsNodeId n)
{
    const LsGraph *g = r->from;
    LsAttr at = g->node[n.i].attr;
    if (g->node[n.i].op != LS_OP_ATTENTION)
        return false;
    const LsAttentionSize s = ls_attention_size(g, n);
    LsValueId mask = ls_in(g, n, ls_attention_mask(g, n)), x;
    at.attention.heads = s.heads, at.attention.groups = s.groups;
    at.attention.depth = s.depth, at.attention.width = s.width;
    if (!are_joint(g, n, &at.attention, &x))
        return false;
    const LsValueId in[] = {x, mask}, out[] = {ls_out(g, n, 0), ls_out(g, n, 1)};
    ls_rewrite_append(r, LS_OP_ATTENTION_JOINT, ls_is(mask) ? 2 : 1, in, 2, out, &at);
    return true;
}

bool ls_heads(LsCtx *cx, LsGraph *g)
{
    ls_rewrite(cx, g, visit, NULL);
    return ls_dce(cx, g);
}
