/* codegen/cuda/epilogue.c -- see epilogue.h. */
#include "codegen/cuda/epilogue.h"

#include "codegen/fusion/inline_bodies.h"
#include "codegen/kernels/product.h"
#include "compiler/fold/append.h"
#include "compiler/ir/op.h"
#include "compiler/ir/rewrite.h"
#include "compiler/passes/fuse.h"

typedef struct Search {
    const LsGraph *g;
    uint32_t *readers;          /* by value that is no view: nodes that read it or a view of it */
    bool *shown;                /* likewise: it is an output, a gradient or the loss */
    LsThen *then;               /* by product: its epilogue */
    uint32_t *into;             /* by FUSED node: the product it moves into; 0: it stays */
    LsValueId *aux;             /* by product: operand 3; none: it has no operand 3 */
    bool *keeps;                /* by product: result 1 is the element before a GELU */
} Search;

static bool is_view(const LsGraph *g, LsNodeId n)
{
    return n.i != 0 && g->node[n.i].op != LS_OP_NOP && ls_op[g->node[n.i].op]->kernel == LS_K_VIEW;
}

static void count_readers(LsCtx *cx, Search *s)
{
    const LsGraph *g = s->g;
    s->readers = ls_arena_alloc(cx->arena, g->nvalue, sizeof *s->readers);
    s->shown = ls_arena_alloc(cx->arena, g->nvalue, sizeof *s->shown);
    for (uint32_t i = 1; i < g->nnode; i++)
        for (int k = 0; k < g->node[i].nin && !is_view(g, (LsNodeId){i}); k++)
            s->readers[ls_viewed(g, ls_in(g, (LsNodeId){i}, k)).i]++;
    for (uint32_t k = 0; k < g->noutput; k++)
        s->shown[ls_viewed(g, g->output[k]).i] = true;
    for (uint32_t k = 0; k < g->ngrad; k++)
        s->shown[ls_viewed(g, g->grad[k].grad).i] = true;
    s->shown[ls_viewed(g, g->objective.loss).i] = true;
}

/* The product that makes v, if it has no epilogue yet; else none. */
static LsNodeId product_behind(const Search *s, LsValueId v)
{
    LsNodeId n = s->g->value[ls_viewed(s->g, v).i].def;
    bool is = n.i != 0 && s->g->node[n.i].op == LS_OP_MATMUL && s->g->node[n.i].nout == 1
              && s->then[n.i] == LS_THEN_NOTHING && !ls_is_16(ls_type(s->g, ls_in(s->g, n, 0)));
    return is ? n : (LsNodeId){0};
}

/* Whether operand k of node f has the shape and the layout of its result. */
static bool point_by_point(const LsGraph *g, LsNodeId f, int k)
{
    LsValueId x = ls_in(g, f, k), y = ls_out(g, f, 0);
    return ls_shape_same(ls_shape(g, x), ls_shape(g, y))
        && (g->value[x.i].layout == g->value[y.i].layout || ls_layout_free(ls_shape(g, y)));
}

static void move_into(Search *s, LsNodeId f, LsNodeId product, LsThen then)
{
    s->into[f.i] = product.i;
    s->then[product.i] = then;
}

/* The library has the elements before the activation in rows whose length is a multiple of 8. */
static bool aux_fits(const LsGraph *g, LsNodeId product)
{
    return ls_product_of(g, product).n % 8 == 0;
}

static void try_activation(Search *s, LsNodeId f, const LsStmt *st)
{
    const LsGraph *g = s->g;
    LsNodeId product = product_behind(s, ls_in(g, f, 0));
    LsValueId x = ls_viewed(g, ls_in(g, f, 0));
    if (product.i == 0 || !point_by_point(g, f, 0) || s->shown[x.i])
        return;
    if (st->op == LS_OP_RELU && s->readers[x.i] == 1)
        move_into(s, f, product, LS_THEN_RELU);
    if (st->op == LS_OP_GELU_TANH && (s->readers[x.i] == 1 || aux_fits(g, product))) {
        s->keeps[product.i] = s->readers[x.i] > 1;
        move_into(s, f, product, LS_THEN_GELU);
    }
}

