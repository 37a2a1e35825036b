/* compiler/per_sample/follow_samples.c -- see the header.
 *
 * A reshape keeps a place, other nodes move it along with its axis. A value may have two places:
 * scores of all pairs of samples. Mixing is
 *   - a softmax, scan, normalisation or convolution along an axis with the only place;
 *   - a product whose inner axis has a place, if its result has one, too (attention over the
 * samples), or if the other factor has none (a weight for each sample). A reduction that takes away
 * a place is a statistic of the batch, and no mixing. */
#include "compiler/per_sample/follow_samples.h"

#include "base/arena.h"
#include "compiler/ir/graph.h"
#include "compiler/ir/op.h"
#include "compiler/ir/shape.h"

enum { GONE = -1, LOST = -2 };  /* instead of a result's axis: the place is taken away; cannot be
                                 * followed */

typedef LsPlaces Track;
typedef LsSamples Follow;

static const LsShape *out_shape(const LsGraph *g, LsNodeId n)
{
    return ls_shape(g, ls_out(g, n, 0));
}

/* ---- places and axes ---- */

static int64_t behind(const LsShape *s, int axis)
{
    int64_t n = 1;
    for (int k = axis + 1; k < s->rank; k++)
        n *= s->dim[k];
    return n;
}

int ls_sample_axis(const LsShape *s, int64_t inner, int64_t batch)
{
    for (int k = 0; k < s->rank; k++) {
        const int64_t least = behind(s, k), most = least * s->dim[k], all = inner * batch;
        if (least <= inner && all <= most && inner % least == 0 && most % all == 0)
            return k;
    }
    return -1;
}

static int axis_of(const Follow *f, const LsShape *s, int64_t inner)
{
    return ls_sample_axis(s, inner, f->length);
}

static bool along(const Follow *f, const Track *t, const LsShape *s, int axis)
{
    for (int i = 0; i < t->n; i++)
        if (axis_of(f, s, t->inner[i]) == axis)
            return true;
    return false;
}

static void add_place(Track *to, int64_t inner)
{
    for (int i = 0; i < to->n; i++)
        if (to->inner[i] == inner)
            return;
    if (to->n == LS_MOST_PLACES)
        to->lost = true;
    else
        to->inner[to->n++] = inner;
}

/* Adds to result `to` of node n the places of an operand x. map: by axis of x, the result's axis,
 * GONE or LOST; axes that change their length lose their place. */
static void carry(const Follow *f, LsNodeId n, LsValueId x, const int map[], Track *to,
                  const LsShape *y)
{
    const Track *from = &f->of[x.i];
    const LsShape *s = ls_shape(f->g, x);
    to->lost |= from->lost;
    to->sampled |= from->sampled;
    to->gone = from->gone.i > to->gone.i ? from->gone : to->gone;
    for (int i = 0; i < from->n; i++) {
        const int a = axis_of(f, s, from->inner[i]), b = a < 0 ? LOST : map[a];
        if (b == GONE)
            to->gone = n;
        else if (b == LOST || y->dim[b] != s->dim[a])
            to->lost = true;
        else
            add_place(to, from->inner[i] / behind(s, a) * behind(y, b));
    }
}

/* Axes of an operand of a broadcasting node. */
static void map_broadcast(const LsShape *x, const LsShape *y, int map[])
{
    for (int a = 0; a < x->rank; a++)
        map[a] = a + y->rank - x->rank;
}

/* Further results (statistics of rows, indices) have the places of result 0 along axes that both
 * have. */
static Track of_further(const Follow *f, const LsShape *y, const Track *first, const LsShape *s)
{
    Track t = {.sampled = true, .lost = first->lost || s->rank != y->rank};
    for (int i = 0; i < first->n && !t.lost; i++) {
        const int a = axis_of(f, y, first->inner[i]);
        if (a < 0 || s->dim[a] != y->dim[a])
            t.lost = true;
        else
            add_place(&t, first->inner[i] / behind(y, a) * behind(s, a));
    }
    return t;
}

static void set_results(Follow *f, LsNodeId n, Track t)
{
    const LsShape *y = out_shape(f->g, n);
    const bool positions = f->g->node[n.i].op == LS_OP_SEGMENTS;       /* as the numbers */
    for (int k = 0; k < f->g->node[n.i].nout; k++) {
        const LsValueId v = ls_out(f->g, n, k);
        f->of[v.i] = k == 0      ? t
                     : positions ? f->of[ls_in(f->g, n, 0).i]
                                 : of_further(f, y, &t, ls_shape(f->g, v));
    }
}

