/* compiler/ir/shape.c -- arithmetic on shapes, strides and sizes. */
#include "compiler/ir/graph.h"

int64_t ls_count(const LsShape *s)
{
    int64_t n = 1;
    for (int k = 0; k < s->rank; k++)
        n *= s->dim[k];
    return n;
}

bool ls_shape_same(const LsShape *a, const LsShape *b)
{
    if (a->rank != b->rank)
        return false;
    for (int k = 0; k < a->rank; k++)
        if (a->dim[k] != b->dim[k])
            return false;
    return true;
}

bool ls_shape_broadcast(LsShape *to, const LsShape *with)
{
    LsShape r = {.rank = to->rank > with->rank ? to->rank : with->rank};
    for (int k = 0; k < r.rank; k++) {
        int i = k - (r.rank - to->rank), j = k - (r.rank - with->rank);
        int64_t a = i < 0 ? 1 : to->dim[i], b = j < 0 ? 1 : with->dim[j];
        if (a != b && a != 1 && b != 1)
            return false;
        r.dim[k] = a == 1 ? b : a;
    }
    *to = r;
    return true;
}

void ls_strides(const LsShape *s, LsLayout layout, int64_t stride[LS_MAX_RANK])
{
    int64_t step = 1;
    bool last = layout == LS_LAST && s->rank >= 3;
    if (last) {
        stride[1] = 1;
        step = s->dim[1];
    }
    for (int k = s->rank - 1; k >= 0; k--) {
        if (last && k == 1)
            continue;
        stride[k] = step;
        step *= s->dim[k];
    }
}

void ls_broadcast_strides(const LsGraph *g, LsValueId v, const LsShape *space,
                          int64_t stride[LS_MAX_RANK])
{
    const LsValue *x = &g->value[v.i];
    int64_t own[LS_MAX_RANK];
    ls_strides(&x->shape, x->layout, own);
    int skip = space->rank - x->shape.rank;
    for (int k = 0; k < space->rank; k++)
        stride[k] = k < skip || x->shape.dim[k - skip] == 1 ? 0 : own[k - skip];
}

bool ls_layout_free(const LsShape *s)
{
    if (s->rank < 3 || s->dim[1] == 1)
        return true;
    for (int k = 2; k < s->rank; k++)
        if (s->dim[k] != 1)
            return false;
    return true;
}

int ls_type_bytes(LsType t, int real_bytes)
{
    switch (t) {
    case LS_REAL: return real_bytes;
    case LS_I64:  return 8;
    case LS_I32:  return 4;
    default:      return 1;
    }
}

int64_t ls_value_bytes(const LsGraph *g, LsValueId v, int real_bytes)
{
    return ls_count(ls_shape(g, v)) * ls_type_bytes(ls_type(g, v), real_bytes);
}

int64_t ls_state_bytes(const LsGraph *g, LsValueId v, int real_bytes)
{
    int64_t bytes = ls_value_bytes(g, v, real_bytes), rows = g->value[v.i].rows_behind;
    return rows > 0 ? bytes + rows * (bytes / ls_shape(g, v)->dim[0]) : bytes;
}