/* Moves a GELU's gradient, the slope at x times dy, into the product that makes dy. */
static void try_slope(Search *s, LsNodeId f)
{
    const LsGraph *g = s->g;
    LsNodeId product = product_behind(s, ls_in(g, f, 0));
    LsValueId dy = ls_viewed(g, ls_in(g, f, 0)), x = ls_in(g, f, 1);
    if (product.i == 0 || s->readers[dy.i] != 1 || s->shown[dy.i] || !point_by_point(g, f, 0)
        || !point_by_point(g, f, 1) || g->node[product.i].nin != 2 || !aux_fits(g, product)
        || g->value[x.i].def.i >= product.i)
        return;
    s->aux[product.i] = x;
    move_into(s, f, product, LS_THEN_GELU_SLOPE);
}

/* Moves the sum of a product and x (a residual), of the same shape, into the product if x precedes
 * it. */
static void try_sum_with(Search *s, LsNodeId f)
{
    const LsGraph *g = s->g;
    for (int k = 0; k < 2; k++) {
        LsNodeId product = product_behind(s, ls_in(g, f, k));
        LsValueId y = ls_viewed(g, ls_in(g, f, k)), x = ls_in(g, f, 1 - k);
        if (product.i == 0 || s->readers[y.i] != 1 || s->shown[y.i] || !point_by_point(g, f, 0)
            || !point_by_point(g, f, 1) || g->value[x.i].def.i >= product.i)
            continue;
        s->aux[product.i] = x;
        move_into(s, f, product, LS_THEN_ADD);
        return;
    }
}

/* The factor of product n that is x, with x's rows along the product's inner axis: SUM_A, SUM_B or
 * none. */
static LsThen factor_of(const LsGraph *g, LsNodeId n, LsValueId x)
{
    const LsGemmAttr *at = &g->node[n.i].attr.gemm;
    const LsProduct p = ls_product_of(g, n);
    const LsShape *shape = ls_shape(g, x);
    int64_t last = shape->dim[shape->rank - 1], rows = ls_count(shape) / last;
    if (g->node[n.i].nin != 2 || p.naxis > 0 || at->alpha != 1 || rows != p.depth)
        return LS_THEN_NOTHING;
    if (ls_viewed(g, ls_in(g, n, 1)).i == ls_viewed(g, x).i && !at->trans_b && p.n == last)
        return LS_THEN_SUM_B;
    if (ls_viewed(g, ls_in(g, n, 0)).i == ls_viewed(g, x).i && at->trans_a && p.m == last)
        return LS_THEN_SUM_A;
    return LS_THEN_NOTHING;
}

static void try_sums(Search *s, LsNodeId f)
{
    const LsGraph *g = s->g;
    const LsFused *body = g->node[f.i].attr.fused.body;
    LsValueId x = ls_in(g, f, 0);
    int rank = body->space.rank;
    bool rows = rank > 1 && body->axes == (1u << (rank - 1)) - 1
                && ls_shape_same(ls_shape(g, x), &body->space) && g->value[x.i].layout == LS_ROW;
    if (!rows || body->out[0].combine != LS_SUM || body->out[0].mean)
        return;
    for (uint32_t i = f.i - 1; i > 0; i--) {
        const LsNode *n = &g->node[i];
        if (n->op != LS_OP_MATMUL || n->nout != 1 || s->then[i] != LS_THEN_NOTHING
            || n->phase != g->node[f.i].phase || ls_is_16(ls_type(g, x)))
            continue;
        LsThen then = factor_of(g, (LsNodeId){i}, x);
        if (then != LS_THEN_NOTHING) {
            move_into(s, f, (LsNodeId){i}, then);
            return;
        }
    }
}

