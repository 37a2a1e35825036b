/* codegen/cuda/conv_weights.c -- which convolutions, and the kernel.
 *
 * A block walks a share of the rows of all strips and leaves its partial sums in the workspace; a
 * second part adds these in double, in order. If there are enough blocks of channels, a block walks
 * all rows, and its sums are the result. */
#include "codegen/cuda/conv_weights.h"

#include "codegen/kernels/loop_nest.h"
#include "runtime/cuda_kernels/ls_cuda_sizes.h"

#include <inttypes.h>

enum {
    LEAST_ROWS = 16,            /* fewest rows of a block */
    PART_OF_TENSORS = 8,        /* the workspace is at most 1 / 8 of the tensors (conv_plan.c) */
    END_X = 32, END_Y = 8,      /* threads of a unit that adds partial sums */
};
static const double waste = 1.34;           /* most elements multiplied per useful one, along an
                                             * axis */

typedef struct Weights {
    int64_t images, x_channels, x_rows, x_columns, y_channels, y_rows, y_columns;
    int m;                      /* 16 m channels of y in a block */
    int64_t across, down;       /* blocks over the channels of x, and of y */
    int64_t strips, rows;       /* of all images; of all strips, of y */
    int64_t share, shares;      /* rows of a block; blocks over them */
    int64_t weights;
} Weights;

static Weights weights_of(const LsGraph *g, LsNodeId n)
{
    const LsShape *y = ls_in_shape(g, n, 0), *x = ls_in_shape(g, n, 1);
    Weights w = {.images = x->dim[0], .x_channels = x->dim[1], .x_rows = x->dim[2],
                 .x_columns = x->dim[3], .y_channels = y->dim[1], .y_rows = y->dim[2],
                 .y_columns = y->dim[3]};
    w.m = w.y_channels <= 32 ? 2 : 4;
    w.across = ls_ceil_div(w.x_channels, LS_TAPS_X);
    w.down = ls_ceil_div(w.y_channels, LS_TAPS_Y(w.m));
    w.strips = w.images * ls_ceil_div(w.y_columns, LS_TAPS_STRIP);
    w.rows = w.strips * w.y_rows;
    w.weights = w.y_channels * LS_TAPS_ALL * w.x_channels;
    /* Occupancy: registers suffice for one block, or for two narrow ones. */
    int64_t want = LS_GPU_PROCESSORS * (w.m == 2 ? 2 : 1) / (w.across * w.down);
    int64_t room = (ls_count(x) + ls_count(y)) / PART_OF_TENSORS / w.weights;
    want = want < room ? want : room;
    w.share = ls_ceil_div(w.rows, want < 1 ? 1 : want);
    w.share = w.share < LEAST_ROWS ? LEAST_ROWS : w.share;
    w.shares = ls_ceil_div(w.rows, w.share);
    return w;
}

/* ---- which ones ---- */
static bool is_plain(const LsGraph *g, LsNodeId n)
{
    const LsNode *node = &g->node[n.i];
    const LsWindowAttr *at = &node->attr.window;
    bool plain = node->op == LS_OP_CONV_DW && node->nin == 2 && at->n == 2 && at->group == 1;
    for (int d = 0; plain && d < 2; d++)
        plain =
            at->kernel[d] == 3 && at->stride[d] == 1 && at->dilation[d] == 1 && at->pad_lo[d] >= 0;
    return plain;
}

static bool fills(int64_t n, int64_t grain)
{
    return (double)(ls_ceil_div(n, grain) * grain) <= waste * (double)n;
}

bool ls_conv_weights_serves(const LsGraph *g, LsNodeId n, const LsTarget *t)
{
    if (t->kind != LS_TARGET_CUDA || !t->tf32 || t->real_bytes != 4 || !is_plain(g, n))
        return false;
    const Weights w = weights_of(g, n);
    return w.x_channels % 4 == 0 && w.y_channels % 4 == 0
        && fills(w.x_channels, LS_TAPS_X) && fills(w.y_channels, LS_TAPS_Y(w.m))
        && fills(w.y_columns, LS_TAPS_STRIP);
}

/* ---- the kernel ---- */
static void strip(const LsKernelText *k, const Weights *w)
{
    const LsWindowAttr *at = &k->g->node[k->n.i].attr.window;
    LsEmit *e = k->e;
    ls_emit_line(e, "const int64_t strip = at / " LS_N64 ", row = at %% " LS_N64 ";", w->y_rows,
                 w->y_rows);
    ls_emit_line(e, "const int64_t image = strip / " LS_N64 ", column = strip %% " LS_N64 " * "
                 LS_N ";",
                 w->strips / w->images, w->strips / w->images, LS_TAPS_STRIP);
    ls_emit_line(e, "const int64_t count = ls_least(" LS_N64 " - row, end - at);", w->y_rows);
    ls_emit_line(e, "const LsTaps taps = ls_taps_at(x + image * " LS_N64 " + c0, y + image * "
                 LS_N64 " + m0, " LS_N64 ", " LS_N64 ", c0, m0,",
                 w->x_rows * w->x_columns * w->x_channels,
                 w->y_rows * w->y_columns * w->y_channels, w->x_channels, w->y_channels);
    ls_emit_line(e, "    " LS_N64 ", " LS_N64 ", " LS_N64 ", " LS_N64 ", " LS_N64 ", " LS_N ");",
                 w->x_rows, w->x_columns, w->y_columns, at->pad_lo[0], at->pad_lo[1], w->m);
    ls_emit_line(
        e, "turn = ls_taps_strip(sum, taps, (int)row, (int)count, (int)column, xs, ys, turn);");
    ls_emit_line(e, "at += count;");
}

