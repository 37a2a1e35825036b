/* codegen/fusion/gradient_in_update.c -- see the header. */
#include "codegen/fusion/gradient_in_update.h"

#include "base/arena.h"
#include "codegen/fusion/drop_nodes.h"
#include "codegen/kernels/product.h"
#include "compiler/ir/optimizer.h"
#include "compiler/ir/rewrite.h"
#include "compiler/passes/fuse.h"

typedef struct Apply {
    const LsGraph *g;
    uint32_t *readers;          /* by value */
    uint32_t *product;          /* by node: the product that this update computes, 0: none */
    bool *goes;                 /* by node: such a product */
    uint32_t n;
} Apply;

/* Whether node m is a plain product of two matrices, so large that keeping the factors until the
 * update costs less memory than keeping the result. */
static bool is_large_product(const LsGraph *g, LsNodeId m)
{
    enum { LARGE = 1 << 18, PART = 2 };             /* elements */
    const LsNode *node = &g->node[m.i];
    if (node->op != LS_OP_MATMUL || node->nout != 1 || node->nin < 2 || ls_is(ls_in(g, m, 2))
        || node->attr.gemm.then != LS_THEN_NOTHING || node->computed != NULL)
        return false;
    if (ls_is_updated(g, ls_in(g, m, 0)) || ls_is_updated(g, ls_in(g, m, 1)))
        return false;
    LsProduct p = ls_product_of(g, m);
    int64_t factors = ls_count(ls_in_shape(g, m, 0)) + ls_count(ls_in_shape(g, m, 1));
    return p.batch == 1 && ls_shape(g, ls_out(g, m, 0))->rank == 2 && p.row_c == p.n
        && p.m * p.n >= LARGE && PART * factors <= p.m * p.n;
}

/* Codes take whole blocks of a row of the gradient. */
static bool takes_rows(const LsGraph *g, LsNodeId n, const LsRule *rule)
{
    const LsShape *p = ls_in_shape(g, n, 0);
    return !ls_rule_has_codes(rule)
        || p->dim[p->rank - 1] % ls_code_block(g->node[n.i].attr.update.hyper.bits) == 0;
}

/* The large product whose result only update n reads; 0: none. */
static uint32_t product_for(const Apply *a, LsNodeId n)
{
    const LsGraph *g = a->g;
    const LsNode *node = &g->node[n.i];
    LsValueId v = ls_in(g, n, 1);
    LsNodeId def = g->value[v.i].def;
    const LsRule *rule = ls_rule_of((LsOpCode)node->op);
    bool is = rule != NULL && takes_rows(g, n, rule) && node->nout == 0 && ls_updated(node) == 1
        && def.i != 0 && a->readers[v.i] == 1 && is_large_product(g, def)
        && ls_shape_same(ls_shape(g, v), ls_in_shape(g, n, 0));
    return is ? def.i : 0;
}

/* Appends the update with the two factors after its own operands, with those that are absent. */
static void append(LsRewrite *r, LsNodeId n, LsNodeId product)
{
    const LsGraph *g = r->from;
    const LsNode *node = &g->node[n.i];
    const int own = ls_rule_shared(ls_rule_of((LsOpCode)node->op)) + 1;
    LsValueId in[LS_MAX_IN] = {{0}};
    for (int k = 0; k < node->nin; k++)
        in[k] = k == 1 ? (LsValueId){0} : ls_in(g, n, k);
    in[own] = ls_in(g, product, 0);
    in[own + 1] = ls_in(g, product, 1);
    LsNodeId to = ls_rewrite_append(r, node->op, own + 2, in, 0, NULL, &node->attr);
    LsGemmAttr *gemm = ls_arena_alloc(r->cx->arena, 1, sizeof *gemm);
    LsComputed *c = ls_arena_alloc(r->cx->arena, 1, sizeof *c);
    *gemm = g->node[product.i].attr.gemm;
    *c = (LsComputed){.operand = 1, .first = own, .product = gemm,
                      .rounds = g->node[product.i].rounds};
    r->to->node[to.i].computed = c;
}

static bool visit(LsRewrite *r, LsNodeId n)
{
    const Apply *a = r->user;
    if (a->product[n.i] != 0)
        append(r, n, (LsNodeId){a->product[n.i]});
    return a->goes[n.i] || a->product[n.i] != 0;
}

uint32_t ls_apply_products(LsCtx *cx, LsGraph *g, const LsTarget *t, const char *const *made,
                           uint32_t nmade)
{
    if (t->kind != LS_TARGET_CPU)
        return 0;
    Apply a = {.g = g, .readers = ls_readers(cx->arena, g, false),
               .product = ls_arena_alloc(cx->arena, g->nnode, sizeof *a.product),
               .goes = ls_arena_alloc(cx->arena, g->nnode, sizeof *a.goes)};
    for (uint32_t i = 1; i < g->nnode; i++) {
        uint32_t product = product_for(&a, (LsNodeId){i});
        if (product != 0 && !ls_is_named(g, (LsNodeId){product}, made, nmade)) {
            a.product[i] = product;
            a.goes[product] = true;
            a.n++;
        }
    }
    if (a.n > 0) {
        ls_rewrite(cx, g, visit, &a);
        ls_forget_gradients(g);
    }
    return a.n;
}

uint32_t ls_applied(const LsGraph *g)
{
    uint32_t n = 0;
    for (uint32_t i = 1; i < g->nnode; i++)
        n += g->node[i].computed != NULL && g->node[i].computed->product != NULL;
    return n;
}
