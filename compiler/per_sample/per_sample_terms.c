/* compiler/per_sample/per_sample_terms.c -- the terms of sums over samples.
 *
 * A gradient of a parameter is a sum over the samples. Some node of the backward part added it up:
 * a product or a convolution's weight gradient with the samples on its inner axis, a reduction
 * along them, a scatter. The same node, with the samples on an axis in front, gives the terms;
 * nodes behind it are linear and get that axis, too. */
#include "compiler/fold/append.h"
#include "compiler/per_sample/per_sample.h"

#include <string.h>

LsSampleRole ls_sample_role(const LsPerSample *p, LsValueId v)
{
    return ls_role_of(&p->samples, v);
}

LsValueId ls_refuse_node(const LsPerSample *p, LsNodeId n)
{
    ls_error(p->cx, ls_where(p->g, n), LS_E_UNSUPPORTED,
             "replace the operator, or freeze the parameters that it has "
             "(--freeze)",
             "%s: gradients of single samples cannot be told apart here",
             ls_op[p->g->node[n.i].op]->name);
    return (LsValueId){0};
}

/* [batch, shape of s] */
static LsShape with_batch(const LsPerSample *p, const LsShape *s)
{
    LsShape to = {.rank = s->rank + 1, .dim = {p->g->batch}};
    for (int k = 0; k < s->rank && k + 1 < LS_MAX_RANK; k++)
        to.dim[k + 1] = s->dim[k];
    return to;
}

/* v [batch, ...] with axes of 1 behind the first, so that it has `rank` axes and the first. */
static LsValueId lifted(const LsPerSample *p, LsValueId v, int rank)
{
    LsShape s = *ls_shape(p->g, v);
    const int more = rank + 1 - s.rank;
    if (more <= 0)
        return v;
    memmove(&s.dim[1 + more], &s.dim[1], (size_t)(s.rank - 1) * sizeof *s.dim);
    for (int k = 0; k < more; k++)
        s.dim[1 + k] = 1;
    s.rank += more;
    return ls_reshape(p->cx, p->g, v, &s);
}

/* The elements of a value with such a place, with the samples in front. The axis is [outer, batch,
 * inner]. */
static LsValueId samples_first(const LsPerSample *p, LsValueId v, int64_t place)
{
    const LsShape s = *ls_shape(p->g, v);
    const int64_t batch = p->g->batch;
    const int axis = ls_sample_axis(&s, place, batch);
    if (axis < 0 || s.rank + 2 > LS_MAX_RANK)
        return ls_refuse_node(p, p->g->value[v.i].def);
    int64_t behind = 1;
    for (int k = axis + 1; k < s.rank; k++)
        behind *= s.dim[k];
    const int64_t inner = place / behind, outer = s.dim[axis] / inner / batch;
    LsShape apart = {.rank = s.rank + 2}, to = with_batch(p, &s);
    int perm[LS_MAX_RANK] = {axis + 1};
    for (int k = 0; k < apart.rank; k++)
        apart.dim[k] = k < axis        ? s.dim[k]
                       : k == axis     ? outer
                       : k == axis + 1 ? batch
                       : k == axis + 2 ? inner
                                       : s.dim[k - 2];
    for (int k = 0; k < axis + 1; k++)
        perm[1 + k] = k;
    for (int k = axis + 2; k < apart.rank; k++)
        perm[k] = k;
    to.dim[1 + axis] = outer * inner;
    bool moves = false;                         /* only axes of 1 are in front */
    for (int k = 0; k <= axis; k++)
        moves |= apart.dim[k] > 1;
    if (moves)
        v = ls_transpose(p->cx, p->g, ls_reshape(p->cx, p->g, v, &apart), perm);
    return ls_reshape(p->cx, p->g, v, &to);
}

static int64_t behind(const LsShape *s, int axis)
{
    int64_t n = 1;
    for (int k = axis + 1; k < s->rank; k++)
        n *= s->dim[k];
    return n;
}

/* The place in operand k, which does not depend on samples but has elements for each of them, as a
 * constant state of a batch has: that of the operand with which node n adds it up. 0: it has
 * none. */
