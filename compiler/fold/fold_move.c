/* compiler/fold/fold_move.c -- constant folding of moving operators: copies by index. */
#include "compiler/fold/fold_eval.h"

#include <string.h>

/* ---- results whose element (i0, i1, ..) is the operand's element (m0(i0), m1(i1), ..) ---- */
typedef struct Copy {
    const LsFold *f;
    const char *from;
    size_t bytes;               /* of an element */
    char fill[8];               /* value where an index points outside the operand (pad) */
    int64_t stride[LS_MAX_RANK];    /* of the operand, along the axis of result axis k */
    char *to;                   /* next element to write */
} Copy;

/* The source of a padded index; -1: in the border. */
static int64_t pad_source(const LsPadAttr *at, int k, int64_t dim, int64_t i)
{
    int64_t j = i - at->lo[k];
    if (j >= 0 && j < dim)
        return j;
    switch (at->mode) {
    case LS_PAD_EDGE:    return j < 0 ? 0 : dim - 1;
    case LS_PAD_REFLECT: return j < 0 ? -j : 2 * (dim - 1) - j;
    default:             return -1;
    }
}

static int64_t source(const LsFold *f, int k, int64_t i)
{
    const LsNode *node = &f->g->node[f->n.i];
    const LsShape *x = ls_in_shape(f->g, f->n, 0);
    switch (node->op) {
    case LS_OP_SLICE: return node->attr.slice.start[k] + i * node->attr.slice.step[k];
    case LS_OP_PAD:   return pad_source(&node->attr.pad, k, x->dim[k], i);
    case LS_OP_TILE:  return i % x->dim[k];
    default:          return i;     /* transpose */
    }
}

static void copy_axis(Copy *c, int k, int64_t offset, bool outside)
{
    if (k == c->f->shape.rank) {
        memcpy(c->to, outside ? c->fill : c->from + (size_t)offset * c->bytes, c->bytes);
        c->to += c->bytes;
        return;
    }
    for (int64_t i = 0; i < c->f->shape.dim[k]; i++) {
        int64_t j = source(c->f, k, i);
        copy_axis(c, k + 1, offset + j * c->stride[k], outside || j < 0);
    }
}

static void set_fill(Copy *c, double v)
{
    float real = (float)v;
    int64_t whole = v >= -0x1p63 && v < 0x1p63 ? (int64_t)v : 0;
    int32_t small = (int32_t)whole;
    uint8_t truth = v != 0;
    const void *const from[LS_NTYPES] = {&real, &whole, &small, &truth};
    memcpy(c->fill, from[c->f->type], c->bytes);
}

static bool copy_by_axes(const LsFold *f)
{
    const LsNode *node = &f->g->node[f->n.i];
    Copy c = {.f = f, .from = f->g->value[ls_in(f->g, f->n, 0).i].data, .to = f->data,
              .bytes = (size_t)ls_type_bytes(f->type, 4)};
    int64_t stride[LS_MAX_RANK];
    ls_strides(ls_in_shape(f->g, f->n, 0), LS_ROW, stride);
    for (int k = 0; k < f->shape.rank; k++)
        c.stride[k] = stride[node->op == LS_OP_TRANSPOSE ? node->attr.perm.perm[k] : k];
    if (node->op == LS_OP_PAD)
        set_fill(&c, node->attr.pad.value);
    copy_axis(&c, 0, 0, false);
    return true;
}

/* ---- blocks: the axes before an axis count blocks, the axes behind it are contiguous ---- */
static int64_t product(const LsShape *s, int from, int to)
{
    int64_t p = 1;
    for (int k = from; k < to; k++)
        p *= s->dim[k];
    return p;
}

static bool concat(const LsFold *f)
{
    int axis = f->g->node[f->n.i].attr.axis.axis;
    size_t bytes = (size_t)ls_type_bytes(f->type, 4);
    int64_t outer = product(&f->shape, 0, axis);
    char *to = f->data;
    for (int64_t i = 0; i < outer; i++)
        for (int k = 0; k < f->g->node[f->n.i].nin; k++) {
            const LsShape *x = ls_in_shape(f->g, f->n, k);
            size_t block = (size_t)product(x, axis, x->rank) * bytes;
            const char *from = f->g->value[ls_in(f->g, f->n, k).i].data;
            memcpy(to, from + (size_t)i * block, block);
            to += block;
        }
    return true;
}

static bool gather(const LsFold *f)
{
    int axis = f->g->node[f->n.i].attr.gather.axis;
    const LsShape *x = ls_in_shape(f->g, f->n, 0);
    LsValueId index = ls_in(f->g, f->n, 1);
    size_t block = (size_t)(product(x, axis + 1, x->rank) * ls_type_bytes(f->type, 4));
    const char *from = f->g->value[ls_in(f->g, f->n, 0).i].data;
    char *to = f->data;
    int64_t outer = product(x, 0, axis), count = ls_count(ls_shape(f->g, index)),
            dim = x->dim[axis];
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < count; i++, to += block) {
            int64_t j = ls_const_int_at(f->g, index, i);
            if (j < -dim || j >= dim)
                return false;
            memcpy(to, from + (size_t)(o * dim + (j < 0 ? j + dim : j)) * block, block);
        }
    return true;
}

bool ls_fold_move(const LsFold *f)
{
    switch (f->g->node[f->n.i].op) {
    case LS_OP_CONCAT: return concat(f);
    case LS_OP_GATHER: return gather(f);
    case LS_OP_GATHER_EACH: case LS_OP_SCATTER: case LS_OP_SCATTER_EACH: case LS_OP_CUM_SUM:
        return ls_fold_index(f);
    default:           return copy_by_axes(f);
    }
}
