/* codegen/cuda/pad_classes.c */
#include "codegen/cuda/pad_classes.h"

#include "codegen/fusion/inline_bodies.h"
#include "codegen/kernels/product.h"
#include "compiler/passes/fuse.h"

#include <string.h>

enum {
    ACCESS = 16,                /* bytes */
    FEWEST = 32,                /* fewest classes: with less there is nothing to gain */
    MOST = 4,                   /* most values widened together */
};

typedef struct Widened { LsValueId v[MOST]; int n; } Widened;

/* Whether node n is a product of two matrices (leading axes only add rows), without an epilogue. */
static bool plain_product(const LsGraph *g, LsNodeId n)
{
    const LsNode *node = &g->node[n.i];
    return node->op == LS_OP_MATMUL && node->nout == 1 && ls_own_operands(node) == node->nin
        && (node->nin < 3 || !ls_is(ls_in(g, n, 2))) && node->attr.gemm.then == LS_THEN_NOTHING
        && ls_product_of(g, n).batch == 1;
}

static bool is_loss(const LsGraph *g, LsNodeId n)
{
    LsOpCode op = g->node[n.i].op;
    return op == LS_OP_XENT || op == LS_OP_XENT_GRAD;
}

/* Whether node n may read its operand k with wider rows; a view of that operand is widened, too. */
static bool takes(const LsGraph *g, LsNodeId n, int k, Widened *all);

static bool all_take(const LsGraph *g, LsValueId v, Widened *all)
{
    if (all->n == MOST)
        return false;
    all->v[all->n++] = v;
    for (uint32_t i = 1; i < g->nnode; i++)
        for (int k = 0; k < g->node[i].nin; k++)
            if (ls_in(g, (LsNodeId){i}, k).i == v.i && !takes(g, (LsNodeId){i}, k, all))
                return false;
    return true;
}

static int64_t columns(const LsGraph *g, LsValueId v)
{
    const LsShape *s = ls_shape(g, v);
    return s->rank > 0 ? s->dim[s->rank - 1] : 0;
}

static bool takes(const LsGraph *g, LsNodeId n, int k, Widened *all)
{
    const LsNode *node = &g->node[n.i];
    LsValueId v = ls_in(g, n, k);
    if (node->op == LS_OP_RESHAPE)
        return columns(g, v) == columns(g, ls_out(g, n, 0)) && all_take(g, ls_out(g, n, 0), all);
    if (is_loss(g, n))
        return k == (node->op == LS_OP_XENT ? 0 : 1)
            && node->attr.loss.axis == ls_shape(g, v)->rank - 1;
    return k == 0 && plain_product(g, n) && ls_in(g, n, 1).i != v.i;
}

/* Finds the scores of this loss and their product; false if a reader takes no wider rows. */
static bool find(const LsGraph *g, LsNodeId loss, Widened *all, LsNodeId *product)
{
    LsValueId v = ls_in(g, loss, 0);
    LsNodeId def = g->value[v.i].def;
    if (def.i != 0 && g->node[def.i].op == LS_OP_RESHAPE
        && columns(g, ls_in(g, def, 0)) == columns(g, v)) {
        v = ls_in(g, def, 0);
        def = g->value[v.i].def;
    }
    *product = def;
    return def.i != 0 && plain_product(g, def) && all_take(g, v, all);
}

static bool is_among(LsValueId v, const Widened *all)
{
    bool is = false;
    for (int k = 0; k < all->n; k++)
        is |= all->v[k].i == v.i;
    return is;
}

/* The node that makes v, if v is a copy in 16 bits of all its operand, and nothing else; else
 * none. */
static LsNodeId copy_maker(const LsGraph *g, LsValueId v)
{
    const LsNodeId n = g->value[v.i].def;
    const LsFused *f = ls_is_16(ls_type(g, v)) ? ls_body_of(g, n) : NULL;
    bool copies = f != NULL && g->node[n.i].nin == 1 && g->node[n.i].nout == 1 && f->nstmt == 1
                  && f->stmt[0].op == LS_OP_CAST && !f->out[0].reduce
                  && ls_shape_same(ls_in_shape(g, n, 0), ls_shape(g, v));
    return copies ? n : (LsNodeId){0};
}

