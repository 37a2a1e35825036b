/* compiler/fold/fold_map.c -- constant folding of pointwise operators and reductions, by
 * LsOp.eval(_int). */
#include "compiler/fold/fold_eval.h"

#include <math.h>
#include <string.h>

/* Integer operands are computed in integers; if one operand is real, all are computed in double. */
static bool in_integers(const LsFold *f)
{
    for (int k = 0; k < f->g->node[f->n.i].nin; k++)
        if (ls_type(f->g, ls_in(f->g, f->n, k)) == LS_REAL)
            return false;
    return true;
}

bool ls_fold_known(const LsFold *f)
{
    const LsOp *row = ls_op[f->g->node[f->n.i].op];
    switch (row->kernel) {
    case LS_K_MAP: case LS_K_REDUCE:
        return (in_integers(f) ? row->eval_int != NULL : row->eval != NULL)
            && f->g->node[f->n.i].nin <= LS_MAX_IN;
    case LS_K_MOVE: case LS_K_GATHER:
        switch (f->g->node[f->n.i].op) {
        case LS_OP_TRANSPOSE: case LS_OP_SLICE: case LS_OP_PAD: case LS_OP_TILE: case LS_OP_CONCAT:
        case LS_OP_GATHER: case LS_OP_GATHER_EACH: case LS_OP_SCATTER: case LS_OP_SCATTER_EACH:
            return true;
        default:
            return false;
        }
    case LS_K_SCAN: return f->g->node[f->n.i].op == LS_OP_CUM_SUM;
    default:
        return false;
    }
}

/* ---- elements ---- */
bool ls_fold_store_int(const LsFold *f, int64_t i, int64_t v)
{
    switch (f->type) {
    case LS_REAL: ((float *)f->data)[i] = (float)v; return true;
    case LS_I64:  ((int64_t *)f->data)[i] = v; return true;
    case LS_I32:  ((int32_t *)f->data)[i] = (int32_t)v; return v >= INT32_MIN && v <= INT32_MAX;
    default:      ((uint8_t *)f->data)[i] = v != 0; return true;
    }
}

static bool store_real(const LsFold *f, int64_t i, double v)
{
    if (f->type == LS_REAL) {
        ((float *)f->data)[i] = (float)v;
        return true;
    }
    return v >= -0x1p63 && v < 0x1p63 && ls_fold_store_int(f, i, (int64_t)v);   /* false for NaN */
}

/* ---- walks over a space, with one offset per operand ---- */
typedef struct Walk {
    LsShape space;
    int nin;
    int64_t at[LS_MAX_RANK];
    int64_t stride[LS_MAX_IN][LS_MAX_RANK], offset[LS_MAX_IN];
} Walk;

/* Strides of a row-major tensor aligned with the space, 0 where it is broadcast. */
static void walk_add(Walk *w, const LsShape *x)
{
    int skip = w->space.rank - x->rank;
    int64_t step = 1;
    for (int k = x->rank; k-- > 0;) {
        w->stride[w->nin][skip + k] = x->dim[k] == 1 ? 0 : step;
        step *= x->dim[k];
    }
    w->nin++;
}

static void walk_next(Walk *w)
{
    for (int k = w->space.rank; k-- > 0;) {
        bool carry = ++w->at[k] == w->space.dim[k];
        for (int i = 0; i < w->nin; i++)
            w->offset[i] += carry ? -w->stride[i][k] * (w->space.dim[k] - 1) : w->stride[i][k];
        if (!carry)
            return;
        w->at[k] = 0;
    }
}

/* The row's expression at the walk's position, over the first operands of the node. */
static bool eval_int(const LsFold *f, const Walk *w, int64_t *y)
{
    const LsNode *node = &f->g->node[f->n.i];
    int64_t x[LS_MAX_IN];
    for (int k = 0; k < node->nin; k++)
        x[k] = ls_const_int_at(f->g, ls_in(f->g, f->n, k), w->offset[k]);
    return ls_op[node->op]->eval_int(x, &node->attr, y);
}

static double eval_real(const LsFold *f, const Walk *w)
{
    const LsNode *node = &f->g->node[f->n.i];
    double x[LS_MAX_IN];
    for (int k = 0; k < node->nin; k++)
        x[k] = ls_const_at(f->g, ls_in(f->g, f->n, k), w->offset[k]);
    return ls_op[node->op]->eval(x, &node->attr);
}