static int64_t place_beside(const LsPerSample *p, LsNodeId n, int k)
{
    const LsGraph *g = p->g;
    const LsNode *node = &g->node[n.i];
    const bool product = node->op == LS_OP_MATMUL;
    const int of = product ? 1 - k : 0;
    const LsValueId v = ls_in(g, n, of);
    if (k == of || !ls_is(ls_in(g, n, k)) || ls_sample_role(p, v) != LS_PLACED
        || (!product && ls_op[node->op]->kernel != LS_K_REDUCE))
        return 0;
    const LsShape *s = ls_shape(g, v), *x = ls_in_shape(g, n, k);
    const int64_t place = p->samples.of[v.i].inner[0];
    const int axis = ls_sample_axis(s, place, g->batch);
    const bool turned[2] = {node->attr.gemm.trans_a, !node->attr.gemm.trans_b};
    const bool adds = product ? axis == s->rank - (turned[of] ? 2 : 1)
                              : (node->attr.reduce.axes >> (axis < 0 ? 0 : axis) & 1) != 0;
    const int at = product ? x->rank - (turned[k] ? 2 : 1) : axis + x->rank - s->rank;
    return axis < 0 || !adds || at < 0 || x->dim[at] != s->dim[axis]
               ? 0
               : place / behind(s, axis) * behind(x, at);
}

/* v, but what is computed of it alone is no constant: constants of the graph are floats, in
 * programs in f64, too. */
static LsValueId unfolded(const LsPerSample *p, LsValueId v)
{
    if (!ls_is_const(p->g, v))
        return v;
    const LsShape s = *ls_shape(p->g, v);
    const LsNodeId n = ls_append_bare(p->g, LS_OP_DETACH, 1, &v, 1, NULL);
    ls_set_out(p->g, n, 0, ls_type(p->g, v), &s);
    return ls_out(p->g, n, 0);
}

LsValueId ls_each_operand(LsPerSample *p, LsNodeId n, int k)
{
    const LsValueId v = ls_in(p->g, n, k);
    const int64_t place = ls_sample_role(p, v) == LS_FREE_OF_SAMPLES ? place_beside(p, n, k) : 0;
    return place > 0                                    ? samples_first(p, unfolded(p, v), place)
           : ls_sample_role(p, v) == LS_FREE_OF_SAMPLES ? (LsValueId){0}
                                                        : ls_each(p, v);
}

/* ---- nodes behind the sum: linear ---- */

static LsShape shape_of_result(const LsPerSample *p, LsNodeId n)
{
    return *ls_shape(p->g, ls_out(p->g, n, 0));
}

/* The node over the terms of its operands, and over what others have for each sample; the rest
 * stays as it is. */
static LsValueId over_terms(LsPerSample *p, LsNodeId n, const LsAttr *at, int rank)
{
    const LsNode node = p->g->node[n.i];
    LsValueId *in = ls_arena_alloc(p->cx->arena, node.nin, sizeof *in);
    for (int k = 0; k < node.nin; k++) {
        in[k] = ls_in(p->g, n, k);
        const bool free = ls_sample_role(p, in[k]) == LS_FREE_OF_SAMPLES;
        if (free && place_beside(p, n, k) == 0)
            continue;
        in[k] = ls_each_operand(p, n, k);
        if (!ls_is(in[k]))
            return in[k];
        in[k] = lifted(p, in[k], rank);
    }
    return ls_append(p->cx, p->g, node.op, node.nin, in, at);
}

/* Whether a pointwise node is linear in what depends on samples. */
static bool is_linear_map(const LsPerSample *p, LsNodeId n)
{
    const LsGraph *g = p->g;
    const bool first = ls_sample_role(p, ls_in(g, n, 0)) == LS_SUMMED;
    const bool second = ls_sample_role(p, ls_in(g, n, 1)) == LS_SUMMED;
    switch (g->node[n.i].op) {
    case LS_OP_ADD: case LS_OP_SUB: return first && second;
    case LS_OP_MUL: return first != second;
    case LS_OP_DIV: return first && !second;
    case LS_OP_NEG: case LS_OP_EXPAND: return first;
    default: return false;
    }
}

/* A product of two matrices with the samples on its inner axis, one of which need not depend on
 * them, or with one factor that is a sum over samples. */
