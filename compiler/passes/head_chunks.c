/* compiler/passes/head_chunks.c -- computes a vocabulary head by chunks of positions.
 *
 * requires the loss; a cross-entropy of a product's rows, y = x W, over all classes, becomes for
 * each chunk of rows their product and their cross-entropy, and the mean of all. No result has all
 * scores, so y is no output any more. The weight of the labels is known before the scores are, so
 * each chunk's gradient can be made while its scores are there. Sums and rounding are those of the
 * whole head, but for the gradient of a trained weight. */
#include "compiler/fold/append.h"
#include "compiler/passes/passes.h"

#include <inttypes.h>

typedef struct Head {
    LsNodeId loss, product;
    LsValueId y, x, w, bias, label;     /* x [rows, ..], label [rows]; bias: none, or one for all
                                         * rows */
    int64_t rows, classes;
} Head;

static bool refuse(LsCtx *cx, const char *why)
{
    return ls_error(cx, LS_NOWHERE, LS_E_OPTION, "leave --head-chunks out",
                    "--head-chunks: %s", why);
}

/* The node behind views. */
static LsNodeId maker(const LsGraph *g, LsValueId v)
{
    return g->value[ls_viewed(g, v).i].def;
}

static bool find(LsCtx *cx, LsGraph *g, Head *h)
{
    h->loss = g->value[g->objective.loss.i].def;
    const LsNode *n = &g->node[h->loss.i];
    if (h->loss.i == 0 || n->op != LS_OP_XENT || n->attr.loss.reduction != LS_LOSS_MEAN)
        return refuse(cx, "the loss is not one cross-entropy, of weight 1");
    h->y = ls_in(g, h->loss, 0);
    h->label = ls_in(g, h->loss, 1);
    const LsShape *s = ls_shape(g, h->y);
    if (n->attr.loss.axis != s->rank - 1)
        return refuse(cx, "the classes are not on the last axis of the scores");
    h->product = maker(g, h->y);
    if (h->product.i == 0 || g->node[h->product.i].op != LS_OP_MATMUL)
        return refuse(cx, "the scores are not the result of a product");
    h->x = ls_in(g, h->product, 0);
    h->w = ls_in(g, h->product, 1);
    h->bias = ls_in(g, h->product, 2);
    const LsShape *to = ls_shape(g, ls_out(g, h->product, 0));
    h->classes = s->dim[s->rank - 1];
    h->rows = ls_count(s) / h->classes;
    if (ls_shape(g, h->x)->rank != 2 || ls_shape(g, h->w)->rank != 2 || to->dim[0] != h->rows
        || to->dim[1] != h->classes || g->node[h->product.i].attr.gemm.trans_a
        || (ls_is(h->bias) && ls_count(ls_shape(g, h->bias)) != h->classes))
        return refuse(cx, "the scores are not the rows of one product");
    return true;
}

/* Rows first .. first + count: their losses, [count]. */
static LsValueId chunk(LsCtx *cx, LsGraph *g, const Head *h, int64_t first, int64_t count)
{
    LsAttr at = g->node[h->loss.i].attr, product = g->node[h->product.i].attr;
    const LsValueId weights = ls_in(g, h->loss, 2);
    const LsValueId x = ls_slice_axis(cx, g, h->x, 0, first, first + count),
                    label = ls_slice_axis(cx, g, h->label, 0, first, first + count);
    at.loss.axis = 1;
    at.loss.reduction = LS_LOSS_EACH;
    at.loss.first = first;
    at.loss.rows = h->rows;
    const LsValueId of[] = {x, h->w, h->bias};
    const LsValueId scores = ls_append(cx, g, LS_OP_MATMUL, ls_is(h->bias) ? 3 : 2, of, &product);
    const LsValueId in[] = {scores, label, weights};
    return ls_append(cx, g, LS_OP_XENT, ls_is(weights) ? 3 : 2, in, &at);
}

/* The scores are no output any more, wherever they were. */
static void drop_output(LsGraph *g, const Head *h)
{
    const LsValueId all = ls_viewed(g, h->y);
    uint32_t kept = 0;
    for (uint32_t k = 0; k < g->noutput; k++)
        if (ls_viewed(g, g->output[k]).i != all.i)
            g->output[kept++] = g->output[k];
    g->noutput = kept;
}

/* The gradient of a trained weight is a sum over the chunks. */
static void warn_of_sum(LsCtx *cx, const LsGraph *g, const Head *h, int64_t chunks)
{
    const LsValue *w = &g->value[ls_viewed(g, h->w).i];
    const LsNodeId made = w->def;
    const LsValue *of = made.i != 0 && g->node[made.i].op == LS_OP_TRANSPOSE
                            ? &g->value[ls_viewed(g, ls_in(g, made, 0)).i] : w;
    if (g->training && chunks > 1 && of->kind == LS_V_PARAM)
        ls_warn(cx, LS_NOWHERE, NULL,
                "--head-chunks: '%s' is trained, and its gradient adds up by chunks: its bits "
                "depend on their number",
                of->name);
}

bool ls_head_chunks(LsCtx *cx, LsGraph *g, int64_t chunks)
{
    Head h = {.rows = 0};
    if (chunks == 0)
        return true;
    if (!find(cx, g, &h))
        return false;
    if (chunks > h.rows)
        return refuse(cx, ls_arena_printf(cx->arena, "%" PRId64 " chunks of %" PRId64 " rows",
                                          chunks, h.rows));
    warn_of_sum(cx, g, &h, chunks);
    LsAttr at = g->node[h.loss.i].attr;
    const LsValueId weights = ls_in(g, h.loss, 2);
    at.loss.nclass = h.classes;
    at.loss.axis = 1;
    ls_graph_origin(g, (LsOrigin){LS_FORWARD, {0}, 0, "loss"});
    h.label = ls_reshape(cx, g, h.label, &(LsShape){1, {h.rows}});
    LsValueId *each = ls_arena_alloc(cx->arena, (size_t)chunks, sizeof *each);
    for (int64_t k = 0, first = 0; k < chunks; k++) {
        const int64_t count = h.rows * (k + 1) / chunks - first;
        each[k] = chunk(cx, g, &h, first, count);
        first += count;
    }
    const LsValueId of[] = {h.label, weights};
    const LsValueId wsum =
        ls_append(cx, g, LS_OP_LABEL_WEIGHT, ls_is(weights) ? 2 : 1, of, &at);
    const LsValueId all = chunks == 1 ? each[0]
                                      : ls_append(cx, g, LS_OP_CONCAT, (int)chunks, each,
                                                  &(LsAttr){.axis = {0}});
    const LsValueId in[] = {all, h.label, weights, wsum};
    const LsValueId loss = ls_append(cx, g, LS_OP_XENT_SUM, 4, in, &at);
    ls_graph_origin(g, (LsOrigin){LS_FORWARD, {0}, 0, NULL});
    g->objective.loss = loss;
    if (ls_is(g->objective.weight))
        g->objective.weight = wsum;
    drop_output(g, &h);
    return ls_is(loss);
}
