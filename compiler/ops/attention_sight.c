/* compiler/ops/attention_sight.c -- see the header. */
#include "compiler/ops/attention_sight.h"

#include "compiler/ops/index.h"

/* a AND b; none is all. */
static LsValueId both(LsOnnxNode *n, LsValueId a, LsValueId b)
{
    return ls_is(a) && ls_is(b) ? ls_append2(n->cx, n->g, LS_OP_AND, a, b, NULL) : ls_is(a) ? a : b;
}

LsValueId ls_sight(LsOnnxNode *n, const LsSight *s)
{
    LsCtx *cx = n->cx;
    LsGraph *g = n->g;
    LsValueId all = {0}, col = ls_index_count(n, s->cols, 1, 3, 4),
              row = ls_index_count(n, s->rows, 1, 2, 4);
    LsValueId offset = ls_index_const(n, s->past);
    if (ls_is(s->filled)) {
        all = ls_append2(cx, g, LS_OP_LESS, col, s->filled, NULL);
        offset = ls_append2(cx, g, LS_OP_SUB, s->filled, ls_index_const(n, s->rows), NULL);
    }
    row = ls_append2(cx, g, LS_OP_ADD, row, offset, NULL);
    if (s->causal)
        all = both(n, all, ls_append2(cx, g, LS_OP_LESS_EQUAL, col, row, NULL));
    if (s->left >= 0)
        all = both(n, all,
                   ls_append2(cx, g, LS_OP_GREATER_EQUAL, col,
                              ls_append2(cx, g, LS_OP_SUB, row, ls_index_const(n, s->left), NULL),
                              NULL));
    if (s->right >= 0)
        all = both(n, all,
                   ls_append2(cx, g, LS_OP_LESS_EQUAL, col,
                              ls_append2(cx, g, LS_OP_ADD, row, ls_index_const(n, s->right), NULL),
                              NULL));
    return all;
}