static void mix(Follow *f, LsNodeId n, Track *to)
{
    if (f->mixed.i == 0)
        f->mixed = n;
    to->lost = true;
}

/* ---- nodes that keep axes in place ---- */

/* Every operand broadcasts; axes in `reduced` (bits) are taken away. */
static Track of_pointwise(const Follow *f, LsNodeId n, uint32_t reduced)
{
    const LsGraph *g = f->g;
    const LsShape *y = out_shape(g, n);
    Track t = {0};
    for (int k = 0; k < g->node[n.i].nin; k++) {
        int map[LS_MAX_RANK] = {0};
        if (!ls_is(ls_in(g, n, k)))
            continue;
        const LsShape *x = ls_in_shape(g, n, k);
        map_broadcast(x, y, map);
        for (int a = 0; a < x->rank; a++)
            map[a] = map[a] < 0 || (reduced >> map[a] & 1) ? GONE : map[a];
        carry(f, n, ls_in(g, n, k), map, &t, y);
    }
    return t;
}

/* Operand 0 alone, whose places stay but those along the axes from..to, which the node combines. */
static Track of_rows(Follow *f, LsNodeId n, int from, int to)
{
    const LsGraph *g = f->g;
    const Track *x = &f->of[ls_in(g, n, 0).i];
    const LsShape *s = ls_in_shape(g, n, 0);
    int map[LS_MAX_RANK] = {0};
    bool combined = false;
    for (int a = 0; a < s->rank; a++) {
        map[a] = a;
        combined |= a >= from && a <= to && along(f, x, s, a);
    }
    Track t = {0};
    carry(f, n, ls_in(g, n, 0), map, &t, out_shape(g, n));
    if (combined && x->n == 1 && !x->lost)
        mix(f, n, &t);
    return t;
}

/* Carries a place along axis a of operand x, whose elements from `start` on, `length` of them, lie
 * in the result on the same axis; whole batches keep the place. Sets map[a] so that `carry` is
 * right for the other places. */
static void carry_part(const Follow *f, LsValueId x, int a, int64_t start, int64_t length,
                       int map[], Track *to, const LsShape *y)
{
    const Track *from = &f->of[x.i];
    const LsShape *s = ls_shape(f->g, x);
    if (from->n != 1 || axis_of(f, s, from->inner[0]) != a)
        return;
    const int64_t all = from->inner[0] / behind(s, a) * f->length;
    if (start % all != 0 || length % all != 0)
        return;
    map[a] = GONE;
    add_place(to, from->inner[0] / behind(s, a) * behind(y, a));
}

/* The result's places are the operands' where the axis has the same length, or consists of whole
 * batches. */
static Track of_copies(const Follow *f, LsNodeId n)
{
    const LsGraph *g = f->g;
    const LsShape *y = out_shape(g, n);
    Track t = {0};
    int64_t start = 0;
    for (int k = 0; k < g->node[n.i].nin; k++) {
        const LsValueId x = ls_in(g, n, k);
        const int axis = g->node[n.i].op == LS_OP_CONCAT ? g->node[n.i].attr.axis.axis : -1;
        int map[LS_MAX_RANK] = {0};
        if (!ls_is(x))
            continue;
        for (int a = 0; a < LS_MAX_RANK; a++)
            map[a] = a;
        if (axis >= 0) {
            carry_part(f, x, axis, start, ls_shape(g, x)->dim[axis], map, &t, y);
            start += ls_shape(g, x)->dim[axis];
        }
        carry(f, n, x, map, &t, y);
    }
    return t;
}

/* A slice of one sample takes the place away; the order along an axis must stay. */
static Track of_slice(const Follow *f, LsNodeId n)
{
    const LsGraph *g = f->g;
    const LsSliceAttr *at = &g->node[n.i].attr.slice;
    const LsShape *x = ls_in_shape(g, n, 0), *y = out_shape(g, n);
    int map[LS_MAX_RANK] = {0};
    for (int a = 0; a < x->rank; a++)
        map[a] = x->dim[a] == y->dim[a] ? (at->step[a] == 1 ? a : LOST)
            : y->dim[a] == 1 && x->dim[a] == f->length ? GONE : LOST;
    Track t = {0};
    for (int a = 0; a < x->rank; a++)
        if (map[a] == LOST && at->step[a] == 1)
            carry_part(f, ls_in(g, n, 0), a, at->start[a], y->dim[a], map, &t, y);
    carry(f, n, ls_in(g, n, 0), map, &t, y);
    return t;
}