static void search(Search *s)
{
    for (uint32_t i = 1; i < s->g->nnode; i++) {
        const LsStmt *st = ls_only_statement(s->g, (LsNodeId){i});
        bool reduces = st != NULL && s->g->node[i].attr.fused.body->out[0].reduce;
        if (st == NULL)
            continue;
        if (st->op == LS_OP_GELU_TANH_GRAD && !reduces)
            try_slope(s, (LsNodeId){i});
        else if (st->op == LS_OP_REDUCE_SUM && reduces)
            try_sums(s, (LsNodeId){i});
        else if (st->op == LS_OP_ADD && !reduces)
            try_sum_with(s, (LsNodeId){i});
        else if (!reduces && st->narg == 1)
            try_activation(s, (LsNodeId){i}, st);
    }
}

/* Appends the product with its epilogue. Readers of the element before a GELU go on reading that
 * element. */
static void copy_product(LsRewrite *r, const Search *s, LsNodeId n)
{
    const LsNode *node = &r->from->node[n.i];
    LsThen then = s->then[n.i];
    LsValueId y = ls_out(r->from, n, 0), in[4] = {0};
    bool sums = then == LS_THEN_SUM_A || then == LS_THEN_SUM_B, two = sums || s->keeps[n.i];
    LsAttr attr = node->attr;
    attr.gemm.then = then;
    for (int k = 0; k < node->nin; k++)
        in[k] = ls_image(r, ls_in(r->from, n, k));
    in[3] = ls_is(s->aux[n.i]) ? ls_image(r, s->aux[n.i]) : (LsValueId){0};
    LsNodeId to = ls_append_bare(r->to, LS_OP_MATMUL, ls_is(in[3]) ? 4 : node->nin, in, two ? 2 : 1,
                                 &attr);
    const LsProduct p = ls_product_of(r->from, n);
    const LsShape vector = {1, {then == LS_THEN_SUM_A ? p.m : p.n}};
    ls_set_out(r->to, to, 0, LS_REAL, ls_shape(r->from, y));
    r->to->value[ls_out(r->to, to, 0).i].name = r->from->value[y.i].name;
    if (two) {
        ls_set_out(r->to, to, 1, LS_REAL, sums ? &vector : ls_shape(r->from, y));
        r->to->value[ls_out(r->to, to, 1).i].name = r->from->value[y.i].name;
    }
    r->map[y.i] = ls_out(r->to, to, s->keeps[n.i] ? 1 : 0);
}

static bool visit(LsRewrite *r, LsNodeId n)
{
    const Search *s = r->user;
    if (s->then[n.i] != LS_THEN_NOTHING) {
        copy_product(r, s, n);
        return true;
    }
    if (s->into[n.i] == 0)
        return false;
    LsNodeId product = {s->into[n.i]};
    LsThen then = s->then[product.i];
    LsValueId old = ls_out(r->from, n, 0), y = r->map[r->from->node[product.i].out];
    if (s->keeps[product.i])
        y.i--;                          /* result 0; y's readers read result 1 */
    else if (then == LS_THEN_SUM_A || then == LS_THEN_SUM_B)
        y.i++;
    r->map[old.i] = ls_reshape(r->cx, r->to, y, ls_shape(r->from, old));
    return true;
}

void ls_cuda_epilogues(LsCtx *cx, LsGraph *g)
{
    Search s = {.g = g};
    count_readers(cx, &s);
    s.then = ls_arena_alloc(cx->arena, g->nnode, sizeof *s.then);
    s.into = ls_arena_alloc(cx->arena, g->nnode, sizeof *s.into);
    s.aux = ls_arena_alloc(cx->arena, g->nnode, sizeof *s.aux);
    s.keeps = ls_arena_alloc(cx->arena, g->nnode, sizeof *s.keeps);
    search(&s);
    ls_rewrite(cx, g, visit, &s);
}