static bool is_linear_product(const LsPerSample *p, LsNodeId n)
{
    const LsGraph *g = p->g;
    const LsSampleRole a = ls_sample_role(p, ls_in(g, n, 0)), b = ls_sample_role(p, ls_in(g, n, 1));
    const bool placed = (a == LS_PLACED && b == LS_PLACED)
                        || (a == LS_PLACED && b == LS_FREE_OF_SAMPLES && place_beside(p, n, 1) > 0)
                        || (b == LS_PLACED && a == LS_FREE_OF_SAMPLES && place_beside(p, n, 0) > 0);
    const bool adds = placed && ls_in_shape(g, n, 0)->rank == 2 && ls_in_shape(g, n, 1)->rank == 2;
    const bool behind =
        (a == LS_SUMMED && b == LS_FREE_OF_SAMPLES) || (b == LS_SUMMED && a == LS_FREE_OF_SAMPLES);
    return (adds || behind) && !ls_is(ls_in(g, n, 2));
}

/* The images may also be constants, one for each image of the gradient. */
static bool samples_are_images(const LsPerSample *p, LsNodeId n)
{
    bool are = ls_sample_role(p, ls_in(p->g, n, 0)) == LS_PLACED;
    for (int k = 0; k < 2; k++) {
        const LsValueId v = ls_in(p->g, n, k);
        const LsSampleRole role = ls_sample_role(p, v);
        are = are
              && ((k == 1 && role == LS_FREE_OF_SAMPLES)
                  || (role == LS_PLACED
                      && ls_sample_axis(ls_shape(p->g, v), p->samples.of[v.i].inner[0], p->g->batch)
                             == 0));
    }
    return are;
}

/* A scatter of sums to places that do not depend on samples, or of samples, each to the rows that
 * it read. */
static bool is_linear_scatter(const LsPerSample *p, LsNodeId n)
{
    const LsGraph *g = p->g;
    const LsValueId dy = ls_in(g, n, 0), index = ls_in(g, n, 1);
    const LsShape *s = ls_shape(g, index);
    if (ls_is(ls_in(g, n, 2)) && ls_sample_role(p, ls_in(g, n, 2)) != LS_SUMMED)
        return false;
    if (ls_sample_role(p, dy) == LS_SUMMED)
        return ls_sample_role(p, index) == LS_FREE_OF_SAMPLES;
    return ls_sample_role(p, dy) == LS_PLACED && g->node[n.i].attr.gather.axis == 0 && s->rank > 0
           && s->dim[0] == g->batch
           && p->samples.of[dy.i].inner[0] * g->batch == ls_count(ls_shape(g, dy));
}

/* A reduction is linear in operand 0; its other operands belong to samples or do not depend on
 * them. */
static bool is_linear_reduction(const LsPerSample *p, LsNodeId n)
{
    const LsNode *node = &p->g->node[n.i];
    bool fits = node->op == LS_OP_REDUCE_SUM || node->op == LS_OP_REDUCE_MEAN
                || node->op == LS_OP_NORM_DOT || node->op == LS_OP_LAYER_NORM_DSCALE;
    for (int k = 0; k < node->nin; k++) {
        const LsSampleRole role = ls_sample_role(p, ls_in(p->g, n, k));
        fits = fits
               && (k == 0 ? role == LS_PLACED || role == LS_SUMMED
                          : role != LS_SUMMED && role != LS_NOT_FOLLOWED);
    }
    return fits;
}

static bool is_linear_move(const LsPerSample *p, LsNodeId n)
{
    const LsNode *node = &p->g->node[n.i];
    bool fits = node->op != LS_OP_PAD || node->attr.pad.value == 0;
    for (int k = 0; k < node->nin; k++)
        fits = fits && ls_sample_role(p, ls_in(p->g, n, k)) == LS_SUMMED;
    return fits;
}

