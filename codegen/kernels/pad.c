/* codegen/kernels/pad.c -- PAD, and its gradient for borders that repeat elements.
 *
 * A constant border is a fill and a copy. For reflect and edge a function (ls_reflect, ls_clamp)
 * maps the index of every padded axis. The gradient adds to the mapped elements in a fixed order:
 * units are points of the axes without padding, so no two units add to the same element. */
#include "codegen/kernels/move_axes.h"

#include <inttypes.h>
#include <string.h>

typedef struct Pad {
    const LsKernelText *k;
    const LsPadAttr *at;
    const LsValue *small, *large;   /* the value without the border, and with it */
    int64_t lo[LS_NEST_AXES], dim[LS_NEST_AXES]; /* by axis of the nest: border and length inside */
    LsNest *n;              /* axes of the large side; tensors: large, small */
} Pad;
enum { LARGE, SMALL };

static bool padded(const Pad *p, int axis)
{
    return p->at->lo[axis] != 0 || p->at->hi[axis] != 0;
}

/* Makes the nest; padded axes stay alone, the others merge. */
static void pad_nest(Pad *p)
{
    const LsShape *space = &p->large->shape;
    int64_t large[LS_MAX_RANK], small[LS_MAX_RANK];
    int order[LS_MAX_RANK];
    ls_strides(space, p->large->layout, large);
    ls_strides(&p->small->shape, p->small->layout, small);
    ls_walk_order(space, p->large->layout, order);
    p->n = ls_nest_new(p->k->g, space, p->large->layout, 2);
    ls_nest_tensor(p->n, space, p->large->layout, LARGE, large);
    ls_nest_tensor(p->n, space, p->large->layout, SMALL, small);
    for (int a = 0; a < space->rank; a++)
        p->n->alone[a] = padded(p, order[a]);
    ls_nest_merge(p->n);
    for (int a = 0; a < p->n->naxis; a++)
        if (p->n->alone[a]) {
            p->lo[a] = p->at->lo[order[p->n->last[a]]];
            p->dim[a] = p->small->shape.dim[order[p->n->last[a]]];
        }
}

/* The offset in the small side, from the mapped indices. */
static const char *small_offset(Pad *p)
{
    LsNest *n = p->n;
    const char *var[LS_NEST_AXES];
    memcpy(var, n->var, sizeof var);
    for (int a = 0; a < n->naxis; a++)
        if (n->alone[a])
            n->var[a] = ls_arena_printf(n->arena, "%s(%s - %" PRId64 ", %" PRId64 ")",
                                        p->at->mode == LS_PAD_EDGE ? "ls_clamp" : "ls_reflect",
                                        n->var[a], p->lo[a], p->dim[a]);
    const char *text = ls_nest_offset(n, SMALL, 0, n->naxis);
    memcpy(n->var, var, sizeof var);
    return text;
}

static void border(Pad *p)
{
    LsEmit *e = p->k->e;
    pad_nest(p);
    const LsBoxes b = ls_boxes(p->k, p->n);
    const LsGrid part = ls_boxes_grid("part", &b);
    ls_emit_part(p->k, &part);
    ls_emit_operand(p->k, "x", 0);
    ls_emit_result(p->k, "y", 0);
    int open = ls_boxes_open(e, p->n, &b);
    ls_boxes_inner(e, p->n, &b);
    ls_emit_line(e, "y[%s] = x[%s];", ls_nest_offset(p->n, LARGE, 0, p->n->naxis), small_offset(p));
    ls_emit_close(e, open + 2);
    ls_emit_launch(p->k, &part, 1);
}

/* Prints a fill, and a copy of the elements inside the result. */
static void constant(Pad *p)
{
    int64_t to[LS_MAX_RANK], from[LS_MAX_RANK];
    LsShape inside = p->small->shape;
    LsCopy c = {0};
    bool any = true, all = true;
    ls_strides(&p->large->shape, p->large->layout, to);
    ls_strides(&p->small->shape, p->small->layout, from);
    for (int k = 0; k < inside.rank; k++) {
        int64_t lo = p->at->lo[k], begin = lo < 0 ? -lo : 0;
        int64_t end = p->large->shape.dim[k] - lo < inside.dim[k] ? p->large->shape.dim[k] - lo
                                                                   : inside.dim[k];
        any &= end > begin;
        all &= end - begin == p->large->shape.dim[k];
        inside.dim[k] = end - begin;
        c.from += begin * from[k];
        c.to += (begin + lo) * to[k];
    }
    LsGrid part[2];
    if (!all)
        part[0] = ls_fill_part(p->k, p->at->value);
    if (any) {
        c.n = ls_nest_new(p->k->g, &inside, p->large->layout, LS_COPY_TENSORS);
        ls_nest_tensor(c.n, &inside, p->large->layout, LS_COPY_TO, to);
        ls_nest_tensor(c.n, &inside, p->large->layout, LS_COPY_FROM, from);
        ls_nest_merge(c.n);
        part[1] = ls_copy_part(p->k, "part", &c);
    }
    ls_emit_launch(p->k, part + all, !all + any);
}

static Pad pad_new(const LsKernelText *k, LsValueId small, LsValueId large)
{
    return (Pad){.k = k, .at = &k->g->node[k->n.i].attr.pad, .small = &k->g->value[small.i],
                 .large = &k->g->value[large.i]};
}

void ls_pad_emit(const LsKernelText *k)
{
    Pad p = pad_new(k, ls_in(k->g, k->n, 0), ls_out(k->g, k->n, 0));
    if (p.at->mode == LS_PAD_CONSTANT)
        constant(&p);
    else
        border(&p);
}

void ls_pad_grad_emit(const LsKernelText *k)
{
    Pad p = pad_new(k, ls_out(k->g, k->n, 0), ls_in(k->g, k->n, 0));
    LsEmit *e = k->e;
    int axis[LS_NEST_AXES], naxis = 0, open = 1;
    LsGrid part[2] = {ls_fill_part(k, 0), {"part", 1, 1, 1}};
    pad_nest(&p);
    const LsNest *n = p.n;
    int last = n->naxis - 1;
    if (!n->alone[last])            /* else one thread adds all that share an element, in order */
        part[1].x = ls_threads(n->size[last], 256);
    for (int a = 0; a < last; a++)
        if (!n->alone[a]) {
            axis[naxis++] = a;
            part[1].units *= n->size[a];
        }
    ls_emit_part(k, &part[1]);
    ls_emit_operand(k, "dy", 0);
    ls_emit_result(k, "dx", 0);
    ls_emit_line(e, "for (int64_t u = lo; u < hi; u++) {");
    ls_nest_decode(e, n, "u", naxis, axis);
    for (int a = 0; a <= last; a++) {
        if (a < last && !n->alone[a])
            continue;
        if (a == last && !n->alone[a])
            ls_emit_line(e, "LS_LANES(%s, 0, " LS_BOUND64 ") {", n->var[a], n->size[a]);
        else
            ls_emit_line(e, "for (int64_t %s = 0; %s < %" PRId64 "; %s++) {", n->var[a], n->var[a],
                         n->size[a], n->var[a]);
        open++;
    }
    ls_emit_line(e, "dx[%s] += dy[%s];", small_offset(&p), ls_nest_offset(n, LARGE, 0, n->naxis));
    ls_emit_close(e, open + 1);
    ls_emit_launch(k, part, 2);
}
