/* codegen/tiling/loss_sums.c -- see the header. */
#include "codegen/tiling/loss_sums.h"

#include "codegen/kernels/loss_text.h"

void ls_tile_loss_part(LsRewrite *r, LsTiler *s, LsNodeId n, int t)
{
    enum { LSE = 3, STATE = 4, MOST = 5 };
    const LsNode *node = &r->from->node[n.i];
    const LsValueId loss = ls_out(r->from, n, 0);
    const bool goes_on = ls_is(s->state[loss.i]);
    LsValueId in[MOST] = {{0}};
    int64_t all, elements = 0;
    for (int k = 0; k < node->nin; k++)
        in[k] = ls_tile_operand(r, s, n, k, t);
    if (node->op == LS_OP_XENT)
        in[LSE] = *ls_tile_of(s, ls_out(r->from, n, 1), t);
    in[STATE] = s->state[loss.i];
    const LsNodeId to = ls_append_bare(r->to, LS_OP_XENT_PART, goes_on ? MOST : STATE, in, 1,
                                       &node->attr);
    const LsSpan own = ls_tile_makes_span(&s->r, n, t, &all);
    r->to->node[to.i].tile = ls_tile_place(r, s, own, all, t);
    ls_loss_may_go_on(r->from, n, s->r.target, &elements);
    ls_tile_set_state(r, s, to, 0, loss, LS_I64, elements, t);
}

void ls_tile_loss_end(LsRewrite *r, const LsTiler *s, LsNodeId n)
{
    const LsNode *node = &r->from->node[n.i];
    const LsValueId loss = ls_out(r->from, n, 0), in = s->state[loss.i];
    const LsNodeId end = ls_append_bare(r->to, LS_OP_XENT_END, 1, &in, 2, &node->attr);
    ls_rewrite_result(r, end, 0, loss);
    ls_rewrite_result(r, end, 1, ls_out(r->from, n, node->nout - 1));
}
