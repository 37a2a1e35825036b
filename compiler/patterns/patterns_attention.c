/* compiler/patterns/patterns_attention.c -- matches decomposed attention: a product of q and kT,
 * scaled before or after, perhaps masked, a softmax, a product with v.
 *
 * Transposes that only bring heads in front of tokens are dropped, as the kernel reads either
 * order. A constant mask that hides the future becomes the attribute `causal` and is not read. */
#include "compiler/patterns/patterns_attention.h"

#include "compiler/ops/attention_shape.h"
#include "compiler/ops/row.h"

#include <math.h>

/* Mask values at or below it count as minus infinity: files have -1e4, -1e9, the least float. */
static const double hidden = -1e4;

typedef struct Found {          /* the matched part between the softmax and the first product */
    LsAttentionAttr at;
    LsValueId mask;             /* none: no mask, or a causal one */
    LsValueId q, k;             /* as operands of the product; k_turned: [.., D, S] */
    bool k_turned;
} Found;

/* The shape extended in front by ones to four axes. */
static LsShape four(const LsShape *s)
{
    LsShape to = {4, {1, 1, 1, 1}};
    for (int k = 0; k < s->rank; k++)
        to.dim[4 - s->rank + k] = s->dim[k];
    return to;
}

/* ---- masks ---- */
static bool sees(const LsGraph *g, LsValueId mask, int64_t i, bool keep)
{
    if (ls_type(g, mask) == LS_BOOL)
        return (ls_const_at(g, mask, i) != 0) == keep;
    return ls_const_at(g, mask, i) == 0;
}

/* All readers of v only distinguish true from false: v gets no gradient. */
static bool decides(const LsGraph *g, LsValueId v)
{
    for (uint32_t i = 0; i < g->noutput; i++)
        if (g->output[i].i == v.i)
            return false;
    for (uint32_t i = 1; i < g->nnode; i++) {
        LsNodeId n = {i};
        for (int k = 0; k < g->node[i].nin; k++)
            if (ls_in(g, n, k).i == v.i && ls_type(g, ls_out(g, n, 0)) != LS_BOOL
                && (g->node[i].op != LS_OP_SLICE || !decides(g, ls_out(g, n, 0))))
                return false;
    }
    return true;
}

/* v as a constant of the new graph, if it follows from stored values without a gradient: exporters
 * compare a triangle of ones with 0. None: not known. */
static LsValueId known(const LsMatch *m, LsValueId v, int depth)
{
    const LsGraph *g = m->g;
    const LsValue *x = &g->value[v.i];
    LsRewrite *r = m->r;
    if (x->data != NULL && (x->kind == LS_V_CONST || (!x->once_written && decides(g, v))))
        return ls_const_add(r->cx, r->to, x->type, &x->shape, x->data);
    const LsNode *n = &g->node[x->def.i];
    LsValueId in[LS_MAX_IN];
    if (x->def.i == 0 || n->nout != 1 || n->nin > LS_MAX_IN || depth == 8)
        return (LsValueId){0};
    for (int k = 0; k < n->nin; k++) {
        in[k] = known(m, ls_in(g, x->def, k), depth + 1);
        if (!ls_is(in[k]))
            return (LsValueId){0};
    }
    LsValueId y = ls_append(r->cx, r->to, (LsOpCode)n->op, n->nin, in, &n->attr);
    return ls_is(y) && ls_is_const(r->to, y) ? y : (LsValueId){0};
}

/* The mask is known and hides exactly the columns behind the diagonal, which `past` columns
 * precede. */
static bool hides_future(const LsGraph *g, LsValueId mask, const LsShape *scores, bool keep,
                         int64_t *past)
{
    const LsValue *v = &g->value[mask.i];
    if (v->shape.rank > 4 || scores->rank > 4)
        return false;
    const LsShape s = four(&v->shape), all = four(scores);
    int64_t rows = all.dim[2], cols = all.dim[3];
    if (v->data == NULL || v->once_written || s.dim[0] * s.dim[1] != 1 || s.dim[2] != rows
        || s.dim[3] != cols)
        return false;
    *past = -1;
    while (*past + 1 < cols && sees(g, mask, *past + 1, keep))
        ++*past;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            bool seen = sees(g, mask, i * cols + j, keep);
            if (seen != (j <= i + *past)
                || (!seen && v->type == LS_REAL && ls_const_at(g, mask, i * cols + j) > hidden))
                return false;
        }
    return *past >= 0;
}

/* Absorbs the mask; scores are multiplied by at.scale afterwards. keep, fill: for masks of
 * bools. */
