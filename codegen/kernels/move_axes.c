/* codegen/kernels/move_axes.c -- LS_K_MOVE: each node as copies of boxes (copy.c), in any
 * layout. */
#include "codegen/kernels/move_axes.h"

#include <inttypes.h>

enum { APART = 4 };         /* most operands that a concatenation names one by one */

typedef struct Move {
    const LsKernelText *k;
    const LsNode *node;
    const LsValue *y;
} Move;

static void strides_of(const Move *m, int operand, int64_t stride[LS_MAX_RANK])
{
    const LsValue *x = &m->k->g->value[ls_in(m->k->g, m->k->n, operand).i];
    ls_strides(&x->shape, x->layout, stride);
}

/* The copy of a box `space`, walked in the result's order, with these strides (by logical axis) on
 * either side. */
static LsCopy copy_new(const Move *m, const LsShape *space, const int64_t to[],
                       const int64_t from[])
{
    LsCopy c = {.n = ls_nest_new(m->k->g, space, m->y->layout, LS_COPY_TENSORS)};
    ls_nest_tensor(c.n, space, m->y->layout, LS_COPY_TO, to);
    ls_nest_tensor(c.n, space, m->y->layout, LS_COPY_FROM, from);
    ls_nest_merge(c.n);
    return c;
}

static void print_one(const Move *m, const LsCopy *c)
{
    const LsGrid part = ls_copy_part(m->k, "part", c);
    ls_emit_launch(m->k, &part, 1);
}

/* Prints a copy that reads the operand with other strides. */
static void gathered(const Move *m, const int64_t from[], int64_t first)
{
    int64_t to[LS_MAX_RANK];
    ls_strides(&m->y->shape, m->y->layout, to);
    LsCopy c = copy_new(m, &m->y->shape, to, from);
    c.from = first;
    print_one(m, &c);
}

static void transpose(const Move *m)
{
    int64_t x[LS_MAX_RANK], from[LS_MAX_RANK];
    strides_of(m, 0, x);
    for (int k = 0; k < m->y->shape.rank; k++)
        from[k] = x[m->node->attr.perm.perm[k]];
    gathered(m, from, 0);
}

static void convert(const Move *m)
{
    int64_t from[LS_MAX_RANK];
    strides_of(m, 0, from);
    gathered(m, from, 0);
}

static void slice(const Move *m)
{
    int64_t x[LS_MAX_RANK], from[LS_MAX_RANK], first = 0;
    strides_of(m, 0, x);
    for (int k = 0; k < m->y->shape.rank; k++) {
        from[k] = x[k] * m->node->attr.slice.step[k];
        first += x[k] * m->node->attr.slice.start[k];
    }
    gathered(m, from, first);
}

/* Prints zeros, then dy at the elements that were read. */
static void slice_grad(const Move *m)
{
    int64_t y[LS_MAX_RANK], from[LS_MAX_RANK], to[LS_MAX_RANK], first = 0;
    ls_strides(&m->y->shape, m->y->layout, y);
    strides_of(m, 0, from);
    for (int k = 0; k < m->y->shape.rank; k++) {
        to[k] = y[k] * m->node->attr.slice.step[k];
        first += y[k] * m->node->attr.slice.start[k];
    }
    LsCopy c = copy_new(m, ls_in_shape(m->k->g, m->k->n, 0), to, from);
    c.to = first;
    LsGrid part[2];
    part[0] = ls_fill_part(m->k, 0);
    part[1] = ls_copy_part(m->k, "part", &c);
    ls_emit_launch(m->k, part, 2);
}

/* Prints a copy of the part into its place. What lies around it is copied from the base, unless it
 * is there. */
static void place(const Move *m)
{
    int64_t from[LS_MAX_RANK], to[LS_MAX_RANK];
    const LsKernelText *k = m->k;
    ls_strides(&m->y->shape, m->y->layout, to);
    strides_of(m, 0, from);
    LsCopy c = copy_new(m, ls_in_shape(k->g, k->n, 0), to, from);
    for (int a = 0; a < m->y->shape.rank; a++)
        c.to += to[a] * m->node->attr.slice.start[a];
    const LsGrid part = ls_copy_part(k, "part", &c);
    if (m->node->nin < 2) {
        ls_emit_launch(k, &part, 1);
        return;
    }
    ls_emit_line(k->e, "static void %s(LsRun *run, void *const arg[])", k->name);
    ls_emit_line(k->e, "{");
    ls_emit_line(k->e, "if (arg[1] != arg[2])");
    ls_emit_line(k->e, "    memcpy(arg[2], arg[1], %" PRId64 ");",
                 ls_value_bytes(k->g, ls_out(k->g, k->n, 0), k->target->real_bytes));
    ls_emit_line(k->e, "ls_parallel(run, %s_part, %" PRId64 ", arg);", k->name, part.units);
    ls_emit_line(k->e, "}");
}

/* Prints a copy with every axis split into (repeat, index), in the result's order. */
static void tile(const Move *m)
{
    const LsShape *x = ls_in_shape(m->k->g, m->k->n, 0);
    int order[LS_MAX_RANK], axis = 0;
    int64_t from[LS_MAX_RANK], to[LS_MAX_RANK];
    strides_of(m, 0, from);
    ls_strides(&m->y->shape, m->y->layout, to);
    ls_walk_order(&m->y->shape, m->y->layout, order);
    LsCopy c = {.n = ls_nest_new(m->k->g, &(LsShape){0}, LS_ROW, LS_COPY_TENSORS)};
    for (int k = 0; k < x->rank; k++) {
        int a = order[k];
        c.n->size[axis] = m->y->shape.dim[a] / x->dim[a];
        c.n->stride[LS_COPY_TO][axis++] = to[a] * x->dim[a];
        c.n->size[axis] = x->dim[a];
        c.n->stride[LS_COPY_FROM][axis] = from[a];
        c.n->stride[LS_COPY_TO][axis++] = to[a];
    }
    c.n->naxis = axis;
    ls_nest_merge(c.n);
    print_one(m, &c);
}