static Track of_transpose(const Follow *f, LsNodeId n)
{
    const LsGraph *g = f->g;
    int map[LS_MAX_RANK] = {0};
    for (int k = 0; k < out_shape(g, n)->rank; k++)
        map[g->node[n.i].attr.perm.perm[k]] = k;
    Track t = {0};
    carry(f, n, ls_in(g, n, 0), map, &t, out_shape(g, n));
    return t;
}

static Track of_view(const Follow *f, LsNodeId n)
{
    Track t = f->of[ls_in(f->g, n, 0).i];
    for (int i = 0; i < t.n; i++)
        t.lost |= axis_of(f, out_shape(f->g, n), t.inner[i]) < 0;
    return t;
}

/* ---- nodes that read by index ---- */

/* Samples that the indices choose: a single one, or those of an input that has no samples itself,
 * such as the edges of a graph, are taken away. Other indices may be a permutation, or choose
 * within samples. */
static int chosen(const Follow *f, LsValueId index)
{
    const Track *t = &f->of[index.i];
    const bool known = ls_is_const(f->g, index), fixed = !t->lost && !t->sampled && t->n == 0;
    return (known && ls_count(ls_shape(f->g, index)) == 1) || (fixed && !known) ? GONE : LOST;
}

static Track of_gather(const Follow *f, LsNodeId n)
{
    const LsGraph *g = f->g;
    const LsShape *y = out_shape(g, n);
    const int axis = g->node[n.i].attr.gather.axis, more = ls_in_shape(g, n, 1)->rank;
    int data[LS_MAX_RANK], index[LS_MAX_RANK];
    for (int a = 0; a < LS_MAX_RANK; a++) {
        data[a] = a < axis ? a : a == axis ? chosen(f, ls_in(g, n, 1)) : a - 1 + more;
        index[a] = axis + a;
    }
    Track t = {0};
    carry(f, n, ls_in(g, n, 0), data, &t, y);
    carry(f, n, ls_in(g, n, 1), index, &t, y);
    return t;
}

/* Indices along the axis in each row: all operands have the result's axes but this one. */
static Track of_each(const Follow *f, LsNodeId n)
{
    const LsGraph *g = f->g;
    Track t = {0};
    int map[LS_MAX_RANK] = {0};
    for (int a = 0; a < LS_MAX_RANK; a++)
        map[a] = a == g->node[n.i].attr.gather.axis ? LOST : a;
    for (int k = 0; k < g->node[n.i].nin; k++)
        if (ls_is(ls_in(g, n, k)) && ls_in_shape(g, n, k)->rank > 0)
            carry(f, n, ls_in(g, n, k), map, &t, out_shape(g, n));
    return t;
}

/* Updates, indices, base: followed where neither updates nor indices have a place. */
static Track of_scatter(const Follow *f, LsNodeId n)
{
    const LsGraph *g = f->g;
    const LsShape *y = out_shape(g, n);
    Track t = {0};
    int map[LS_MAX_RANK] = {0};
    for (int a = 0; a < LS_MAX_RANK; a++)
        map[a] = a == g->node[n.i].attr.gather.axis ? LOST : a;
    for (int k = 0; k < g->node[n.i].nin; k++) {
        if (!ls_is(ls_in(g, n, k)))
            continue;
        t.lost |= k < 2 && f->of[ls_in(g, n, k).i].n > 0;
        carry(f, n, ls_in(g, n, k), map, &t, y);
    }
    return t;
}

/* ---- products, convolutions, attention ---- */

static Track of_product(Follow *f, LsNodeId n)
{
    const LsGraph *g = f->g;
    const LsGemmAttr *at = &g->node[n.i].attr.gemm;
    const LsShape *y = out_shape(g, n);
    Track t = {0};
    bool inner[2];
    int64_t outer[2];
    for (int k = 0; k < 2; k++) {
        const LsShape *x = ls_in_shape(g, n, k);
        /* the inner axis is the last but one */
        const bool turned = k == 0 ? at->trans_a : !at->trans_b;
        const int in = x->rank - (turned ? 2 : 1), out = x->rank - (turned ? 1 : 2);
        int map[LS_MAX_RANK] = {0};
        map_broadcast(x, y, map);
        map[in] = GONE;
        map[out] = y->rank - (k == 0 ? 2 : 1);
        inner[k] = along(f, &f->of[ls_in(g, n, k).i], x, in);
        outer[k] = x->dim[out];
        carry(f, n, ls_in(g, n, k), map, &t, y);
    }
    const bool attends = inner[0] && inner[1] && t.n > 0;
    /* A gradient over rows that do not depend on samples, but belong to them: a sum over samples,
     * as of any weight. */
    const bool sums = g->node[n.i].phase == LS_BACKWARD && t.n == 0;
    const bool weighs = inner[0] != inner[1] && outer[inner[0] ? 1 : 0] > 1 && !sums;
    if (!t.lost && (attends || weighs))
        mix(f, n, &t);
    return t;
}