/* Whether only products read copy v of the weights: the one that makes the scores, and those of the
 * scores' gradient. */
static bool only_products_read(const LsGraph *g, LsValueId v, LsNodeId product,
                               const Widened *gradient)
{
    for (uint32_t i = 1; i < g->nnode; i++)
        for (int k = 0; k < g->node[i].nin; k++) {
            const LsNodeId n = {i};
            const LsGemmAttr *at = &g->node[i].attr.gemm;
            if (ls_in(g, n, k).i == v.i
                && (k != 1 || !plain_product(g, n) || at->trans_a
                    || (i != product.i && (at->trans_b || !is_among(ls_in(g, n, 0), gradient)))))
                return false;
        }
    return true;
}

/* Adds rows of zeros behind the weights, if these have a row for each class; a copy in 16 bits has
 * them, too. */
static void widen_weights(LsGraph *g, LsNodeId product, const Widened *gradient, int64_t rows)
{
    const LsValueId v = ls_in(g, product, 1);
    const LsNodeId maker = copy_maker(g, v);
    LsValue *w = &g->value[maker.i != 0 ? ls_in(g, maker, 0).i : v.i];
    bool state = w->kind == LS_V_PARAM || w->kind == LS_V_STATE;
    if (!state || w->shape.rank != 2 || !g->node[product.i].attr.gemm.trans_b
        || (maker.i != 0 && !only_products_read(g, v, product, gradient)))
        return;
    w->rows_behind = rows;
    for (uint32_t i = 1; i < g->nvalue; i++)    /* evaluation reads the average in its place */
        if (g->value[i].average_of != NULL && strcmp(g->value[i].average_of, w->name) == 0)
            g->value[i].rows_behind = rows;
    if (maker.i == 0)
        return;
    LsFused *f = ls_arena_alloc(g->arena, 1, sizeof *f);
    *f = *ls_body_of(g, maker);
    f->space.dim[0] += rows;            /* it copies the zeros */
    g->value[v.i].shape.dim[0] += rows;
    g->node[maker.i].attr.fused.body = f;
}

static void widen(LsGraph *g, const Widened *all, int64_t width)
{
    for (int k = 0; k < all->n; k++) {
        LsValue *v = &g->value[all->v[k].i];
        v->columns = v->shape.dim[v->shape.rank - 1];
        v->shape.dim[v->shape.rank - 1] = width;
    }
}

static bool reads(const LsGraph *g, LsNodeId n, const Widened *all)
{
    for (int k = 0; k < all->n; k++)
        if (ls_in(g, n, g->node[n.i].op == LS_OP_XENT ? 0 : 1).i == all->v[k].i)
            return true;
    return false;
}

/* Finds the gradients of the scores; false if one cannot be widened, as they must be as wide. */
static bool find_gradients(const LsGraph *g, const Widened *scores, Widened *all)
{
    for (uint32_t i = 1; i < g->nnode; i++)
        if (g->node[i].op == LS_OP_XENT_GRAD && reads(g, (LsNodeId){i}, scores)
            && !all_take(g, ls_out(g, (LsNodeId){i}, 0), all))
            return false;
    return true;
}

uint32_t ls_widen_scores(LsGraph *g, const LsTarget *t)
{
    uint32_t n = 0;
    for (uint32_t i = 1; i < g->nnode && t->kind == LS_TARGET_CUDA; i++) {
        Widened scores = {.n = 0}, gradient = {.n = 0};
        LsNodeId product;
        if (g->node[i].op != LS_OP_XENT)
            continue;
        const LsValueId v = ls_in(g, (LsNodeId){i}, 0);
        const int64_t classes = columns(g, v),
                      together = ACCESS / (ls_is_16(ls_type(g, v)) ? 2 : 4);
        if (classes < FEWEST || classes % together == 0
            || !find(g, (LsNodeId){i}, &scores, &product) || !find_gradients(g, &scores, &gradient))
            continue;
        int64_t width = (classes + together - 1) / together * together;
        widen(g, &scores, width);
        widen(g, &gradient, width);
        widen_weights(g, product, &gradient, width - classes);
        n++;
    }
    return n;
}
