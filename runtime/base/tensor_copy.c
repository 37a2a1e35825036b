/* runtime/base/tensor_copy.c -- see tensor_copy.h. */
#include "runtime/base/tensor_copy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int64_t ls_tensor_count(const LsTensor *t)
{
    int64_t n = t->members > 0 ? t->members : 1;
    for (int d = 0; d < t->rank; d++)
        n *= t->dim[d];
    return n;
}

int ls_tensor_dims(const LsTensor *t, int64_t dim[LS_TENSOR_RANK + 1])
{
    int rank = 0;
    if (t->members > 0)
        dim[rank++] = t->members;
    for (int d = 0; d < t->rank; d++)
        dim[rank++] = t->dim[d];
    return rank;
}

LsTensor ls_tensor_of(const LsTensor *t, int64_t member, int real_bytes)
{
    LsTensor one = *t;
    one.members = 0;
    if (t->members > 0)
        one.at.offset += member * ls_tensor_bytes(&one, real_bytes);
    return one;
}

int64_t ls_data_bytes(LsDataType type, int real_bytes)
{
    switch (type) {
    case LS_DT_REAL: return real_bytes;
    case LS_DT_I64: return 8;
    case LS_DT_I32: return 4;
    case LS_DT_BOOL: case LS_DT_U8: return 1;
    case LS_DT_BF16: case LS_DT_F16: return 2;
    }
    return real_bytes;
}

int64_t ls_tensor_bytes(const LsTensor *t, int real_bytes)
{
    return ls_tensor_count(t) * ls_data_bytes(t->type, real_bytes);
}

int64_t ls_watch_bytes(const LsWatch *w, int real_bytes)
{
    int64_t bytes = ls_tensor_bytes(&w->t, real_bytes);
    return w->row > 0 ? bytes / w->t.dim[w->t.rank - 1] * w->row : bytes;
}

void ls_watch_copy(const LsWatch *w, void *to, const void *from, int real_bytes)
{
    int64_t bytes = ls_tensor_bytes(&w->t, real_bytes), each = ls_data_bytes(w->t.type, real_bytes);
    int64_t row = w->row > 0 ? w->t.dim[w->t.rank - 1] * each : bytes, apart = w->row * each;
    for (int64_t at = 0, k = 0; at < bytes; at += row, k++)
        memcpy((char *)to + at, (const char *)from + k * apart, (size_t)row);
}

char *ls_dims_text(int rank, const int64_t *dim, char text[96])
{
    int n = rank == 0 ? snprintf(text, 96, "scalar") : 0;
    for (int d = 0; d < rank && n < 96; d++)
        n += snprintf(text + n, (size_t)(96 - n), "%s%" PRId64, d ? "x" : "", dim[d]);
    return text;
}

/* A row-major tensor is treated as a single channel: then only s counts. */
LsWalk ls_walk_start(const LsTensor *t)
{
    LsWalk w = {.channels = 1, .spatial = 1};
    bool last = t->channels_last && t->rank >= 3;
    for (int d = last ? 2 : 0; d < t->rank; d++)
        w.spatial *= t->dim[d];
    if (last)
        w.channels = t->dim[1];
    return w;
}

void ls_walk_read(LsWalk *w, const void *from, void *to, int64_t count, int64_t element_bytes)
{
    size_t e = (size_t)element_bytes;
    const char *f = from;
    char *t = to;
    for (int64_t i = 0; i < count; i++, t += e) {
        const char *at = f + (size_t)ls_walk_next(w) * e;
        if (e == 4)
            memcpy(t, at, 4);
        else
            memcpy(t, at, e);
    }
}

void ls_walk_floats(LsWalk *w, const void *from, float *to, int64_t count, int real_bytes)
{
    const double *wide = from;
    if (real_bytes == 4)
        ls_walk_read(w, from, to, count, 4);
    for (int64_t i = 0; real_bytes == 8 && i < count; i++)
        to[i] = (float)wide[ls_walk_next(w)];
}

void ls_walk_write(LsWalk *w, const void *from, void *to, int64_t count, int64_t element_bytes)
{
    size_t e = (size_t)element_bytes;
    const char *f = from;
    char *t = to;
    for (int64_t i = 0; i < count; i++, f += e) {
        char *at = t + (size_t)ls_walk_next(w) * e;
        if (e == 4)
            memcpy(at, f, 4);
        else
            memcpy(at, f, e);
    }
}
