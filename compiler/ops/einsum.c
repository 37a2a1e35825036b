/* compiler/ops/einsum.c -- Einsum, operand after operand: diagonals become slices, labels that only
 * one factor has are summed, and two factors become a matrix product of [batch, left, sum] and
 * [batch, sum, right]; a pointwise one where nothing is summed, or where neither factor has labels
 * of its own. */
#include "compiler/ops/einsum_text.h"
#include "compiler/ops/index.h"

/* a value and the labels of its axes */
typedef struct Factor { LsValueId v; LsEinsumTerm t; } Factor;

static uint64_t bit(int label) { return UINT64_C(1) << label; }

static uint64_t labels_of(const LsEinsumTerm *t)
{
    uint64_t set = 0;
    for (int k = 0; k < t->n; k++)
        set |= bit(t->label[k]);
    return set;
}

/* Moves the axes into this order. */
static void reorder(LsOnnxNode *n, Factor *f, const LsEinsumTerm *to)
{
    int perm[LS_MAX_RANK] = {0};
    for (int k = 0; k < to->n; k++)
        for (int i = 0; i < f->t.n; i++)
            if (f->t.label[i] == to->label[k])
                perm[k] = i;
    if (ls_is(f->v))
        f->v = ls_transpose(n->cx, n->g, f->v, perm);
    f->t = *to;
}

/* Drops the axes of these labels, by a sum; by a reshape where they have length 1. */
static void drop(LsOnnxNode *n, Factor *f, uint64_t labels)
{
    LsShape to = {0};
    LsEinsumTerm left = {0};
    uint32_t axes = 0;
    if (!ls_is(f->v))
        return;
    const LsShape s = *ls_shape(n->g, f->v);
    for (int k = 0; k < s.rank; k++) {
        if (!(labels & bit(f->t.label[k]))) {
            left.label[left.n++] = f->t.label[k];
            to.dim[to.rank++] = s.dim[k];
        } else if (s.dim[k] != 1) {
            axes |= 1u << k;
        }
    }
    if (axes != 0)
        f->v = ls_append1(n->cx, n->g, LS_OP_REDUCE_SUM, f->v,
                          &(LsAttr){.reduce = {.axes = axes, .keep = true}});
    if (ls_is(f->v))
        f->v = ls_reshape(n->cx, n->g, f->v, &to);
    f->t = left;
}

/* Axes p < q have one label: they become one axis, every (length + 1)th element of both as one. */
static bool diagonal(LsOnnxNode *n, Factor *f, int p, int q)
{
    const LsShape s = *ls_shape(n->g, f->v);
    int perm[LS_MAX_RANK], count = 0;
    LsEinsumTerm to = {0};
    LsShape merged = {0};
    if (s.dim[p] != s.dim[q])
        return ls_onnx_error(n, LS_E_SHAPE, NULL,
                             "axis %c has lengths %" PRId64 " and %" PRId64 " in one operand",
                             ls_einsum_letter(f->t.label[p]), s.dim[p], s.dim[q]);
    for (int k = 0; k < s.rank; k++)
        if (k != p && k != q) {
            perm[count++] = k;
            to.label[to.n++] = f->t.label[k];
            merged.dim[merged.rank++] = s.dim[k];
        }
    perm[count] = p;
    perm[count + 1] = q;
    to.label[to.n++] = f->t.label[p];
    merged.dim[merged.rank++] = s.dim[p] * s.dim[q];
    LsAttr at = {0};
    for (int k = 0; k < merged.rank; k++) {
        at.slice.stop[k] = merged.dim[k];
        at.slice.step[k] = k == merged.rank - 1 ? s.dim[p] + 1 : 1;
    }
    f->v = ls_reshape(n->cx, n->g, ls_transpose(n->cx, n->g, f->v, perm), &merged);
    if (s.dim[p] > 1)
        f->v = ls_append1(n->cx, n->g, LS_OP_SLICE, f->v, &at);
    f->t = to;
    return ls_is(f->v);
}

static bool take(LsOnnxNode *n, const LsEinsum *e, int operand, Factor *f)
{
    *f = (Factor){n->in[operand], e->in[operand]};
    for (int q = 1; q < f->t.n; q++) {
        int p = 0;
        while (p < q && f->t.label[p] != f->t.label[q])
            p++;
        if (p == q)
            continue;
        if (!diagonal(n, f, p, q))
            return false;
        q = 0;                  /* from the start: the axes have moved */
    }
    return true;
}

/* ---- two factors ---- */
typedef struct Pair {           /* disjoint lists of labels, in the order that the product has
                                 * them */
    LsEinsumTerm batch, sum, left, right;
} Pair;

static void add(LsEinsumTerm *to, const LsEinsumTerm *from, uint64_t which)
{
    for (int k = 0; k < from->n; k++)
        if (which & bit(from->label[k]))
            to->label[to->n++] = from->label[k];
}

static LsEinsumTerm joined(const LsEinsumTerm *a, const LsEinsumTerm *b, const LsEinsumTerm *c)
{
    LsEinsumTerm all = *a;
    add(&all, b, UINT64_MAX);
    add(&all, c, UINT64_MAX);
    return all;
}

static int64_t length(const LsEinsum *e, const LsEinsumTerm *t)
{
    int64_t product = 1;
    for (int k = 0; k < t->n; k++)
        product *= e->dim[t->label[k]];
    return product;
}

static bool same(const LsEinsumTerm *a, const LsEinsumTerm *b)
{
    return a->n == b->n && memcmp(a->label, b->label, (size_t)a->n) == 0;
}

