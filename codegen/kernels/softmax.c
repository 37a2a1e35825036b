/* codegen/kernels/softmax.c -- LS_K_SOFTMAX: softmax, log-softmax and their gradients along one
 * axis.
 *
 * All operands have the same layout, so memory is outer x axis x inner. If the axis is innermost,
 * each row is contiguous; otherwise a tile of rows side by side is computed at once, with one
 * accumulator per row. */
#include "codegen/kernels/widen_rows.h"

#include <inttypes.h>

enum { TILE = 128 };        /* rows side by side */

typedef struct Softmax {
    const LsKernelText *k;
    LsEmit *e;
    bool log, grad;
    int64_t outer, n, inner;
    int64_t lanes;
} Softmax;

static Softmax softmax_new(const LsKernelText *k)
{
    const LsNode *node = &k->g->node[k->n.i];
    const LsValue *y = &k->g->value[ls_out(k->g, k->n, 0).i];
    Softmax s = {.k = k, .e = k->e, .outer = 1, .inner = 1};
    int order[LS_MAX_RANK], axis = node->attr.axis.axis;
    bool behind = false;
    s.log = node->op == LS_OP_LOG_SOFTMAX || node->op == LS_OP_LOG_SOFTMAX_GRAD;
    s.grad = node->op == LS_OP_SOFTMAX_GRAD || node->op == LS_OP_LOG_SOFTMAX_GRAD;
    s.n = y->shape.dim[axis];
    ls_walk_order(&y->shape, y->layout, order);
    for (int a = 0; a < y->shape.rank; a++) {
        if (order[a] == axis)
            behind = true;
        else if (behind)
            s.inner *= y->shape.dim[order[a]];
        else
            s.outer *= y->shape.dim[order[a]];
    }
    s.lanes = ls_lanes(s.n);
    return s;
}

static void pointers(const Softmax *s)
{
    if (s->grad) {
        ls_emit_operand(s->k, "all_dy", 0);
        ls_emit_operand(s->k, "all_y", 1);
        ls_emit_result(s->k, "all_dx", 0);
    } else {
        ls_emit_operand(s->k, "all_x", 0);
        ls_emit_result(s->k, "all_y", 0);
    }
}

static void row_loop(const Softmax *s)
{
    ls_emit_line(s->e, "%s(i, 0, " LS_BOUND64 ") {", ls_lanes_word(ls_fours(s->n)), s->n);
}

/* Prints one row of n contiguous elements. */
static void row(const Softmax *s)
{
    int64_t n = s->n, lanes = s->lanes;
    if (s->grad && s->log) {
        ls_emit_line(s->e, "const real sum = (real)ls_row_sum(dy, %" PRId64 ", %" PRId64 ");", n,
                     lanes);
        row_loop(s);
        ls_emit_line(s->e, "dx[i] = dy[i] - ls_exp(y[i]) * sum;");
    } else if (s->grad) {
        ls_emit_line(s->e, "const real sum = (real)ls_row_dot(dy, y, %" PRId64 ", %" PRId64 ");", n,
                     lanes);
        row_loop(s);
        ls_emit_line(s->e, "dx[i] = (dy[i] - sum) * y[i];");
    } else if (s->log) {
        ls_emit_line(s->e, "const real max = ls_row_max(x, %" PRId64 ", %" PRId64 ");", n, lanes);
        ls_emit_line(s->e,
                     "const real log = ls_log((real)ls_row_exp(x, max, %" PRId64 ", %" PRId64 "));",
                     n, lanes);
        row_loop(s);
        ls_emit_line(s->e, "y[i] = x[i] - max - log;");
    } else {
        ls_emit_line(s->e, "const real max = ls_row_max(x, %" PRId64 ", %" PRId64 ");", n, lanes);
        ls_emit_line(s->e,
                     "const real scale = (real)(1 / ls_row_exp_to(y, x, max, %" PRId64 ", %" PRId64
                     "));",
                     n, lanes);
        ls_emit_line(s->e, "LS_ROW_SYNC;");
        /* The loop indexes the whole array: through a shifted pointer nvcc cannot tell elements
         * apart, and would read and write them one by one. */
        bool staged = ls_is_16(ls_result_type(s->k, 0));
        if (!staged)
            ls_emit_line(s->e, "%s(i, at, at + " LS_INNER64 ") {", ls_lanes_word(ls_fours(n)), n);
        else
            row_loop(s);
        ls_emit_line(s->e, staged ? "y[i] *= scale;" : "all_y[i] *= scale;");
    }
    ls_emit_line(s->e, "}");
}

