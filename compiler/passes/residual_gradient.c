/* compiler/passes/residual_gradient.c -- lets norm kernels add their gradient to that of a residual
 * stream.
 *
 * requires layouts, MAP nodes; keeps all names except those of removed values: gradients of layer
 * norms that are read only by their sum with another, earlier gradient.
 *
 * The sum is bit-identical and needs no extra pass over memory. It is computed at the norm's
 * gradient and not at the sum's place: by then the norm's scale may be updated. A MAP node that
 * serves only the sum is left to ls_fuse, which computes it in the loop that sums. */
#include "compiler/fold/append.h"
#include "compiler/ir/rewrite.h"
#include "compiler/passes/passes.h"

typedef struct Residual {
    const LsGraph *g;
    uint32_t *readers;          /* by value */
    uint32_t *sum;              /* by node: the sum that it absorbs, 0: none */
    LsValueId *plus;            /* ... and its other addend */
    bool *goes;                 /* by node: an absorbed sum, or a view before it */
    uint32_t n;
} Residual;

static bool is_view(const LsGraph *g, LsNodeId n) { return g->node[n.i].op == LS_OP_RESHAPE; }

/* The norm's gradient that v is, perhaps in another shape, without readers other than v; or
 * none. */
static LsNodeId norm_behind(const Residual *s, LsValueId v)
{
    const LsGraph *g = s->g;
    LsNodeId n = g->value[v.i].def;
    for (; s->readers[v.i] == 1 && is_view(g, n); n = g->value[v.i].def)
        v = ls_in(g, n, 0);
    const LsNode *node = &g->node[n.i];
    bool is = s->readers[v.i] == 1 && node->op == LS_OP_LAYER_NORM_GRAD && !ls_is(ls_in(g, n, 5));
    return is ? n : (LsNodeId){0};
}

/* v is in memory before node n, row-major. */
static bool is_there(const Residual *s, LsValueId v, LsNodeId n)
{
    const LsValue *value = &s->g->value[v.i];
    const LsNode *def = &s->g->node[value->def.i];
    bool fuses = ls_op[def->op]->kernel == LS_K_MAP && s->readers[v.i] == 1
        && !s->goes[value->def.i];
    return value->def.i < n.i && !fuses && value->layout == LS_ROW;
}

static void take_in(Residual *s, LsNodeId sum, int side)
{
    const LsGraph *g = s->g;
    LsValueId made = ls_in(g, sum, side), plus = ls_in(g, sum, 1 - side), y = ls_out(g, sum, 0);
    LsNodeId n = norm_behind(s, made);
    if (n.i == 0 || g->node[n.i].phase != g->node[sum.i].phase
        || !ls_shape_same(ls_shape(g, made), ls_shape(g, y))
        || !ls_shape_same(ls_shape(g, plus), ls_shape(g, y))
        || g->value[y.i].layout != LS_ROW || !is_there(s, plus, n))
        return;
    s->sum[n.i] = sum.i;
    s->plus[n.i] = plus;
    s->goes[sum.i] = true;
    for (LsNodeId view = g->value[made.i].def; view.i != n.i;
         view = g->value[ls_in(g, view, 0).i].def)
        s->goes[view.i] = true;
    s->n++;
}

static void append(LsRewrite *r, LsNodeId n, LsNodeId sum, LsValueId plus)
{
    const LsGraph *g = r->from;
    LsShape dx = *ls_shape(g, ls_out(g, n, 0));
    LsValueId in[6], y = ls_out(g, sum, 0);
    for (int k = 0; k < 5; k++)
        in[k] = ls_image(r, ls_in(g, n, k));
    in[5] = ls_reshape(r->cx, r->to, ls_image(r, plus), &dx);
    LsValueId made = ls_append(r->cx, r->to, LS_OP_LAYER_NORM_GRAD, 6, in, &g->node[n.i].attr);
    made = ls_reshape(r->cx, r->to, made, ls_shape(g, y));
    ls_rewrite_result(r, r->to->value[made.i].def, 0, y);
}

static bool visit(LsRewrite *r, LsNodeId n)
{
    const Residual *s = r->user;
    if (s->sum[n.i] != 0)
        append(r, n, (LsNodeId){s->sum[n.i]}, s->plus[n.i]);
    return s->goes[n.i] || s->sum[n.i] != 0;
}

bool ls_residual(LsCtx *cx, LsGraph *g)
{
    Residual s = {.g = g, .readers = ls_readers(cx->arena, g, true),
                  .sum = ls_arena_alloc(cx->arena, g->nnode, sizeof *s.sum),
                  .plus = ls_arena_alloc(cx->arena, g->nnode, sizeof *s.plus),
                  .goes = ls_arena_alloc(cx->arena, g->nnode, sizeof *s.goes)};
    for (uint32_t i = 1; i < g->nnode; i++)
        for (int side = 0; side < 2 && g->node[i].op == LS_OP_ADD
                           && g->node[i].attr.scalar.counted.each == 0 && !s.goes[i];
             side++)
            take_in(&s, (LsNodeId){i}, side);
    if (s.n > 0)
        ls_rewrite(cx, g, visit, &s);
    return true;
}
