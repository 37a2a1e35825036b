/* compiler/passes/head_chunks.c -- computes a vocabulary head by chunks of positions.
 *
 * requires the loss; a cross-entropy of a product's rows, y = x W, over all classes, becomes for
 * each chunk of rows their product and their cross-entropy, and the mean of all. No result has all
 * scores, so y is no output any more. The weight of the labels is known before the scores are, so
 * each chunk's gradient can be made while its scores are there. Sums and rounding are those of the
 * whole head.
 *
 * The gradient of a trained weight is a sum over all rows. Kernels add it up in blocks of rows, so
 * chunks end where blocks do, and each goes on with the sum of those before it (MATMUL_PART): the
 * first chunk comes last in the forward part, and so first in the backward part. */
#include "compiler/fold/append.h"
#include "compiler/passes/passes.h"

#include <inttypes.h>

enum { DEEP = 12 };             /* operators from a parameter to the head's weight */

typedef struct Head {
    LsNodeId loss, product;
    LsValueId y, x, w, bias, label;     /* x [rows, ..], label [rows]; bias: none, or one for all
                                         * rows */
    int64_t rows, classes;
    int64_t *end;               /* by chunk: the row behind its last one */
    bool parts, blocks;         /* the weight's gradient is a sum of MATMUL_PART; which end at ends
                                 * of its blocks */
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
    product.gemm.part = h->parts;
    product.gemm.of = h->blocks ? h->rows : 0;
    product.gemm.from = first;
    const LsValueId weights = ls_in(g, h->loss, 2);
    const LsValueId x = ls_slice_axis(cx, g, h->x, 0, first, first + count),
                    label = ls_slice_axis(cx, g, h->label, 0, first, first + count);
    at.loss.axis = 1;
    at.loss.reduction = LS_LOSS_EACH;
    at.loss.first = first;
    at.loss.rows = h->rows;
    const LsValueId of[] = {x, h->w, h->bias};
    const LsNode head = g->node[h->product.i];
    ls_graph_origin(g, (LsOrigin){LS_FORWARD, {0}, head.onnx, head.name});
    const LsValueId scores = ls_append(cx, g, LS_OP_MATMUL, ls_is(h->bias) ? 3 : 2, of, &product);
    ls_graph_origin(g, (LsOrigin){LS_FORWARD, {0}, 0, "loss"});
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

/* The parameter that a value is, or the first one from which a few operators computed it. NULL: the
 * value has no gradient. */
static const LsValue *trained(const LsGraph *g, LsValueId v, int most)
{
    const LsValue *of = &g->value[ls_viewed(g, v).i];
    if (of->kind == LS_V_PARAM)
        return of;
    for (int k = 0; of->def.i != 0 && most > 0 && k < g->node[of->def.i].nin; k++) {
        const LsValueId in = ls_in(g, of->def, k);
        const LsValue *found = ls_is(in) ? trained(g, in, most - 1) : NULL;
        if (found != NULL)
            return found;
    }
    return NULL;
}

/* The end of a block of rows that is nearest to `at`. */
static int64_t nearest(const LsHeadChunks *o, int64_t rows, int64_t at)
{
    for (int64_t far = 0; far < rows; far++)
        for (int way = -1; way <= 1; way += 2) {
            const int64_t to = at + way * far;
            if (to > 0 && to < rows && o->ends(o->real_bytes, o->dot16, rows, to))
                return to;
        }
    return rows;
}

static void choose_ends(LsCtx *cx, const LsGraph *g, const LsHeadChunks *o, Head *h)
{
    const bool sums = g->training && o->chunks > 1 && trained(g, h->w, DEEP) != NULL;
    h->end = ls_arena_alloc(cx->arena, (size_t)o->chunks, sizeof *h->end);
    h->parts = sums && o->ends != NULL;
    h->blocks = h->parts && !o->in_update;
    for (int64_t k = 0; k < o->chunks; k++) {
        h->end[k] = h->rows * (k + 1) / o->chunks;
        if (h->blocks && k + 1 < o->chunks)
            h->end[k] = nearest(o, h->rows, h->end[k]);
        h->blocks = h->blocks && h->end[k] > (k > 0 ? h->end[k - 1] : 0);
    }
    for (int64_t k = 0; !h->blocks && k < o->chunks; k++)
        h->end[k] = h->rows * (k + 1) / o->chunks;
}

/* Says what adds up otherwise than in the whole head; false: it must not. */
static bool warn_of_sum(LsCtx *cx, const LsGraph *g, const Head *h, const LsHeadChunks *o)
{
    const LsValue *w = o->in_update ? NULL : trained(g, h->w, DEEP),
                  *bias = ls_is(h->bias) ? trained(g, h->bias, DEEP) : NULL;
    if (!g->training || o->chunks < 2)
        return true;
    if (o->strict && (bias != NULL || (w != NULL && !h->blocks)))
        return refuse(cx, "the gradient of its weight or bias would have other bits");
    if (w != NULL && !h->blocks)
        ls_warn(cx, LS_NOWHERE,
                o->ends != NULL ? "fewer chunks, or more positions: chunks of a trained head end "
                                  "where blocks of some 256 positions do"
                                : NULL,
                "--head-chunks: '%s' is trained, and its gradient adds up by chunks: its bits "
                "depend on their number",
                w->name);
    if (bias != NULL)
        ls_warn(cx, LS_NOWHERE, NULL,
                "--head-chunks: '%s' is trained, and its gradient adds up by chunks: its bits "
                "depend on their number",
                bias->name);
    return true;
}

bool ls_head_chunks(LsCtx *cx, LsGraph *g, const LsHeadChunks *o)
{
    const int64_t chunks = o->chunks;
    Head h = {.rows = 0};
    if (chunks == 0)
        return true;
    if (!find(cx, g, &h))
        return false;
    if (chunks > h.rows)
        return refuse(cx, ls_arena_printf(cx->arena, "%" PRId64 " chunks of %" PRId64 " rows",
                                          chunks, h.rows));
    choose_ends(cx, g, o, &h);
    if (!warn_of_sum(cx, g, &h, o))
        return false;
    LsAttr at = g->node[h.loss.i].attr;
    const LsValueId weights = ls_in(g, h.loss, 2);
    at.loss.nclass = h.classes;
    at.loss.axis = 1;
    ls_graph_origin(g, (LsOrigin){LS_FORWARD, {0}, 0, "loss"});
    h.label = ls_reshape(cx, g, h.label, &(LsShape){1, {h.rows}});
    LsValueId *each = ls_arena_alloc(cx->arena, (size_t)chunks, sizeof *each);
    for (int64_t k = chunks - 1; k >= 0; k--) {
        const int64_t first = k > 0 ? h.end[k - 1] : 0;
        each[k] = chunk(cx, g, &h, first, h.end[k] - first);
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