bool ls_adds_linearly(const LsPerSample *p, LsNodeId n)
{
    const LsNode *node = &p->g->node[n.i];
    switch (node->op) {
    case LS_OP_MATMUL: return is_linear_product(p, n);
    case LS_OP_CONV_DW: return samples_are_images(p, n);
    case LS_OP_GATHER_GRAD: return is_linear_scatter(p, n);
    case LS_OP_RESHAPE:
    case LS_OP_TRANSPOSE:
    case LS_OP_SLICE:
    case LS_OP_SLICE_GRAD:
    case LS_OP_PAD:
    case LS_OP_CONCAT: return is_linear_move(p, n);
    default: break;
    }
    return ls_op[node->op]->kernel == LS_K_MAP ? is_linear_map(p, n)
        : ls_op[node->op]->kernel == LS_K_REDUCE && is_linear_reduction(p, n);
}

static LsValueId each_of_map(LsPerSample *p, LsNodeId n)
{
    LsAttr at = p->g->node[n.i].attr;
    const LsShape y = shape_of_result(p, n);
    if (p->g->node[n.i].op == LS_OP_EXPAND)
        at.shape.shape = with_batch(p, &y);
    return over_terms(p, n, &at, y.rank);
}

/* An axis in front of those that the attributes of a move speak of. */
static LsValueId each_of_move(LsPerSample *p, LsNodeId n)
{
    const LsNode node = p->g->node[n.i];
    const LsShape y = shape_of_result(p, n), x = *ls_in_shape(p->g, n, 0);
    LsAttr at = node.attr;
    switch (node.op) {
    case LS_OP_RESHAPE: at.shape.shape = with_batch(p, &y); break;
    case LS_OP_TRANSPOSE:
        at.perm.perm[0] = 0;
        for (int k = 0; k < y.rank; k++)
            at.perm.perm[k + 1] = node.attr.perm.perm[k] + 1;
        break;
    case LS_OP_SLICE: case LS_OP_SLICE_GRAD:
        for (int k = 0; k < x.rank; k++) {
            at.slice.start[k + 1] = node.attr.slice.start[k];
            at.slice.step[k + 1] = node.attr.slice.step[k];
            at.slice.stop[k + 1] = node.attr.slice.stop[k];
        }
        at.slice.start[0] = 0, at.slice.step[0] = 1, at.slice.stop[0] = p->g->batch;
        at.slice.x =
            node.op == LS_OP_SLICE_GRAD ? with_batch(p, &node.attr.slice.x) : node.attr.slice.x;
        break;
    case LS_OP_PAD:
        for (int k = 0; k < x.rank; k++)
            at.pad.lo[k + 1] = node.attr.pad.lo[k], at.pad.hi[k + 1] = node.attr.pad.hi[k];
        at.pad.lo[0] = at.pad.hi[0] = 0;
        break;
    default: at.axis.axis++; break;             /* CONCAT */
    }
    return over_terms(p, n, &at, 0);
}

/* ---- nodes that add up samples ---- */

/* A reduction that is linear in operand 0. */
static LsValueId each_of_reduction(LsPerSample *p, LsNodeId n)
{
    const LsOpCode op = (LsOpCode)p->g->node[n.i].op;
    const LsShape y = shape_of_result(p, n);
    LsAttr at = p->g->node[n.i].attr;
    const bool adds = ls_sample_role(p, ls_in(p->g, n, 0)) == LS_PLACED;
    at.reduce.axes <<= 1;
    LsValueId v = over_terms(p, n, &at, y.rank);
    if (!ls_is(v))
        return v;
    const LsShape to = with_batch(p, &y);
    v = ls_reshape(p->cx, p->g, v, &to);
    return adds && op == LS_OP_REDUCE_MEAN ? ls_scale(p->cx, p->g, v, 1.0 / (double)p->g->batch)
                                           : v;
}

/* The reduction keeps the samples on their axis if that is the first one and has no other elements:
 * no operand moves. */