/* ---- concat ---- */
/* The result's stride along the axis, if every operand has the result's layout: each operand is
 * then one run per outer index. Else 0. */
static int64_t run_of(const Move *m, int axis)
{
    int64_t to[LS_MAX_RANK];
    ls_strides(&m->y->shape, m->y->layout, to);
    for (int k = 0; k < m->node->nin; k++) {
        int64_t from[LS_MAX_RANK], own[LS_MAX_RANK];
        const LsShape *x = ls_in_shape(m->k->g, m->k->n, k);
        strides_of(m, k, from);
        ls_strides(x, m->y->layout, own);
        for (int a = 0; a < x->rank; a++)
            if (x->dim[a] > 1 && from[a] != own[a])
                return 0;
    }
    return to[axis];
}

/* Prints the copy of operand o's row j to offset `at` in the result's row j. */
static void concat_one(const Move *m, int o, int64_t row, int64_t at, int64_t count)
{
    LsEmit *e = m->k->e;
    ls_emit_operand(m->k, ls_arena_printf(m->k->g->arena, "x%d", o), o);
    ls_emit_line(e, "LS_COPY(y + j * " LS_N64 " + " LS_N64 ", x%d + j * " LS_N64 ", " LS_N64 ");",
                 row, at, o, count, count);
}

/* The same for n operands from o on. */
static void concat_alike(const Move *m, int o, int n, int64_t row, int64_t at, int64_t count)
{
    LsEmit *e = m->k->e;
    ls_emit_line(e, "const int64_t end%d = %d + " LS_N ";", o, o, n);
    ls_emit_line(e, "for (int64_t o = %d; o < end%d; o++) {", o, o);
    ls_emit_line(e, "LS_IN(%s, x, o);", ls_ctype(m->y->type));
    ls_emit_line(e, "LS_COPY(y + j * " LS_N64 " + " LS_N64 " + (o - " LS_N ") * " LS_N64
                 ", x + j * " LS_N64 ", " LS_N64 ");", row, at, o, count, count, count);
    ls_emit_line(e, "}");
}

/* Prints one pass over the result: for each outer index the runs of all operands in order. */
static void concat_runs(const Move *m, int axis, int64_t run)
{
    const LsKernelText *k = m->k;
    LsEmit *e = k->e;
    int64_t row = run * m->y->shape.dim[axis], outer = ls_count(&m->y->shape) / row, at = 0;
    int64_t group = row >= ls_unit(k) ? 1 : ls_unit(k) / row;
    bool gpu = k->target->kind == LS_TARGET_CUDA;
    int x = ls_threads(row / m->node->nin / 4, 16);     /* all but the smallest share one text */
    if (gpu)
        group = 128 / x;
    const LsGrid part = {"part", ls_ceil_div(outer, group), x, ls_threads(group, 128 / x)};
    ls_emit_part(k, &part);
    ls_emit_result(k, "y", 0);
    ls_emit_line(e, "LS_ROWS(j, lo * " LS_N64 ", ls_least(hi * " LS_N64 ", " LS_N64 ")) {",
                 group, group, outer);
    for (int o = 0, same; o < m->node->nin; o += same) {
        int64_t count = run * ls_in_shape(k->g, k->n, o)->dim[axis];
        for (same = 1; o + same < m->node->nin && m->node->nin > APART; same++)
            if (run * ls_in_shape(k->g, k->n, o + same)->dim[axis] != count)
                break;
        if (same == 1)
            concat_one(m, o, row, at, count);
        else
            concat_alike(m, o, same, row, at, count);
        at += same * count;
    }
    ls_emit_close(e, 2);
    ls_emit_launch(k, &part, 1);
}

static void concat(const Move *m)
{
    int axis = m->node->attr.axis.axis, nin = m->node->nin;
    int64_t run = run_of(m, axis), to[LS_MAX_RANK], from[LS_MAX_RANK], first = 0;
    if (run > 0) {
        concat_runs(m, axis, run);
        return;
    }
    struct LsArena *a = m->k->g->arena;
    LsGrid *part = ls_arena_alloc(a, (size_t)nin, sizeof *part);
    ls_strides(&m->y->shape, m->y->layout, to);
    for (int x = 0; x < nin; x++) {
        const LsShape *shape = ls_in_shape(m->k->g, m->k->n, x);
        strides_of(m, x, from);
        LsCopy c = copy_new(m, shape, to, from);
        c.operand = x;
        c.to = first;
        first += shape->dim[axis] * to[axis];
        part[x] = ls_copy_part(m->k, ls_arena_printf(a, "part%d", x), &c);
    }
    ls_emit_launch(m->k, part, nin);
}

static void move_emit(const LsKernelText *k)
{
    Move m = {.k = k, .node = &k->g->node[k->n.i], .y = &k->g->value[ls_out(k->g, k->n, 0).i]};
    switch (m.node->op) {
    case LS_OP_TRANSPOSE:  transpose(&m); break;
    case LS_OP_CONVERT:    convert(&m); break;
    case LS_OP_SLICE:      slice(&m); break;
    case LS_OP_SLICE_GRAD: slice_grad(&m); break;
    case LS_OP_TILE:       tile(&m); break;
    case LS_OP_PLACE:      place(&m); break;
    case LS_OP_CONCAT:     concat(&m); break;
    case LS_OP_PAD:        ls_pad_emit(k); break;
    default:               ls_pad_grad_emit(k); break;
    }
}

const LsEmitter ls_emitter_move = {.emit = move_emit};