bool ls_fold_map(const LsFold *f)
{
    Walk w = {.space = f->shape};
    for (int k = 0; k < f->g->node[f->n.i].nin; k++)
        walk_add(&w, ls_in_shape(f->g, f->n, k));
    bool ints = in_integers(f), ok = true;
    for (int64_t i = 0, count = ls_count(&f->shape); ok && i < count; i++, walk_next(&w)) {
        int64_t v;
        ok = ints ? eval_int(f, &w, &v) && ls_fold_store_int(f, i, v)
                  : store_real(f, i, eval_real(f, &w));
    }
    return ok;
}

/* ---- reductions ---- */
static bool combine_int(LsCombine how, int64_t *sum, int64_t v)
{
    switch (how) {
    case LS_SUM: return !__builtin_add_overflow(*sum, v, sum);
    case LS_MAX: *sum = v > *sum ? v : *sum; return true;
    case LS_MIN: *sum = v < *sum ? v : *sum; return true;
    default:     return !__builtin_mul_overflow(*sum, v, sum);
    }
}

static double combine_real(LsCombine how, double sum, double v)
{
    switch (how) {
    case LS_SUM: return sum + v;
    case LS_MAX: return sum > v || isnan(sum) ? sum : v;
    case LS_MIN: return sum < v || isnan(sum) ? sum : v;
    default:     return sum * v;
    }
}

static const int64_t start_int[] = {[LS_SUM] = 0, [LS_MAX] = INT64_MIN, [LS_MIN] = INT64_MAX,
                                    [LS_PROD] = 1};
static const double start_real[] = {[LS_SUM] = 0, [LS_MAX] = -INFINITY, [LS_MIN] = INFINITY,
                                    [LS_PROD] = 1};

static bool reduce_ints(const LsFold *f, Walk *w, int64_t inside)
{
    const LsOp *row = ls_op[f->g->node[f->n.i].op];
    int64_t points = ls_count(&w->space), count = ls_count(&f->shape), v;
    int64_t *sum = ls_arena_alloc(f->arena, (size_t)count, sizeof *sum);
    if (inside == 0 && (row->mean || row->combine == LS_MAX || row->combine == LS_MIN))
        return false;
    for (int64_t i = 0; i < count; i++)
        sum[i] = start_int[row->combine];
    for (int64_t i = 0; i < points; i++, walk_next(w))
        if (!eval_int(f, w, &v) || !combine_int(row->combine, &sum[w->offset[1]], v))
            return false;
    bool ok = true;
    for (int64_t i = 0; ok && i < count; i++)
        ok = ls_fold_store_int(f, i, row->mean ? sum[i] / inside : sum[i]);
    return ok;
}

static bool reduce_reals(const LsFold *f, Walk *w, int64_t inside)
{
    const LsOp *row = ls_op[f->g->node[f->n.i].op];
    int64_t points = ls_count(&w->space), count = ls_count(&f->shape);
    double *sum = ls_arena_alloc(f->arena, (size_t)count, sizeof *sum);
    for (int64_t i = 0; i < count; i++)
        sum[i] = start_real[row->combine];
    for (int64_t i = 0; i < points; i++, walk_next(w))
        sum[w->offset[1]] = combine_real(row->combine, sum[w->offset[1]], eval_real(f, w));
    for (int64_t i = 0; i < count; i++)
        store_real(f, i, row->mean ? sum[i] / (double)inside : sum[i]);
    return true;
}

/* Walks over the only operand; the result is the walk's second tensor. */
bool ls_fold_reduce(const LsFold *f)
{
    if (f->g->node[f->n.i].nin != 1)
        return false;
    Walk w = {.space = *ls_in_shape(f->g, f->n, 0)};
    walk_add(&w, &w.space);
    walk_add(&w, &f->shape);
    int64_t points = ls_count(&w.space), count = ls_count(&f->shape);
    int64_t inside = count > 0 ? points / count : 0;
    return in_integers(f) ? reduce_ints(f, &w, inside) : reduce_reals(f, &w, inside);
}
