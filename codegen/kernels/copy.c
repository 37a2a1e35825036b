/* codegen/kernels/copy.c -- the loops of move_axes.h.
 *
 * The innermost axis of the result gives three cases: both sides contiguous (memcpy of rows), the
 * operand contiguous along another axis (a transposition, in square tiles that stay in the cache),
 * and all others. */
#include "codegen/kernels/move_axes.h"

#include <inttypes.h>

enum { LEAST = 8, TILE = 64 };  /* shortest axis worth a transposition; side of a tile, elements */

static const char *at(const LsCopy *c, int tensor, int64_t first)
{
    const char *text = ls_nest_offset(c->n, tensor, 0, c->n->naxis);
    if (first == 0)
        return text;
    return ls_arena_printf(c->n->arena, LS_N64 " + %s", first, text);
}

/* The same for an index in the innermost loop: `first` stays a constant. */
static const char *index_at(const LsCopy *c, int tensor, int64_t first)
{
    const char *text = ls_nest_offset(c->n, tensor, 0, c->n->naxis);
    return first == 0 ? text : ls_arena_printf(c->n->arena, "%" PRId64 " + %s", first, text);
}

/* The axis along which the operand is contiguous, if it is not the innermost; else -1. */
static int transposed_axis(const LsNest *n)
{
    int last = n->naxis - 1;
    if (n->stride[LS_COPY_TO][last] != 1 || n->stride[LS_COPY_FROM][last] == 1 ||
        n->size[last] < LEAST)
        return -1;
    for (int k = 0; k < last; k++)
        if (n->stride[LS_COPY_FROM][k] == 1 && n->size[k] >= LEAST)
            return k;
    return -1;
}

static void pointers(const LsKernelText *k, const LsCopy *c)
{
    ls_emit_operand(k, "x", c->operand);
    ls_emit_result(k, "y", 0);
}

static LsGrid rows_part(const LsKernelText *k, const char *suffix, const LsCopy *c)
{
    LsNest *n = c->n;
    LsEmit *e = k->e;
    const LsBoxes b = ls_boxes(k, n);
    const LsGrid part = ls_boxes_grid(suffix, &b);
    int last = n->naxis - 1;
    const char *i = n->var[last];
    bool whole = b.inner == n->size[last];
    ls_emit_part(k, &part);
    pointers(k, c);
    int open = ls_boxes_open(e, n, &b);
    if (n->stride[LS_COPY_TO][last] == 1 && n->stride[LS_COPY_FROM][last] == 1) {
        const char *count = whole ? ls_arena_printf(n->arena, LS_N64, b.inner)
                                  : ls_arena_printf(n->arena, "%s1 - %s0", i, i);
        n->var[last] = whole ? "0" : ls_arena_printf(n->arena, "%s0", i);
        ls_emit_line(e, "LS_COPY(y + %s, x + %s, %s);", at(c, LS_COPY_TO, c->to),
                     at(c, LS_COPY_FROM, c->from), count);
        n->var[last] = i;
    } else {
        ls_boxes_inner(e, n, &b);
        ls_emit_line(e, "y[%s] = x[%s];", index_at(c, LS_COPY_TO, c->to),
                     index_at(c, LS_COPY_FROM, c->from));
        open++;
    }
    ls_emit_close(e, open + 1);
    return part;
}

/* Prints a transposition in square tiles; `cross` is the operand's contiguous axis. */
static LsGrid transpose_part(const LsKernelText *k, const char *suffix, const LsCopy *c, int cross)
{
    LsNest *n = c->n;
    LsEmit *e = k->e;
    int axis[LS_NEST_AXES], naxis = 0, last = n->naxis - 1;
    int64_t ni = ls_ceil_div(n->size[last], TILE), nc = ls_ceil_div(n->size[cross], TILE),
            outer = 1;
    for (int a = 0; a < last; a++)
        if (a != cross) {
            axis[naxis++] = a;
            outer *= n->size[a];
        }
    const LsGrid part = {suffix, outer * ni * nc, 32, 8};
    ls_emit_part(k, &part);
    pointers(k, c);
    ls_emit_line(e, "for (int64_t u = lo; u < hi; u++) {");
    ls_emit_line(e, "const int64_t %s = u %% " LS_N64 " * " LS_N ";", n->var[last], ni, TILE);
    ls_emit_line(e, "const int64_t %s = u / " LS_N64 " %% " LS_N64 " * " LS_N ";", n->var[cross],
                 ni,
                 nc, TILE);
    ls_nest_decode(e, n, ls_arena_printf(n->arena, "u / " LS_N64, ni * nc), naxis, axis);
    ls_emit_line(e, "ls_transpose%d(y + %s, %" PRId64 ", x + %s, %" PRId64 ",",
                 8 * ls_type_bytes(ls_result_type(k, 0), k->target->real_bytes),
                 ls_unmarked(n->arena, at(c, LS_COPY_TO, c->to)), n->stride[LS_COPY_TO][cross],
                 ls_unmarked(n->arena, at(c, LS_COPY_FROM, c->from)),
                 n->stride[LS_COPY_FROM][last]);
    ls_emit_line(e, "    ls_least(%d, %" PRId64 " - %s), ls_least(%d, %" PRId64 " - %s));", TILE,
                 n->size[last], n->var[last], TILE, n->size[cross], n->var[cross]);
    ls_emit_close(e, 2);
    return part;
}

LsGrid ls_copy_part(const LsKernelText *k, const char *suffix, const LsCopy *c)
{
    int cross = transposed_axis(c->n);
    return cross < 0 ? rows_part(k, suffix, c) : transpose_part(k, suffix, c, cross);
}

LsGrid ls_fill_part(const LsKernelText *k, double value)
{
    LsValueId y = ls_out(k->g, k->n, 0);
    int64_t n = ls_count(ls_shape(k->g, y)), unit = ls_unit(k);
    const LsGrid part = ls_flat_grid(k, "fill", n);
    ls_emit_part(k, &part);
    ls_emit_result(k, "y", 0);
    ls_emit_line(k->e, "%s(i, lo * " LS_INNER64 ", ls_least(hi * " LS_N64 ", " LS_N64 ")) {",
                 ls_lanes_word(ls_fours(n)), unit, unit, n);
    const LsType type = ls_type(k->g, y);       /* a real may be infinite */
    ls_emit_line(k->e, "y[i] = %s;",
                 ls_literal(k->g->arena, type, value, type != LS_REAL ? (int64_t)value : 0,
                            k->target->real_bytes));
    ls_emit_close(k->e, 2);
    return part;
}