static LsValueId each_of_first_axis(LsPerSample *p, LsNodeId n)
{
    const LsGraph *g = p->g;
    const LsNode node = g->node[n.i];
    const LsShape y = shape_of_result(p, n), to = with_batch(p, &y);
    LsAttr at = node.attr;
    at.reduce.axes &= ~1u;
    bool plain =
        node.op != LS_OP_REDUCE_MEAN && at.reduce.axes != 0 && (node.attr.reduce.axes & 1) != 0;
    for (int k = 0; plain && k < node.nin; k++) {
        const LsShape *x = ls_in_shape(g, n, k);
        const LsPlaces *t = &p->samples.of[ls_in(g, n, k).i];
        plain = ls_sample_role(p, ls_in(g, n, k)) == LS_FREE_OF_SAMPLES
                || (ls_sample_role(p, ls_in(g, n, k)) == LS_PLACED && x->rank == y.rank
                    && x->dim[0] == g->batch && t->inner[0] * g->batch == ls_count(x));
    }
    if (!plain)
        return each_of_reduction(p, n);
    LsValueId *in = ls_arena_alloc(p->cx->arena, node.nin, sizeof *in);
    for (int k = 0; k < node.nin; k++)
        in[k] = ls_in(g, n, k);
    return ls_reshape(p->cx, p->g, ls_append(p->cx, p->g, node.op, node.nin, in, &at), &to);
}

/* A convolution's weight gradient for every image: [images * filters, ..], then the sum over a
 * sample's images. */
static LsValueId each_of_weights(LsPerSample *p, LsNodeId n)
{
    LsGraph *g = p->g;
    const LsShape y = shape_of_result(p, n), dy = *ls_in_shape(g, n, 0);
    const int64_t images = dy.dim[0], batch = g->batch;
    LsAttr at = g->node[n.i].attr;
    const int64_t inner = p->samples.of[ls_in(g, n, 0).i].inner[0] / (ls_count(&dy) / images);
    at.window.each = true;
    LsValueId v = ls_append2(p->cx, g, LS_OP_CONV_DW, ls_in(g, n, 0), ls_in(g, n, 1), &at);
    const LsShape to = with_batch(p, &y);
    if (images > batch) {
        const LsShape apart = {4, {images / batch / inner, batch, inner, ls_count(&y)}};
        v = ls_reshape(p->cx, g, v, &apart);
        v = ls_append1(p->cx, g, LS_OP_REDUCE_SUM, v,
                       &(LsAttr){.reduce = {.axes = 1 | 4, .keep = true}});
    }
    return ls_reshape(p->cx, g, v, &to);
}

/* Places of a table for each sample: index + sample * rows. */
static LsValueId own_rows(LsPerSample *p, LsValueId index, int64_t rows)
{
    LsGraph *g = p->g;
    const LsType type = ls_type(g, index);
    LsShape s = {.rank = ls_shape(g, index)->rank, .dim = {g->batch}};
    for (int k = 1; k < s.rank; k++)
        s.dim[k] = 1;
    int64_t *first = ls_arena_alloc(p->cx->arena, (size_t)g->batch, sizeof *first);
    for (int64_t i = 0; i < g->batch; i++)
        first[i] = i * rows;
    LsValueId start = ls_const_add(p->cx, g, LS_I64, &s, first),
              zero = ls_const_int(p->cx, g, type, 0);
    if (type != LS_I64)
        start = ls_append1(p->cx, g, LS_OP_CAST, start, &(LsAttr){.cast = type});
    LsValueId below = ls_append2(p->cx, g, LS_OP_LESS, index, zero, NULL);
    LsValueId turned =
        ls_append2(p->cx, g, LS_OP_ADD, index, ls_const_int(p->cx, g, type, rows), NULL);
    index = ls_append3(p->cx, g, LS_OP_WHERE, below, turned, index, NULL);
    return ls_append2(p->cx, g, LS_OP_ADD, index, start, NULL);
}

/* The rows that a gather read: every sample scatters into a table of its own, all tables are one
 * behind the other. */
static LsValueId each_of_rows(LsPerSample *p, LsNodeId n)
{
    LsGraph *g = p->g;
    const LsShape y = shape_of_result(p, n), to = with_batch(p, &y);
    LsValueId dy = ls_in(g, n, 0), index = ls_in(g, n, 1);
    LsAttr at = g->node[n.i].attr;
    if (ls_sample_role(p, dy) == LS_SUMMED) {
        at.gather.axis++;
        at.gather.x = to;
        dy = ls_each(p, dy);
        return ls_is(dy) ? ls_append2(p->cx, g, LS_OP_GATHER_GRAD, dy, index, &at) : dy;
    }
    at.gather.x.dim[0] = g->batch * y.dim[0];
    LsValueId v = ls_append2(p->cx, g, LS_OP_GATHER_GRAD, dy, own_rows(p, index, y.dim[0]), &at);
    return ls_reshape(p->cx, g, v, &to);
}