static void rows_part(const LsKernelText *k, const Weights *w, const LsGrid *part)
{
    LsEmit *e = k->e;
    ls_emit_part_together(k, part, w->m == 2 ? 2 : 1);
    ls_emit_operand(k, "y", 0);
    ls_emit_operand(k, "x", 1);
    if (w->shares > 1)
        ls_emit_workspace(k, "real", "shares");
    else
        ls_emit_result(k, "dw", 0);
    ls_emit_line(e, "LS_SHARED(real, xs, [LS_TAPS_XS]);");
    ls_emit_line(e, "LS_SHARED(real, ys, [LS_TAPS_YS(%d)]);", w->m);
    ls_emit_line(e, "for (int64_t u = lo; u < hi; u++) {");
    ls_emit_line(e, "const int64_t c0 = u %% " LS_N64 " * " LS_N ", m0 = u / " LS_N64 " %% "
                 LS_N64 " * " LS_N ";", w->across, LS_TAPS_X, w->across, w->down, LS_TAPS_Y(w->m));
    ls_emit_line(e, "const int64_t share = u / " LS_N64 ";", w->across * w->down);
    ls_emit_line(e, "const int64_t end = ls_least((share + 1) * " LS_N64 ", " LS_N64 ");", w->share,
                 w->rows);
    ls_emit_line(e, "real sum[%d] = {0};", LS_TAPS_SUMS(w->m));
    ls_emit_line(e, "int turn = 0;");
    ls_emit_line(e, "int64_t at = share * " LS_N64 ";", w->share);
    ls_emit_line(e, "while (at < end) {");
    strip(k, w);
    ls_emit_line(e, "}");
    ls_emit_line(e, "ls_taps_store(%s, sum, " LS_N64 ", " LS_N64 ", c0, m0, " LS_N ");",
                 w->shares > 1 ? ls_arena_printf(k->g->arena, "shares + share * " LS_N64,
                                                 w->weights)
                               : "dw", w->x_channels, w->y_channels, w->m);
    ls_emit_close(e, 2);
}

/* Adds the partial sums of END_X weights; rows of threads split them. */
static void end_part(const LsKernelText *k, const Weights *w, const LsGrid *part)
{
    LsEmit *e = k->e;
    ls_emit_part(k, part);
    ls_emit_result(k, "dw", 0);
    ls_emit_workspace(k, "real", "shares");
    ls_emit_line(e, "for (int64_t u = lo; u < hi; u++) {");
    ls_emit_line(e, "LS_LOCAL_ROWS(double, total, %d, %d);", END_X, END_Y);
    ls_emit_line(e, "const int64_t first = u * " LS_N ", count = ls_least(" LS_N ", " LS_N64
                 " - first);", END_X,
                 END_X, w->weights);
    ls_emit_line(e, "LS_LANES(i, 0, count) {");
    ls_emit_line(e, "total[i] = 0;");
    ls_emit_line(e, "}");
    ls_emit_line(e, "LS_ROWS(share, 0, " LS_N64 ") {", w->shares);
    ls_emit_line(e, "LS_LANES(i, 0, count) {");
    ls_emit_line(e, "total[i] += (double)shares[share * " LS_N64 " + first + i];", w->weights);
    ls_emit_close(e, 2);
    ls_emit_line(e, "LS_SYNC;");
    ls_emit_line(e, "LS_ROWS(top, 0, 1) {");
    ls_emit_line(e, "LS_LANES(i, 0, count) {");
    ls_emit_line(e, "double sum = total[i];");
    ls_emit_line(e, "LS_FOLD(other, %d)", END_Y);
    ls_emit_line(e, "    sum += LS_OF_ROW(total, other)[i];");
    ls_emit_line(e, "dw[first + i] = (real)sum;");
    ls_emit_close(e, 4);
}

static void emit(const LsKernelText *k)
{
    const Weights w = weights_of(k->g, k->n);
    const LsGrid part[] = {
        {"part", w.shares * w.across * w.down, LS_TAPS_ACROSS, LS_TAPS_DOWN},
        {"end", ls_ceil_div(w.weights, END_X), END_X, END_Y}};
    rows_part(k, &w, &part[0]);
    if (w.shares > 1)
        end_part(k, &w, &part[1]);
    ls_emit_launch(k, part, w.shares > 1 ? 2 : 1);
}

static int64_t workspace(const LsGraph *g, LsNodeId n, const LsTarget *t)
{
    const Weights w = weights_of(g, n);
    return w.shares > 1 ? w.shares * w.weights * t->real_bytes : 0;
}

const LsEmitter ls_emitter_conv_weights = {.emit = emit, .workspace = workspace};