/* Prints the rooms for neighbours in a kernel with rows in place. */
static void rooms_in_place(const Softmax *s, int wide)
{
    if (wide == 0)
        return;
    ls_emit_room(s->e, wide, s->grad ? "all_dy" : "all_x");
    if (s->grad)
        ls_emit_room(s->e, wide, "all_y");
}

/* Prints one row of 16 bits, which starts at `at`, in place. Exponentials are computed again rather
 * than kept. */
static void row_in_place(const Softmax *s, int wide)
{
    struct LsArena *a = s->k->g->arena;
    const LsType type = ls_result_type(s->k, 0);
    const char *x = ls_row_get(s->k, type, wide, "all_x"),
               *y = ls_row_get(s->k, type, wide, "all_y");
    const char *dy = ls_row_get(s->k, type, wide, "all_dy"), *v;
    const char *size = ls_arena_printf(a, "%" PRId64 ", %" PRId64, s->n, s->lanes);
    if (s->grad && s->log)
        ls_emit_line(s->e, "const real sum = (real)ls_row_sum(all_dy + at, %s);", size);
    else if (s->grad)
        ls_emit_line(s->e, "const real sum = (real)ls_row_dot(all_dy + at, all_y + at, %s);", size);
    else
        ls_emit_line(s->e, "const real max = ls_row_max(all_x + at, %s);", size);
    if (!s->grad)
        ls_emit_line(s->e,
                     s->log ? "const real log = ls_log((real)ls_row_exp(all_x + at, max, %s));"
                            : "const real scale = (real)(1 / ls_row_exp(all_x + at, max, %s));",
                     size);
    v = s->grad && s->log ? ls_arena_printf(a, "%s - ls_exp(%s) * sum", dy, y)
      : s->grad           ? ls_arena_printf(a, "(%s - sum) * %s", dy, y)
      : s->log            ? ls_arena_printf(a, "%s - max - log", x)
                          : ls_arena_printf(a, "ls_exp(%s - max) * scale", x);
    ls_emit_line(s->e, "%s(i, at, at + " LS_INNER64 ") {", ls_lanes_word(wide), s->n);
    ls_row_put(s->k, type, wide, s->grad ? "all_dx" : "all_y", v);
    ls_emit_line(s->e, "}");
}

/* Prints one row, which starts at `at`, read and written as its elements are stored. */
static void stored_row(const Softmax *s, int y)
{
    const LsRowStage x = {"all_x", "at", s->n, y}, dy = {"all_dy", "at", s->n, y};
    const LsRowStage dx = {"all_dx", "at", s->n, y}, out = {"all_y", "at", s->n, y};
    if (s->grad) {
        ls_row_stage_in(s->k, "dy", 0, &dy);
        ls_row_stage_in(s->k, "y", 1, &out);
        ls_row_stage_out(s->k, "dx", 0, &dx);
        row(s);
        ls_row_stage_end(s->k, "dx", 0, &dx);
    } else {
        ls_row_stage_in(s->k, "x", 0, &x);
        ls_row_stage_out(s->k, "y", 0, &out);
        row(s);
        ls_row_stage_end(s->k, "y", 0, &out);
    }
}

static void rows(const Softmax *s)
{
    int64_t group = ls_row_group(s->k, s->n);
    const LsGrid part = ls_rows_grid("part", s->outer, group, s->n);
    ls_emit_part(s->k, &part);
    pointers(s);
    const bool in_place = ls_rows_in_place(s->k);
    const int wide = in_place ? ls_wide(s->n, true) : 0;
    rooms_in_place(s, wide);
    ls_emit_line(s->e, "LS_ROWS(j, lo * " LS_N64 ", ls_least(hi * " LS_N64 ", " LS_N64 ")) {",
                 group, group, s->outer);
    ls_emit_line(s->e, "const int64_t at = j * " LS_N64 ";", s->n);
    if (in_place)
        row_in_place(s, wide);
    else
        stored_row(s, part.y);
    ls_emit_close(s->e, 2);
    ls_emit_launch(s->k, &part, 1);
}