static bool take_mask(const LsMatch *m, Found *f, LsValueId mask, const LsShape *scores, bool keep,
                      double fill)
{
    const LsGraph *g = m->g;
    bool bools = ls_type(g, mask) == LS_BOOL;
    bool made = bools && g->value[mask.i].def.i != 0;
    LsValueId fixed = made ? known(m, mask, 0) : mask;
    int64_t past;
    if (!f->at.causal && (!bools || fill * f->at.scale <= hidden) && f->at.scale > 0 && ls_is(fixed)
        && hides_future(made ? m->r->to : g, fixed, scores, keep, &past)) {
        f->at.causal = true;
        f->at.past = past;
        return true;
    }
    LsShape all = *scores;
    if (ls_is(f->mask) || f->at.scale != 1 || ls_shape(g, mask)->rank > 4
        || !ls_shape_broadcast(&all, ls_shape(g, mask)) || !ls_shape_same(&all, scores)
        || (!bools && ls_is_trained(m->r->cx, g, mask)))
        return false;
    f->mask = mask;
    f->at.keep = keep;
    f->at.fill = fill;
    return true;
}

/* The scores to which node n applies a mask; none: n is no such node. */
static LsValueId masked(const LsMatch *m, Found *f, LsNodeId n, const LsShape *scores)
{
    const LsGraph *g = m->g;
    if (g->node[n.i].op == LS_OP_ADD)
        for (int k = 0; k < 2; k++) {
            LsValueId x = ls_in(g, n, k);
            LsOpCode op = (LsOpCode)g->node[g->value[x.i].def.i].op;
            if ((op == LS_OP_MATMUL || op == LS_OP_MUL || op == LS_OP_DIV || op == LS_OP_WHERE)
                && ls_shape_same(ls_shape(g, x), scores) && m->readers[x.i] == 1
                && take_mask(m, f, ls_in(g, n, 1 - k), scores, false, 0))
                return x;
        }
    if (g->node[n.i].op != LS_OP_WHERE)
        return (LsValueId){0};
    for (int k = 1; k <= 2; k++) {
        LsValueId x = ls_in(g, n, k), fill = ls_in(g, n, 3 - k);
        if (!ls_is_const(g, fill) || g->value[fill.i].data == NULL
            || ls_count(ls_shape(g, fill)) != 1 || m->readers[x.i] != 1
            || !ls_shape_same(ls_shape(g, x), scores))
            continue;
        return take_mask(m, f, ls_in(g, n, 0), scores, k == 1, ls_const_at(g, fill, 0))
                   ? x : (LsValueId){0};
    }
    return (LsValueId){0};
}

/* Walks back from the scores that the softmax reads to the product of q and k. */
static bool find_scores(const LsMatch *m, Found *f, LsValueId s)
{
    const LsGraph *g = m->g;
    const LsShape scores = *ls_shape(g, s);
    LsNodeId n;
    for (int step = 0; step < 4; step++) {
        LsProduct p;
        if (m->readers[s.i] != 1 || !ls_product(m, s, &p) || p.n != 1
            || m->readers[p.factor[0].i] != 1)
            return false;
        f->at.scale *= p.coef;
        s = p.factor[0];
        n = g->value[s.i].def;
        if (g->node[n.i].op == LS_OP_MATMUL || !ls_shape_same(ls_shape(g, s), &scores))
            break;
        s = masked(m, f, n, &scores);
        if (!ls_is(s))
            return false;
    }
    const LsGemmAttr *at = &g->node[n.i].attr.gemm;
    if (g->node[n.i].op != LS_OP_MATMUL || g->node[n.i].nin != 2 || at->trans_a)
        return false;
    f->at.scale *= at->alpha;
    f->q = ls_in(g, n, 0);
    f->k = ls_in(g, n, 1);
    f->k_turned = !at->trans_b;
    return true;
}

/* ---- operands ---- */
/* v without constant factors, which are moved to the scale. */
static LsValueId unscaled(const LsMatch *m, LsValueId v, double *scale)
{
    LsProduct p;
    if (!ls_product(m, v, &p) || p.n != 1 || !ls_shape_same(ls_shape(m->g, p.factor[0]),
                                                            ls_shape(m->g, v)))
        return v;
    *scale *= p.coef;
    return p.factor[0];
}

/* perm is the identity except for the exchange of the two axes from `axis` on. */
static bool exchanges(const int perm[], int rank, int axis)
{
    for (int k = 0; k < rank; k++)
        if (perm[k] != (k == axis ? axis + 1 : k == axis + 1 ? axis : k))
            return false;
    return axis >= 0;
}