/* The factor as [batch, a, b], or as [batch, b, a] where it lies so already; *turned says which. */
static LsValueId matrix(LsOnnxNode *n, const LsEinsum *e, Factor *f, const LsEinsumTerm *batch,
                        const LsEinsumTerm *a, const LsEinsumTerm *b, bool *turned)
{
    const LsEinsumTerm straight = joined(batch, a, b), other = joined(batch, b, a);
    *turned = !same(&f->t, &straight) && same(&f->t, &other);
    if (!*turned)
        reorder(n, f, &straight);
    int64_t rows = length(e, *turned ? b : a), cols = length(e, *turned ? a : b);
    LsShape s = {3, {length(e, batch), rows, cols}};
    if (batch->n == 0)
        s = (LsShape){2, {rows, cols}};
    return ls_is(f->v) ? ls_reshape(n->cx, n->g, f->v, &s) : f->v;
}

static LsValueId matrix_product(LsOnnxNode *n, const LsEinsum *e, Factor *a, Factor *b,
                                const Pair *p)
{
    bool ta, tb;
    LsValueId x = matrix(n, e, a, &p->batch, &p->left, &p->sum, &ta);
    LsValueId y = matrix(n, e, b, &p->batch, &p->sum, &p->right, &tb);
    if (!ls_is(x) || !ls_is(y))
        return (LsValueId){0};
    return ls_append2(n->cx, n->g, LS_OP_MATMUL, x, y,
                      &(LsAttr){.gemm = {.trans_a = ta, .trans_b = tb, .alpha = 1}});
}

/* The factor with the axes batch, left, right and sum, each group as one; of length 1 where it has
 * no such label. */
static LsValueId spread(LsOnnxNode *n, const LsEinsum *e, Factor *f, const Pair *p, bool is_left)
{
    const LsEinsumTerm none = {0}, *own = is_left ? &p->left : &p->right;
    LsEinsumTerm order = joined(&p->batch, own, &p->sum);
    LsShape s = {4,
                 {length(e, &p->batch), length(e, is_left ? own : &none),
                  length(e, is_left ? &none : own), length(e, &p->sum)}};
    reorder(n, f, &order);
    return ls_is(f->v) ? ls_reshape(n->cx, n->g, f->v, &s) : f->v;
}

static LsValueId pointwise_product(LsOnnxNode *n, const LsEinsum *e, Factor *a, Factor *b,
                                   const Pair *p)
{
    LsValueId x = spread(n, e, a, p, true), y = spread(n, e, b, p, false);
    if (!ls_is(x) || !ls_is(y))
        return (LsValueId){0};
    LsValueId v = ls_append2(n->cx, n->g, LS_OP_MUL, x, y, NULL);
    return p->sum.n > 0 ? ls_append1(n->cx, n->g, LS_OP_REDUCE_SUM, v,
                                     &(LsAttr){.reduce = {.axes = 8, .keep = true}})
                        : v;
}

/* Labels of which one factor has length 1, the other more: only the latter keeps them. */
static void drop_ones(LsOnnxNode *n, const LsEinsum *e, Factor *f)
{
    uint64_t ones = 0;
    for (int k = 0; k < f->t.n && ls_is(f->v); k++)
        if (ls_shape(n->g, f->v)->dim[k] == 1 && e->dim[f->t.label[k]] != 1)
            ones |= bit(f->t.label[k]);
    drop(n, f, ones);
}

/* a becomes the product of both, with the labels in `keep` alone. */
static bool multiply(LsOnnxNode *n, const LsEinsum *e, Factor *a, Factor *b, uint64_t keep)
{
    drop_ones(n, e, a);
    drop_ones(n, e, b);
    uint64_t in_a = labels_of(&a->t), in_b = labels_of(&b->t), both = in_a & in_b;
    drop(n, a, in_a & ~both & ~keep);
    drop(n, b, in_b & ~both & ~keep);
    if (!ls_is(a->v) || !ls_is(b->v))
        return false;
    Pair p = {0};
    add(&p.batch, &a->t, both & keep);
    add(&p.sum, &a->t, both & ~keep);
    add(&p.left, &a->t, ~both);
    add(&p.right, &b->t, ~both);
    if (p.batch.n + p.left.n + p.right.n > LS_MAX_RANK)
        return ls_onnx_error(n, LS_E_UNSUPPORTED, NULL,
                             "a product on the way has more than %d axes", LS_MAX_RANK);
    bool pointwise = p.sum.n == 0 || (p.left.n == 0 && p.right.n == 0);
    a->v = (pointwise ? pointwise_product : matrix_product)(n, e, a, b, &p);
    a->t = joined(&p.batch, &p.left, &p.right);
    LsShape s = {.rank = a->t.n};
    for (int k = 0; k < s.rank; k++)
        s.dim[k] = e->dim[a->t.label[k]];
    if (ls_is(a->v))
        a->v = ls_reshape(n->cx, n->g, a->v, &s);
    return ls_is(a->v);
}

static bool einsum_build(LsOnnxNode *n, LsValueId out[])
{
    LsEinsum e;
    Factor all, next;
    if (!ls_onnx_takes(n, n->nin > 1 ? n->nin : 1, INT32_MAX))
        return false;
    for (int k = 0; k < n->nin; k++)
        if (!ls_onnx_takes_real(n, k))
            return false;
    if (!ls_einsum_read(n, &e) || !take(n, &e, 0, &all))
        return false;
    for (int k = 1; k < n->nin; k++) {
        uint64_t keep = labels_of(&e.out);
        for (int i = k + 1; i < n->nin; i++)
            keep |= labels_of(&e.in[i]);
        if (!take(n, &e, k, &next) || !multiply(n, &e, &all, &next, keep))
            return false;
    }
    drop(n, &all, labels_of(&all.t) & ~labels_of(&e.out));
    if (ls_is(all.v))
        reorder(n, &all, &e.out);
    out[0] = all.v;
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_einsum = {"Einsum", 12, einsum_build};