/* ---- tiles ---- */
/* Prints a statement for each row of the tile. */
static void columns(const Softmax *s, const char *statement)
{
    ls_emit_line(s->e, "LS_LANES(i, 0, width) {");
    ls_emit_line(s->e, "%s", statement);
    ls_emit_line(s->e, "}");
}

/* Prints a statement for each row and each element of the axis, at offset c from the first. */
static void sweep(const Softmax *s, const char *statement)
{
    ls_emit_line(s->e, "for (int64_t c = 0; c < %" PRId64 "; c += %" PRId64 ") {", s->n * s->inner,
                 s->inner);
    columns(s, statement);
    ls_emit_line(s->e, "}");
}

static void tile_body(const Softmax *s)
{
    ls_emit_line(s->e, "LS_LOCAL(double, sum, %d);", TILE);
    if (!s->grad) {
        ls_emit_line(s->e, "LS_LOCAL(real, max, %d);", TILE);
        ls_emit_line(s->e, "LS_LOCAL(real, scale, %d);", TILE);
        columns(s, "max[i] = -INFINITY;");
        sweep(s, "max[i] = ls_max(max[i], x[c + i]);");
    }
    columns(s, "sum[i] = 0;");
    if (s->grad && s->log) {
        sweep(s, "sum[i] += dy[c + i];");
        sweep(s, "dx[c + i] = dy[c + i] - ls_exp(y[c + i]) * (real)sum[i];");
    } else if (s->grad) {
        sweep(s, "sum[i] += dy[c + i] * y[c + i];");
        sweep(s, "dx[c + i] = (dy[c + i] - (real)sum[i]) * y[c + i];");
    } else if (s->log) {
        sweep(s, "sum[i] += ls_exp(x[c + i] - max[i]);");
        columns(s, "scale[i] = ls_log((real)sum[i]);");
        sweep(s, "y[c + i] = x[c + i] - max[i] - scale[i];");
    } else {
        ls_emit_line(s->e, "for (int64_t c = 0; c < %" PRId64 "; c += %" PRId64 ") {",
                     s->n * s->inner, s->inner);
        ls_emit_line(s->e, "LS_LANES(i, 0, width) {");
        ls_emit_line(s->e, "const real e = ls_exp(x[c + i] - max[i]);");
        ls_emit_line(s->e, "y[c + i] = e;");
        ls_emit_line(s->e, "sum[i] += e;");
        ls_emit_close(s->e, 2);
        columns(s, "scale[i] = (real)(1 / sum[i]);");
        sweep(s, "y[c + i] *= scale[i];");
    }
}

/* Declares pointers to this tile, which starts at `at`. */
static void shift(const Softmax *s)
{
    ls_emit_line(s->e, s->grad ? "const real *const dy = all_dy + at, *const y = all_y + at;"
                               : "const real *const x = all_x + at;");
    ls_emit_line(s->e, s->grad ? "real *const dx = all_dx + at;" : "real *const y = all_y + at;");
}

static void tiles(const Softmax *s)
{
    int64_t ntile = ls_ceil_div(s->inner, TILE);
    const LsGrid part = {"part", s->outer * ntile, ls_threads(s->inner, TILE), 1};
    ls_emit_part(s->k, &part);
    pointers(s);
    ls_emit_line(s->e, "for (int64_t u = lo; u < hi; u++) {");
    ls_emit_line(s->e, "const int64_t i0 = u %% " LS_N64 " * " LS_N ";", ntile, TILE);
    ls_emit_line(s->e, "const int64_t at = u / " LS_N64 " * " LS_N64 " + i0;", ntile,
                 s->n * s->inner);
    ls_emit_line(s->e, "const int64_t width = ls_least(" LS_N ", " LS_N64 " - i0);", TILE,
                 s->inner);
    shift(s);
    tile_body(s);
    ls_emit_close(s->e, 2);
    ls_emit_launch(s->k, &part, 1);
}

static void softmax_emit(const LsKernelText *k)
{
    const Softmax s = softmax_new(k);
    if (s.inner == 1)
        rows(&s);
    else
        tiles(&s);
}

const LsEmitter ls_emitter_softmax = {.emit = softmax_emit};