static bool identity(const int perm[], int rank)
{
    for (int k = 0; k < rank; k++)
        if (perm[k] != k)
            return false;
    return true;
}

/* If v, [N,H,S,D], repeats each head of [N,G,S,D], as exporters write queries that share a key:
 * that tensor; else v. */
static LsValueId unrepeated(const LsMatch *m, LsValueId v)
{
    const LsGraph *g = m->g;
    const LsShape *y = ls_shape(g, v);
    LsNodeId join, expand, part;
    if (y->rank != 4 || !ls_made_by(m, v, LS_OP_RESHAPE, 0, &join)
        || !ls_made_by(m, ls_in(g, join, 0), LS_OP_EXPAND, 0, &expand)
        || !ls_made_by(m, ls_in(g, expand, 0), LS_OP_RESHAPE, 0, &part))
        return v;
    const LsShape *x = ls_in_shape(g, part, 0), *wide = ls_in_shape(g, join, 0);
    LsShape thin = {5, {x->dim[0], x->dim[1], 1, x->dim[2], x->dim[3]}};
    bool fits = x->rank == 4 && wide->rank == 5 && ls_shape_same(ls_in_shape(g, expand, 0), &thin)
        && wide->dim[1] == thin.dim[1] && y->dim[1] == wide->dim[1] * wide->dim[2]
        && y->dim[0] == x->dim[0] && y->dim[2] == x->dim[2] && y->dim[3] == x->dim[3];
    return fits ? ls_in(g, part, 0) : v;
}

/* If v is a transpose that exchanges heads and tokens: its operand; else v. */
static LsValueId unturned(const LsMatch *m, LsValueId v)
{
    LsNodeId n;
    int rank = ls_shape(m->g, v)->rank;
    return ls_made_by(m, v, LS_OP_TRANSPOSE, 0, &n)
                   && exchanges(m->g->node[n.i].attr.perm.perm, rank, rank - 2)
               ? ls_in(m->g, n, 0) : v;
}

/* A stack of matrices of up to four axes in the kernel's form; `turned`: with its last two axes
 * exchanged. by_token: the transpose that made it need not run. */
static LsValueId stack(const LsMatch *m, LsValueId v, bool turned, bool *by_token)
{
    LsGraph *to = m->r->to;
    int rank = ls_shape(m->g, v)->rank, e[LS_MAX_RANK];
    LsNodeId n;
    bool made = ls_made_by(m, v, LS_OP_TRANSPOSE, 0, &n);
    for (int k = 0; k < rank; k++) {
        int at = !turned || k < rank - 2 ? k : 2 * rank - 3 - k;
        e[k] = made ? m->g->node[n.i].attr.perm.perm[at] : at;
    }
    *by_token = made && exchanges(e, rank, rank - 3);
    if (*by_token || (made && identity(e, rank))) {
        v = ls_in(m->g, n, 0);
        LsShape s = four(ls_shape(m->g, v));
        return ls_reshape(m->r->cx, to, ls_image(m->r, v), &s);
    }
    LsShape s = four(ls_shape(m->g, v));
    LsValueId x = ls_reshape(m->r->cx, to, ls_image(m->r, v), &s);
    return turned ? ls_transpose(m->r->cx, to, x, (int[]){0, 1, 3, 2}) : x;
}

/* All three are stacks of as many matrices, without broadcast, and heads are not too deep. */
static bool stacked(const LsGraph *g, const Found *f, LsValueId v)
{
    const LsShape *q = ls_shape(g, f->q), *k = ls_shape(g, f->k), *w = ls_shape(g, v);
    if (q->rank > 4 || k->rank != q->rank || w->rank != q->rank)
        return false;
    for (int i = 0; i < q->rank - 2; i++)
        if (k->dim[i] != q->dim[i] || w->dim[i] != q->dim[i])
            return false;
    return q->dim[q->rank - 1] <= LS_DEEPEST_HEAD && w->dim[w->rank - 1] <= LS_DEEPEST_HEAD;
}

/* If v is a softmax whose NaN are replaced by 0, as exporters write that of rows in which the mask
 * hides everything, which the kernel makes 0: the softmax, with three readers; else v. */
