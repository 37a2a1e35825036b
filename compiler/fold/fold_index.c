/* compiler/fold/fold_index.c -- constant folding of scatters, of gathers by element and of running
 * sums: lines along one axis, see move.def. */
#include "compiler/fold/fold_eval.h"

#include <string.h>

typedef struct Lines {          /* a tensor of outer x length x inner elements */
    const LsFold *f;
    int64_t outer, length, inner, count;    /* count: indices, of a line or for all */
    bool each;                  /* every element has its own index */
} Lines;

static Lines lines_of(const LsFold *f, const LsShape *table, int axis)
{
    const LsNode *node = &f->g->node[f->n.i];
    Lines l = {.f = f, .outer = 1, .length = table->dim[axis], .inner = 1,
               .each = node->op == LS_OP_GATHER_EACH || node->op == LS_OP_SCATTER_EACH};
    for (int k = 0; k < table->rank; k++)
        if (k != axis)
            *(k < axis ? &l.outer : &l.inner) *= table->dim[k];
    if (node->nin > 1) {
        const LsShape *index = ls_in_shape(f->g, f->n, 1);
        l.count = l.each ? index->dim[axis] : ls_count(index);
    }
    return l;
}

/* The place in the table of element p of the result of a gather; -1: its index is outside. */
static int64_t place_of(const Lines *l, int64_t p)
{
    int64_t i = p % l->inner, k = p / l->inner % l->count, o = p / l->inner / l->count;
    int64_t j = ls_const_int_at(l->f->g, ls_in(l->f->g, l->f->n, 1), l->each ? p : k);
    j += j < 0 ? l->length : 0;
    return j < 0 || j >= l->length ? -1 : (o * l->length + j) * l->inner + i;
}

static bool gather_each(const LsFold *f)
{
    const Lines l = lines_of(f, ls_in_shape(f->g, f->n, 0), f->g->node[f->n.i].attr.gather.axis);
    size_t bytes = (size_t)ls_type_bytes(f->type, 4);
    const char *from = f->g->value[ls_in(f->g, f->n, 0).i].data;
    for (int64_t p = 0; p < l.outer * l.count * l.inner; p++) {
        int64_t at = place_of(&l, p);
        if (at < 0)
            return false;
        memcpy((char *)f->data + (size_t)p * bytes, from + (size_t)at * bytes, bytes);
    }
    return true;
}

static bool combine_int(LsScatterHow how, int64_t old, int64_t v, int64_t *y)
{
    switch (how) {
    case LS_SCATTER_ADD: return !__builtin_add_overflow(old, v, y);
    case LS_SCATTER_MUL: return !__builtin_mul_overflow(old, v, y);
    case LS_SCATTER_MAX: *y = old > v ? old : v; return true;
    case LS_SCATTER_MIN: *y = old < v ? old : v; return true;
    default:             *y = v; return true;
    }
}

static float combine_real(LsScatterHow how, float old, float v)
{
    switch (how) {
    case LS_SCATTER_ADD: return old + v;
    case LS_SCATTER_MUL: return old * v;
    case LS_SCATTER_MAX: return old > v || old != old ? old : v;
    case LS_SCATTER_MIN: return old < v || old != old ? old : v;
    default:             return v;
    }
}

static int64_t int_at(const LsFold *f, int64_t i)
{
    return f->type == LS_I64 ? ((int64_t *)f->data)[i]
         : f->type == LS_I32 ? ((int32_t *)f->data)[i]
                             : ((uint8_t *)f->data)[i];
}

static bool scatter(const LsFold *f)
{
    const LsGatherAttr *at = &f->g->node[f->n.i].attr.gather;
    const Lines l = lines_of(f, &at->x, at->axis);
    LsValueId updates = ls_in(f->g, f->n, 0), base = ls_in(f->g, f->n, 2);
    bool single = ls_count(ls_shape(f->g, updates)) == 1;
    memcpy(f->data, f->g->value[base.i].data,
           (size_t)ls_count(&f->shape) * (size_t)ls_type_bytes(f->type, 4));
    for (int64_t p = 0; p < l.outer * l.count * l.inner; p++) {
        int64_t to = place_of(&l, p), whole;
        if (to < 0)
            continue;
        if (f->type == LS_REAL) {
            float *y = f->data;
            y[to] = combine_real(at->how, y[to], (float)ls_const_at(f->g, updates, single ? 0 : p));
        } else if (!combine_int(at->how, int_at(f, to),
                                ls_const_int_at(f->g, updates, single ? 0 : p), &whole)
                   || !ls_fold_store_int(f, to, whole)) {
            return false;
        }
    }
    return true;
}

static bool running_sum(const LsFold *f)
{
    const LsScanAttr *at = &f->g->node[f->n.i].attr.scan;
    const Lines l = lines_of(f, &f->shape, at->axis);
    LsValueId x = ls_in(f->g, f->n, 0);
    for (int64_t line = 0; line < l.outer * l.inner; line++) {
        int64_t start = line / l.inner * l.length * l.inner + line % l.inner, whole = 0, sum = 0;
        double real = 0;
        for (int64_t k = 0; k < l.length; k++) {
            int64_t i = start + (at->reverse ? l.length - 1 - k : k) * l.inner;
            double before = real;
            whole = sum;
            real += ls_const_at(f->g, x, i);
            if (f->type == LS_REAL)
                ((float *)f->data)[i] = (float)(at->exclusive ? before : real);
            else if (__builtin_add_overflow(sum, ls_const_int_at(f->g, x, i), &sum)
                     || !ls_fold_store_int(f, i, at->exclusive ? whole : sum))
                return false;
        }
    }
    return true;
}

bool ls_fold_index(const LsFold *f)
{
    switch (f->g->node[f->n.i].op) {
    case LS_OP_GATHER_EACH: return gather_each(f);
    case LS_OP_CUM_SUM:     return running_sum(f);
    default:                return ls_is(ls_in(f->g, f->n, 2)) && scatter(f);
    }
}