static Track of_conv(Follow *f, LsNodeId n)
{
    const LsGraph *g = f->g;
    const LsWindowAttr *at = &g->node[n.i].attr.window;
    const Track *x = &f->of[ls_in(g, n, 0).i];
    const LsShape *s = ls_in_shape(g, n, 0);
    bool combined = at->group == 1 && along(f, x, s, 1);
    int map[LS_MAX_RANK] = {0, LOST};
    for (int d = 0; d < at->n; d++) {
        map[2 + d] = at->kernel[d] == 1 && at->stride[d] == 1 ? 2 + d : LOST;
        combined |= at->kernel[d] > 1 && along(f, x, s, 2 + d);
    }
    Track t = {0};
    carry(f, n, ls_in(g, n, 0), map, &t, out_shape(g, n));
    t.lost |= f->of[ls_in(g, n, 1).i].sampled || f->of[ls_in(g, n, 1).i].lost;
    if (combined && x->n == 1 && !x->lost)
        mix(f, n, &t);
    return t;
}

static Track of_pool(const Follow *f, LsNodeId n)
{
    const LsGraph *g = f->g;
    const LsWindowAttr *at = &g->node[n.i].attr.window;
    int map[LS_MAX_RANK] = {0, 1};
    for (int d = 0; d < at->n; d++)
        map[2 + d] = at->kernel[d] == 1 ? 2 + d : LOST;
    Track t = {0};
    carry(f, n, ls_in(g, n, 0), map, &t, out_shape(g, n));
    return t;
}

/* q, k, v: [N,H,T,D], or [N,T,H,D] where the bit in by_token is set. Keys of all samples mix
 * them. */
static Track of_attention(Follow *f, LsNodeId n)
{
    const LsGraph *g = f->g;
    const unsigned by_token = g->node[n.i].attr.attention.by_token;
    const LsShape *y = out_shape(g, n);
    const bool y_by_token = (by_token & LS_Y_BY_TOKEN) != 0;
    Track t = {0};
    bool combined = false;
    for (int k = 0; k < 3; k++) {
        const bool token_first = (by_token >> k & 1) != 0;
        const int token = token_first ? 1 : 2, head = token_first ? 2 : 1;
        int map[LS_MAX_RANK] = {0};
        map[head] = y_by_token ? 2 : 1;
        map[token] = k > 0 ? GONE : y_by_token ? 1 : 2;
        map[3] = k == 2 ? 3 : GONE;
        combined |= k > 0 && along(f, &f->of[ls_in(g, n, k).i], ls_in_shape(g, n, k), token);
        carry(f, n, ls_in(g, n, k), map, &t, y);
    }
    if (combined && !t.lost && !f->attends)
        mix(f, n, &t);
    return t;
}

/* Rows of q, k and v, [N,T,..], whose tokens stay in their places. */
static Track of_joint(const Follow *f, LsNodeId n)
{
    const bool by_token = (f->g->node[n.i].attr.attention.by_token & LS_Y_BY_TOKEN) != 0;
    Track t = {0};
    carry(f, n, ls_in(f->g, n, 0), (int[LS_MAX_RANK]){0, by_token ? 1 : 2, LOST}, &t,
          out_shape(f->g, n));
    return t;
}

/* Losses of the whole batch take the samples away; losses of each position have the places of the
 * labels. */
static Track of_loss(const Follow *f, LsNodeId n)
{
    const LsLossAttr *at = &f->g->node[n.i].attr.loss;
    const LsShape *y = out_shape(f->g, n);
    Track t = {.sampled = true, .gone = n};
    int map[LS_MAX_RANK] = {0};
    for (int a = 0; a < LS_MAX_RANK; a++)
        map[a] = a == at->axis ? GONE : a - (a > at->axis);
    if (y->rank > 0)
        carry(f, n, ls_in(f->g, n, 0), map, &t, y);
    return t;
}

/* ---- the walk ---- */

static Track of_other(const Follow *f, LsNodeId n)
{
    Track t = {0};
    for (int k = 0; k < f->g->node[n.i].nin; k++) {
        const Track *x = &f->of[ls_in(f->g, n, k).i];
        t.sampled |= x->sampled;
        t.lost |= x->lost || x->sampled;
    }
    return t;
}

