/* compiler/ir/shape.c -- arithmetic on shapes, strides and sizes. */
#include "compiler/ir/shape.h"

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

LsShape ls_shape_without(const LsShape *s, int axis)
{
    LsShape to = *s;
    to.rank--;
    for (int k = axis; k < to.rank; k++)
        to.dim[k] = to.dim[k + 1];
    return to;
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
    case LS_BF16: case LS_F16: return 2;
    default:      return 1;
    }
}