static LsValueId unguarded(const LsMatch *m, LsValueId v)
{
    const LsGraph *g = m->g;
    LsNodeId where, no, same;
    if (!ls_made_by(m, v, LS_OP_WHERE, 1, &where)
        || !ls_made_by(m, ls_in(g, where, 0), LS_OP_NOT, 1, &no)
        || !ls_made_by(m, ls_in(g, no, 0), LS_OP_EQUAL, 1, &same))
        return v;
    const LsValueId s = ls_in(g, where, 2), zero = ls_in(g, where, 1);
    const bool guards = ls_in(g, same, 0).i == s.i && ls_in(g, same, 1).i == s.i
        && ls_is_const(g, zero) && g->value[zero.i].data != NULL
        && ls_count(ls_shape(g, zero)) == 1 && ls_const_at(g, zero, 0) == 0;
    return guards && m->readers[s.i] == 3 ? s : v;
}

LsValueId ls_match_attention(const LsMatch *m, LsNodeId root)
{
    const LsGraph *g = m->g;
    const LsGemmAttr *gemm = &g->node[root.i].attr.gemm;
    Found f = {.at = {.scale = 1}};
    LsNodeId softmax;
    const LsValueId weights = ls_in(g, root, 0), p = unguarded(m, weights);
    LsValueId v = ls_in(g, root, 1);
    if (gemm->trans_a || gemm->trans_b || gemm->alpha != 1 || g->node[root.i].nin != 2
        || !ls_made_by(m, p, LS_OP_SOFTMAX, p.i == weights.i ? 1 : 3, &softmax)
        || g->node[softmax.i].attr.axis.axis != ls_shape(g, p)->rank - 1
        || !find_scores(m, &f, ls_in(g, softmax, 0)))
        return (LsValueId){0};
    f.q = unscaled(m, f.q, &f.at.scale);
    f.k = unscaled(m, f.k, &f.at.scale);
    if (!stacked(g, &f, v))
        return (LsValueId){0};
    LsValueId straight = f.k_turned ? unturned(m, f.k) : f.k;
    LsValueId k = unrepeated(m, straight), w = unrepeated(m, v);
    bool known_k = !f.k_turned || straight.i != f.k.i;
    if (known_k && k.i != straight.i && ls_shape(g, k)->dim[1] == ls_shape(g, w)->dim[1]) {
        f.k = k;
        f.k_turned = false;
        v = w;
    }
    bool by_token[3];
    LsValueId in[4] = {stack(m, f.q, false, &by_token[0]), stack(m, f.k, f.k_turned, &by_token[1]),
                       stack(m, v, false, &by_token[2])};
    for (int k = 0; k < 3; k++)
        f.at.by_token |= by_token[k] ? 1u << k : 0;
    if (ls_is(f.mask)) {
        LsShape s = four(ls_shape(g, f.mask));
        in[3] = ls_reshape(m->r->cx, m->r->to, ls_image(m->r, f.mask), &s);
    }
    LsValueId y = ls_append(m->r->cx, m->r->to, LS_OP_ATTENTION, ls_is(f.mask) ? 4 : 3, in,
                            &(LsAttr){.attention = f.at});
    return ls_reshape(m->r->cx, m->r->to, y, ls_shape(g, ls_out(g, root, 0)));
}

/* A transpose of an attention's result that brings heads behind tokens again: if it is the only
 * reader, the kernel writes in that order. */
LsValueId ls_match_attention_turned(const LsMatch *m, LsNodeId root)
{
    LsGraph *to = m->r->to;
    LsValueId old = ls_in(m->g, root, 0);
    LsNodeId n = to->value[ls_image(m->r, old).i].def;
    int rank = ls_shape(m->g, old)->rank;
    if (to->node[n.i].op == LS_OP_RESHAPE && rank == 3)
        n = to->value[ls_in(to, n, 0).i].def;
    if (to->node[n.i].op != LS_OP_ATTENTION || rank < 3 || m->readers[old.i] != 1
        || !exchanges(m->g->node[root.i].attr.perm.perm, rank, rank - 3))
        return (LsValueId){0};
    LsAttr at = to->node[n.i].attr;
    LsValueId in[4] = {{0}};
    int nin = to->node[n.i].nin;
    for (int k = 0; k < nin; k++)
        in[k] = ls_in(to, n, k);
    if (at.attention.by_token & LS_Y_BY_TOKEN)
        return (LsValueId){0};
    at.attention.by_token |= LS_Y_BY_TOKEN;
    LsValueId y = ls_append(m->r->cx, to, LS_OP_ATTENTION, nin, in, &at);
    return ls_reshape(m->r->cx, to, y, ls_shape(m->g, ls_out(m->g, root, 0)));
}