static Track of_node(Follow *f, LsNodeId n)
{
    const LsNode *node = &f->g->node[n.i];
    const int last = LS_MAX_RANK - 1;
    switch (node->op) {
    case LS_OP_TRANSPOSE: return of_transpose(f, n);
    case LS_OP_SLICE: return of_slice(f, n);
    case LS_OP_PAD: case LS_OP_CONCAT: case LS_OP_TILE: case LS_OP_RESIZE: return of_copies(f, n);
    case LS_OP_GATHER: return of_gather(f, n);
    case LS_OP_GATHER_EACH: case LS_OP_SCATTER_EACH: return of_each(f, n);
    case LS_OP_SCATTER: return of_scatter(f, n);
    case LS_OP_CUM_SUM:
    case LS_OP_CUM_PROD: return of_rows(f, n, node->attr.scan.axis, node->attr.scan.axis);
    case LS_OP_SOFTMAX:
    case LS_OP_LOG_SOFTMAX: return of_rows(f, n, node->attr.axis.axis, node->attr.axis.axis);
    case LS_OP_LAYER_NORM: return of_rows(f, n, node->attr.norm.axis, last);
    case LS_OP_ATTENTION_JOINT:
        return f->attends ? of_joint(f, n) : of_rows(f, n, 1, last);
    case LS_OP_SEGMENTS: return of_rows(f, n, 1, 1);
    case LS_OP_MATMUL: return of_product(f, n);
    case LS_OP_CONV: case LS_OP_CONV_DX: return of_conv(f, n);
    case LS_OP_MAX_POOL: case LS_OP_AVERAGE_POOL: return of_pool(f, n);
    case LS_OP_ATTENTION: return of_attention(f, n);
    case LS_OP_XENT: case LS_OP_NLL: case LS_OP_REGRESSION_LOSS: return of_loss(f, n);
    default: break;
    }
    switch (ls_op[node->op]->kernel) {
    case LS_K_VIEW: return of_view(f, n);
    case LS_K_MAP: return of_pointwise(f, n, 0);
    case LS_K_REDUCE: return of_pointwise(f, n, node->attr.reduce.axes);
    default: return of_other(f, n);
    }
}

/* A gradient that its node does not show to have samples has the places of the value that it
 * belongs to. */
static void set_gradients(Follow *f, LsNodeId n, const LsValueId *gradient_of)
{
    for (int k = 0; k < f->g->node[n.i].nout; k++) {
        const LsValueId v = ls_out(f->g, n, k), x = gradient_of[v.i];
        if (!ls_is(x) || (!f->of[v.i].lost && f->of[v.i].n > 0))
            continue;
        f->of[v.i] = f->of[x.i];
        f->of[v.i].sampled = true;
    }
}

static void walk(Follow *f, const bool *need, const LsValueId *gradient_of)
{
    const LsGraph *g = f->g;
    for (uint32_t i = 1; i < g->nnode; i++) {
        const LsNodeId n = {i};
        if (g->node[i].nout == 0 || (need != NULL && !need[i]))
            continue;
        set_results(f, n, of_node(f, n));
        if (gradient_of != NULL)
            set_gradients(f, n, gradient_of);
    }
}

static Follow follow_new(LsCtx *cx, const LsGraph *g, int64_t length)
{
    return (Follow){.g = g,
                    .length = length,
                    .of = ls_arena_alloc(cx->arena, g->nvalue + 1, sizeof(Track))};
}

LsSamples ls_follow_samples(LsCtx *cx, const LsGraph *g, const bool *need,
                            const LsValueId *gradient_of)
{
    Follow f = follow_new(cx, g, g->batch);
    for (uint32_t i = 0; i < g->ninput; i++) {
        const LsShape *s = ls_shape(g, g->input[i]);
        const bool fits = s->rank > 0 && s->dim[0] % g->batch == 0;
        f.of[g->input[i].i] =
            fits ? (Track){.sampled = true, .n = 1, .inner = {ls_count(s) / g->batch}} : (Track){0};
    }
    walk(&f, need, gradient_of);
    return f;
}

LsSamples ls_follow_tokens(LsCtx *cx, const LsGraph *g, const bool *need, int64_t tokens)
{
    Follow f = follow_new(cx, g, tokens);
    f.attends = true;
    for (uint32_t i = 0; i < g->ninput; i++) {
        const LsShape *s = ls_shape(g, g->input[i]);
        const bool fits = s->rank > 1 && s->dim[1] == tokens;
        f.of[g->input[i].i] =
            fits ? (Track){.sampled = true, .n = 1, .inner = {ls_count(s) / s->dim[0] / tokens}}
                 : (Track){.sampled = true, .lost = true};
    }
    walk(&f, need, NULL);
    return f;
}