/* The same, plus the terms of the sum that the scatter begins with. */
static LsValueId each_of_scatter(LsPerSample *p, LsNodeId n)
{
    const LsValueId base = ls_in(p->g, n, 2), first = ls_is(base) ? ls_each(p, base) : base;
    if (ls_is(base) && !ls_is(first))
        return first;
    const LsValueId v = each_of_rows(p, n);
    return ls_is(v) && ls_is(base) ? ls_append2(p->cx, p->g, LS_OP_ADD, first, v, NULL) : v;
}

/* ---- gradients whose elements belong to samples ---- */

/* Which elements of such a value are the sample's: bool [batch, 1, .., axis, 1, ..]. */
static LsValueId owner(const LsPerSample *p, const LsShape *s, int axis, int64_t inner)
{
    LsShape to = {.rank = s->rank + 1, .dim = {p->g->batch}};
    for (int k = 0; k < s->rank; k++)
        to.dim[k + 1] = k == axis ? s->dim[k] : 1;
    uint8_t *is = ls_arena_alloc(p->cx->arena, (size_t)ls_count(&to), sizeof *is);
    for (int64_t b = 0; b < p->g->batch; b++)
        for (int64_t i = 0; i < s->dim[axis]; i++)
            is[b * s->dim[axis] + i] = i / inner % p->g->batch == b;
    return ls_const_add(p->cx, p->g, LS_BOOL, &to, is);
}

bool ls_is_of_samples(const LsPerSample *p, LsValueId v)
{
    return p->g->batch > 1 && ls_sample_role(p, v) == LS_PLACED;
}

LsValueId ls_each_of_own(LsPerSample *p, LsValueId v)
{
    const LsShape s = *ls_shape(p->g, v);
    const int64_t place = p->samples.of[v.i].inner[0];
    const int axis = ls_sample_axis(&s, place, p->g->batch);
    if (axis < 0 || s.rank + 1 > LS_MAX_RANK)
        return ls_refuse_node(p, p->g->value[v.i].def);
    const LsValueId own = owner(p, &s, axis, place / behind(&s, axis));
    return ls_append3(p->cx, p->g, LS_OP_WHERE, own, v, ls_const_real(p->cx, p->g, 0), NULL);
}

/* ---- the walk ---- */

static LsValueId each_of_node(LsPerSample *p, LsNodeId n)
{
    const LsNode *node = &p->g->node[n.i];
    const LsAttr at = node->attr;
    if (!ls_adds_linearly(p, n))
        return ls_refuse_node(p, n);
    switch (node->op) {
    case LS_OP_MATMUL: return over_terms(p, n, &at, ls_shape(p->g, ls_out(p->g, n, 0))->rank);
    case LS_OP_CONV_DW: return each_of_weights(p, n);
    case LS_OP_GATHER_GRAD: return each_of_scatter(p, n);
    default: break;
    }
    switch (ls_op[node->op]->kernel) {
    case LS_K_MAP: return each_of_map(p, n);
    case LS_K_REDUCE: return each_of_first_axis(p, n);
    default: return each_of_move(p, n);
    }
}

LsValueId ls_each(LsPerSample *p, LsValueId v)
{
    const LsNodeId n = p->g->value[v.i].def;
    if (ls_is(p->each[v.i]))
        return p->each[v.i];
    if (p->g->batch == 1) {         /* nothing is summed over samples, and any axis of 1 could be
                                     * theirs */
        const LsShape to = with_batch(p, ls_shape(p->g, v));
        return p->each[v.i] = ls_reshape(p->cx, p->g, v, &to);
    }
    const LsSampleRole role = ls_sample_role(p, v);
    const bool sum = role == LS_SUMMED && n.i != 0 && p->g->node[n.i].nout == 1;
    if (role != LS_PLACED && !sum)
        return ls_refuse_node(p, n);
    return p->each[v.i] = role == LS_PLACED ? samples_first(p, v, p->samples.of[v.i].inner[0])
                                            : each_of_node(p, n);
}
