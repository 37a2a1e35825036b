/* codegen/kernels/conv.c -- CONV, CONV_DX, CONV_DW: the geometry as tables of constants, for the code in
 * runtime/kernels/ls_conv.h and the headers beside it, whose terms are used here. */
#include "codegen/kernels/conv.h"

#include "codegen/kernels/computed_operand.h"
#include "codegen/kernels/matmul.h"
#include "compiler/ops/product_shape.h"
#include "runtime/kernels/ls_kernel_sizes.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef struct Geo {            /* the contents of an LsConv */
    int n;                      /* spatial axes */
    LsAxis ax[LS_MAX_SPATIAL];  /* the first n; LsConv has them at the end */
    int64_t images, group, cin, cout, run, splits, chunk, packed;
    bool back, dot16;
} Geo;
_Static_assert((int)LS_MAX_SPATIAL == (int)LS_CONV_AXES, "an LsConv has room for all axes");

/* A weight gradient, or norms of one. */
static bool is_weights(const LsGraph *g, LsNodeId n)
{
    return g->node[n.i].op == LS_OP_CONV_DW || g->node[n.i].op == LS_OP_CONV_DW_SQUARES;
}

static int64_t depth_of(const Geo *d)
{
    int64_t k = d->cin;
    for (int i = 0; i < d->n; i++)
        k *= d->ax[i].taps;
    return k;
}

static int64_t positions_of(const Geo *d)
{
    int64_t p = d->images;
    for (int i = 0; i < d->n; i++)
        p *= d->ax[i].count;
    return p;
}

/* Whether there is one channel per group, and at most LS_TAPS taps along the last axis. */
static bool depthwise(const Geo *d)
{
    return d->group > 1 && d->cin == 1 && d->cout == 1 && d->ax[d->n - 1].tap_dim <= LS_TAPS;
}

/* Elements of the packed weights of d: panels are padded to whole vectors. */
static int64_t packed_size(const Geo *d, int real_bytes)
{
    int64_t lanes = LS_VEC_BYTES_MOST / real_bytes;
    if (depthwise(d))
        return depth_of(d) * d->group;
    const int64_t depth = d->dot16 && depth_of(d) < LS_DOT16_PITCH ? LS_DOT16_PITCH : depth_of(d);
    return depth * d->group * ((d->cout + lanes - 1) / lanes * lanes);
}

static int64_t tiles_of(const Geo *d)       /* of Winograd's algorithm */
{
    return d->images * ls_ceil_div(d->ax[0].count, LS_WINO_SIDE)
        * ls_ceil_div(d->ax[1].count, LS_WINO_SIDE);
}

/* Whether Winograd's algorithm is faster for phase d than the direct product. Costs are cycles of two fused
 * multiply-adds of 16 lanes. The transforms of weights and tiles cost a fixed number of cycles per element,
 * and tiles that stick out of the result add multiplications. direct_rate: speed of the direct product's multiplications
 * relative to Winograd's, which are in f32; infinity: no Winograd. */
static bool winograd_wins(const Geo *d, double direct_rate)
{
    enum { ROOM = 20 << 20 };   /* bytes of weights */
    bool fits = d->n == 2 && d->group == 1 && d->cin % LS_WINO_STEP == 0
        && d->cout % LS_WINO_STEP == 0 && d->cin <= LS_WINO_DEPTH
        && LS_WINO_POINTS * d->cin * d->cout * 4 <= ROOM;
    for (int i = 0; i < d->n; i++) {
        const LsAxis *a = &d->ax[i];
        fits &= a->taps == 3 && a->from_step == 1 && a->to_step == 1 && a->off_step == 1;
    }
    if (!fits)
        return false;
    double tiles = (double)tiles_of(d);
    double pairs = (double)(d->cin * d->cout), points = LS_WINO_POINTS;
    double direct = (double)positions_of(d) * 9 * pairs / 32;
    double maps = points * (2.5 * pairs + 0.5 * tiles * (double)(d->cin + d->cout));
    return tiles * points * pairs / 32 + maps < 0.85 * direct / direct_rate;
}

/* LS_WAY_FEW: so few positions for so many weights that packing all weights beforehand is a large share of
 * the work. */
static LsCostWay way_of(const Geo *d, int real_bytes, double direct_rate)
{
    enum { POSITIONS = 1024, CHANNELS = 256 };
    if (depthwise(d))
        return LS_WAY_DEPTHWISE;
    if (real_bytes == 4 && winograd_wins(d, direct_rate))
        return LS_WAY_WINOGRAD;
    return positions_of(d) <= POSITIONS && d->cout >= CHANNELS ? LS_WAY_FEW : LS_WAY_DIRECT;
}

/* Elements of workspace for the weights of phase d. */
static int64_t weights_size(const Geo *d, LsCostWay way, int real_bytes)
{
    return way == LS_WAY_FEW        ? 0
           : way == LS_WAY_WINOGRAD ? LS_WINO_POINTS * d->cin * d->cout
                                    : packed_size(d, real_bytes);
}

/* The kernel copies rows of its source as they are: they are not computed and not stored in 16 bits. */
static bool reads_in_place(const LsGraph *g, LsNodeId n, int operand)
{
    return g->node[n.i].computed == NULL && !ls_is_16(ls_type(g, ls_in(g, n, operand)))
        && g->node[n.i].rounds == LS_REAL;
}

/* Sets d's run; a source that is not read in place has one run per position. */
static void merge_runs(Geo *d, bool computed)
{
    const LsAxis *last = &d->ax[d->n - 1];
    bool touch = d->group == 1 && last->taps > 1 && last->off_step == 1 && !computed;
    d->run = touch ? last->taps * d->cin : d->cin;
}

/* The forward gather of node n, with X, W and Y of these shapes. */
static Geo forward_geo(const LsGraph *g, LsNodeId n, const LsShape *x, const LsShape *w,
                       const LsShape *y)
{
    const LsWindowAttr *at = &g->node[n.i].attr.window;
    Geo d = {.n = at->n, .images = x->dim[0], .group = at->group, .cin = w->dim[1],
             .cout = w->dim[0] / at->group, .splits = 1, .dot16 = ls_is_dot16(&g->node[n.i])};
    for (int i = 0; i < d.n; i++)
        d.ax[i] = (LsAxis){.count = y->dim[2 + i], .to_step = 1, .to_dim = y->dim[2 + i],
                           .from_step = at->stride[i], .from_dim = x->dim[2 + i],
                           .taps = w->dim[2 + i], .off = -at->pad_lo[i], .off_step = at->dilation[i],
                           .tap_step = 1, .tap_dim = w->dim[2 + i]};
    merge_runs(&d, !reads_in_place(g, n, is_weights(g, n)));
    return d;
}

/* Axis k of the positions x = `phase` + stride * i of X. Tap t reads Y at (x + pad - t * dilation) / stride
 * if the division is exact. Taps run backwards, so that the indices into Y ascend. */
static LsAxis back_axis(const LsWindowAttr *at, int k, int64_t phase, int64_t x, int64_t w, int64_t y)
{
    int64_t stride = at->stride[k], dilation = at->dilation[k];
    LsAxis a = {.count = (x - phase + stride - 1) / stride,
                .to = phase,
                .to_step = stride,
                .to_dim = x,
                .from_step = 1,
                .from_dim = y,
                .tap_dim = w,
                .off_step = 1,
                .tap_step = -1};
    for (int64_t t = w - 1; t >= 0; t--) {
        int64_t at_y = phase + at->pad_lo[k] - t * dilation;
        if (at_y % stride != 0)
            continue;
        if (a.taps == 0) {
            a.tap = t;
            a.off = at_y / stride;
        } else if (a.taps == 1) {
            a.tap_step = t - a.tap;
            a.off_step = at_y / stride - a.off;
        }
        a.taps++;
    }
    return a;
}

/* The number of phases of a CONV (one) or CONV_DX. */
static int64_t phase_count(const LsGraph *g, LsNodeId n)
{
    const LsWindowAttr *at = &g->node[n.i].attr.window;
    const LsShape *x = ls_shape(g, ls_out(g, n, 0));
    int64_t count = 1;
    for (int i = 0; i < at->n && g->node[n.i].op == LS_OP_CONV_DX; i++)
        count *= at->stride[i] < x->dim[2 + i] ? at->stride[i] : x->dim[2 + i];
    return count;
}

static Geo phase_geo(const LsGraph *g, LsNodeId n, int64_t phase)
{
    const LsWindowAttr *at = &g->node[n.i].attr.window;
    const LsShape *from = ls_in_shape(g, n, 0), *w = ls_in_shape(g, n, 1);
    const LsShape *to = ls_shape(g, ls_out(g, n, 0));
    if (g->node[n.i].op == LS_OP_CONV)
        return forward_geo(g, n, from, w, to);
    Geo d = {.n = at->n, .images = to->dim[0], .group = at->group, .cin = w->dim[0] / at->group,
             .cout = w->dim[1], .splits = 1, .back = true, .dot16 = ls_is_dot16(&g->node[n.i])};
    for (int i = d.n - 1; i >= 0; i--) {
        int64_t x = to->dim[2 + i], phases = at->stride[i] < x ? at->stride[i] : x;
        d.ax[i] = back_axis(at, i, phase % phases, x, w->dim[2 + i], from->dim[2 + i]);
        phase /= phases;
    }
    merge_runs(&d, !reads_in_place(g, n, 0));
    return d;
}

/* The speed of the node's direct product relative to one in f32; and infinity where the target wants no other. */
static double dot_rate(const LsGraph *g, LsNodeId n, const LsTarget *t)
{
    return ls_is_dot16(&g->node[n.i]) && t->dot_rate > 0 ? t->dot_rate : 1;
}
static double direct_rate(const LsGraph *g, LsNodeId n, const LsTarget *t)
{
    return t->direct ? INFINITY : dot_rate(g, n, t);
}

/* All phases go one way. */
static LsCostWay node_way(const LsGraph *g, LsNodeId n, int real_bytes, double direct_rate)
{
    Geo d = phase_geo(g, n, 0);
    LsCostWay way = way_of(&d, real_bytes, direct_rate);
    for (int64_t i = 1; i < phase_count(g, n); i++) {
        d = phase_geo(g, n, i);
        if (way_of(&d, real_bytes, direct_rate) != way)
            return LS_WAY_DIRECT;
    }
    return way;
}

/* Whether the parts of the sum over positions are added up. With a gradient of every image they are the result. */
static bool sums_parts(const LsGraph *g, LsNodeId n, const Geo *d)
{
    return d->splits > 1 && !ls_conv_weights_each(&g->node[n.i]);
}

/* The weight gradient, with the sum over positions split so that several threads have units although dW is
 * small. Each split costs a copy of dW in the workspace. */
static Geo weight_geo(const LsGraph *g, LsNodeId n, int real_bytes, double direct_rate)
{
    enum { UNITS = 16, POSITIONS = 512, BYTES = 4 << 20, CHUNK = 8 << 20 };
    const bool each = ls_conv_weights_each(&g->node[n.i]);
    const LsShape w = ls_conv_weight_shape(g, n);
    Geo d = forward_geo(g, n, ls_in_shape(g, n, 1), &w, ls_in_shape(g, n, 0));
    if (each) {
        d.splits = d.images;
        return d;
    }
    int64_t units = depthwise(&d) ? ls_ceil_div(d.group * real_bytes, LS_VEC_BYTES_MOST)
                                  : d.group * ls_ceil_div(d.cout, LS_DW_ROWS)
                                        * ls_ceil_div(depth_of(&d), LS_COLS);
    int64_t parts = (UNITS + units - 1) / units, most = positions_of(&d) / POSITIONS;
    int64_t fit = BYTES / (ls_count(&w) * real_bytes);
    parts = parts < most ? parts : most;
    parts = parts < fit ? parts : fit;
    d.splits = parts > 1 ? parts : 1;
    if (way_of(&d, real_bytes, direct_rate) == LS_WAY_WINOGRAD) {
        int64_t tiles = tiles_of(&d);
        /* Half of the bytes that the node reads, at most: small models stay small. */
        int64_t bytes = (ls_count(ls_in_shape(g, n, 0)) + ls_count(ls_in_shape(g, n, 1))) * 2;
        d.chunk = (bytes < CHUNK ? bytes : CHUNK) / (LS_WINO_POINTS * 4 * (d.cin + d.cout));
        d.chunk = d.chunk > 64 ? d.chunk : 64;
        d.chunk = (tiles + (tiles - 1) / d.chunk) / ((tiles - 1) / d.chunk + 1); /* about equal */
    }
    return d;
}

/* At least as many as an image has in ls_conv_dw_units. */
static int64_t square_parts(const Geo *d)
{
    return d->group * ls_ceil_div(d->cout, LS_DW_ROWS) * ls_ceil_div(depth_of(d), LS_COLS);
}

/* ---- text ---- */
static void emit_axis(LsEmit *e, const LsAxis *a)
{
    ls_emit_line(e, "{.count = %" PRId64 ", .to = %" PRId64 ", .to_step = %" PRId64 ", .to_dim = %"
                 PRId64 ", .from_step = %" PRId64 ", .from_dim = %" PRId64 ",", a->count, a->to,
                 a->to_step, a->to_dim, a->from_step, a->from_dim);
    ls_emit_line(e, " .taps = %" PRId64 ", .off = %" PRId64 ", .off_step = %" PRId64 ", .tap = %"
                 PRId64 ", .tap_step = %" PRId64 ", .tap_dim = %" PRId64 "},", a->taps, a->off,
                 a->off_step, a->tap, a->tap_step, a->tap_dim);
}

static void emit_geo(const LsKernelText *k, const Geo *d)
{
    LsEmit *e = k->e;
    ls_emit_line(e, "{");
    ls_emit_line(e, ".ax = {");
    for (int i = d->n; i < LS_MAX_SPATIAL; i++)
        ls_emit_line(e, "LS_AXIS_NONE,");
    for (int i = 0; i < d->n; i++)
        emit_axis(e, &d->ax[i]);
    ls_emit_line(e, "},");
    ls_emit_line(e,
                 ".images = %" PRId64 ", .group = %" PRId64 ", .cin = %" PRId64 ", .cout = %" PRId64
                 ", .run = %" PRId64 ",",
                 d->images, d->group, d->cin, d->cout, d->run);
    ls_emit_line(e,
                 ".splits = %" PRId64 ", .chunk = %" PRId64 ", .packed = %" PRId64 ", .back = %d,",
                 d->splits, d->chunk, d->packed, d->back);
    if (d->dot16) {
        e->needs |= LS_NEEDS_DOT16;
        ls_emit_line(e, ".dot16 = LS_DOT16,");
    }
    ls_emit_line(e, "},");
}

/* Prints the table of phases; returns their number. */
static int64_t emit_phases(const LsKernelText *k, LsCostWay way)
{
    int64_t packed = 0, n = phase_count(k->g, k->n);
    ls_emit_line(k->e, "static const LsConv %s_conv[] = {", k->name);
    for (int64_t i = 0; i < n; i++) {
        Geo d = phase_geo(k->g, k->n, i);
        d.packed = packed;
        packed += weights_size(&d, way, k->target->real_bytes);
        emit_geo(k, &d);
    }
    ls_emit_line(k->e, "};");
    return n;
}

static void begin_part(const LsKernelText *k, const char *part)
{
    ls_emit_line(k->e, "static void %s_%s(LsRun *run, void *const arg[], int64_t lo, int64_t hi)",
                 k->name, part);
    ls_emit_line(k->e, "{");
    ls_emit_line(k->e, "(void)run;");
}

static void begin_kernel(const LsKernelText *k)
{
    ls_emit_line(k->e, "static void %s(LsRun *run, void *const arg[])", k->name);
    ls_emit_line(k->e, "{");
}

/* Prints a part of CONV or CONV_DX: units of one kind of work over all phases. */
static void emit_part(const LsKernelText *k, const char *part, const char *work, int64_t phases,
                      LsCostWay way)
{
    const LsNode *node = &k->g->node[k->n.i];
    begin_part(k, part);
    LsType to = ls_result_type(k, 0);
    ls_computed_source(k, "x", 0);
    ls_emit_line(k->e, "LsConvArgs a = {.x = x, .w = %s, .bias = %s, .y = arg[%d]};", ls_stored_source(k, "arg[1]", 1),
                 ls_own_operands(node) > 2 ? "arg[2]" : "NULL", node->nin);
    if (ls_is_16(to))
        ls_emit_line(k->e, "a.to = %s;", ls_stored_word(to));
    if (way != LS_WAY_FEW)
        ls_emit_line(k->e, "a.packed = arg[%d];", node->nin + 1);
    ls_emit_line(k->e, "ls_conv_some(%s_conv, %" PRId64 ", &%s, &a, lo, hi);", k->name, phases,
                 work);
    ls_emit_line(k->e, "}");
}

static void emit_call(const LsKernelText *k, const char *part, const char *work, int64_t phases)
{
    ls_emit_line(k->e, "ls_parallel(run, %s_%s, ls_conv_all(%s_conv, %" PRId64 ", &%s), arg);",
                 k->name, part, k->name, phases, work);
}

/* Prints CONV or CONV_DX: pack the weights, then multiply. */
static void product_emit(const LsKernelText *k)
{
    static const struct { const char *pack, *work; } name[] = {
        [LS_WAY_DIRECT] = {"ls_conv_pack_work", "ls_conv_work"},
        [LS_WAY_FEW] = {NULL, "ls_conv_few_work"},
        [LS_WAY_WINOGRAD] = {"ls_wino_pack_work", "ls_wino_work"},
        [LS_WAY_DEPTHWISE] = {"ls_depthwise_pack_work", "ls_depthwise_work"},
    };
    LsCostWay way = node_way(k->g, k->n, k->target->real_bytes, direct_rate(k->g, k->n, k->target));
    int64_t phases = emit_phases(k, way);
    if (name[way].pack != NULL)
        emit_part(k, "pack", name[way].pack, phases, way);
    emit_part(k, "part", name[way].work, phases, way);
    begin_kernel(k);
    if (name[way].pack != NULL)
        emit_call(k, "pack", name[way].pack, phases);
    emit_call(k, "part", name[way].work, phases);
    ls_emit_line(k->e, "}");
}

static void weight_emit(const LsKernelText *k)
{
    LsEmit *e = k->e;
    const char *name = k->name;
    Geo d = weight_geo(k->g, k->n, k->target->real_bytes, direct_rate(k->g, k->n, k->target));
    int64_t size = ls_count(ls_shape(k->g, ls_out(k->g, k->n, 0)));
    const bool sums = sums_parts(k->g, k->n, &d);
    const char *kind = depthwise(&d) ? "depthwise" : "conv";
    ls_emit_line(e, "static const LsConv %s_conv[] = {", name);
    emit_geo(k, &d);
    ls_emit_line(e, "};");
    if (d.chunk > 0) {
        int nin = k->g->node[k->n.i].nin;
        begin_kernel(k);
        ls_computed_source(k, "dy", 0);
        ls_computed_source(k, "x", 1);
        ls_emit_line(e, "ls_wino_dw(run, %s_conv, dy, x, arg[%d], arg[%d]);", name, nin, nin + 1);
        ls_emit_line(e, "}");
        return;
    }
    begin_part(k, "part");
    ls_computed_source(k, "dy", 0);
    ls_computed_source(k, "x", 1);
    if (sums)
        ls_emit_workspace(k, "real", "dw");
    else
        ls_emit_result(k, "dw", 0);
    ls_emit_line(e, "for (int64_t u = lo; u < hi; u++)");
    ls_emit_line(e, "    ls_%s_dw_unit(%s_conv, dy, x, dw, u);", kind, name);
    ls_emit_line(e, "}");
    if (sums) {
        begin_part(k, "sum");
        ls_emit_result(k, "dw", 0);
        ls_emit_workspace(k, "real", "part");
        ls_emit_line(e, "ls_sum_parts(dw, part, %" PRId64 ", %" PRId64 ", lo, hi);", size,
                     d.splits);
        ls_emit_line(e, "}");
    }
    begin_kernel(k);
    ls_emit_line(e, "ls_parallel(run, %s_part, ls_%s_dw_units(%s_conv), arg);", name, kind, name);
    if (sums)
        ls_emit_line(e, "ls_parallel(run, %s_sum, ls_ceil_div(%" PRId64 ", LS_SUM_UNIT), arg);",
                     name, size);
    ls_emit_line(e, "}");
}

/* The squared norms of the weight gradients of images, block by block. */
static void squares_emit(const LsKernelText *k)
{
    LsEmit *e = k->e;
    const Geo d = weight_geo(k->g, k->n, k->target->real_bytes, direct_rate(k->g, k->n, k->target));
    ls_emit_line(e, "static const LsConv %s_conv[] = {", k->name);
    emit_geo(k, &d);
    ls_emit_line(e, "};");
    begin_part(k, "part");
    ls_computed_source(k, "dy", 0);
    ls_computed_source(k, "x", 1);
    ls_emit_workspace(k, "real", "part");
    ls_emit_line(e, "for (int64_t u = lo; u < hi; u++)");
    ls_emit_line(e, "    part[u] = ls_conv_dw_squares(%s_conv, dy, x, u);", k->name);
    ls_emit_line(e, "}");
    const char *units = ls_arena_printf(k->g->arena, "ls_conv_dw_units(%s_conv)", k->name);
    ls_squares_emit_sum(k, d.images, ls_arena_printf(k->g->arena, "%s / %" PRId64, units, d.images));
    begin_kernel(k);
    ls_emit_line(e, "ls_parallel(run, %s_part, %s, arg);", k->name, units);
    ls_emit_line(e, "ls_parallel(run, %s_sum, 1, arg);", k->name);
    ls_emit_line(e, "}");
}

/* Serves the source of a convolution or of its weight gradient, unless depthwise. An element is computed
 * once per tap that reads it and per block of the result's channels, or with Winograd in tiles of 6 x 6 for
 * 4 x 4 results. */
double ls_conv_computes(const LsGraph *g, LsNodeId n, int operand, int *axis)
{
    bool weights = g->node[n.i].op == LS_OP_CONV_DW;
    if (g->node[n.i].op == LS_OP_CONV_DX || g->node[n.i].op == LS_OP_CONV_DW_SQUARES || operand != (weights ? 1 : 0))
        return 0;
    Geo d = weights ? weight_geo(g, n, 4, 1) : phase_geo(g, n, 0);
    if (depthwise(&d))
        return 0;
    *axis = 1;
    LsCostWay way = way_of(&d, 4, 1);
    if (weights ? d.chunk > 0 : way == LS_WAY_WINOGRAD)
        return 2.25;
    double read = (double)positions_of(&d) * (double)depth_of(&d) * (double)d.group;
    int64_t block = weights ? LS_DW_ROWS : way == LS_WAY_FEW ? LS_FEW_COLS : LS_CONV_COLS;
    double blocks = (double)ls_ceil_div(d.cout, block);
    return read * blocks / (double)ls_count(ls_in_shape(g, n, operand));
}

static void conv_emit(const LsKernelText *k)
{
    k->e->needs |= LS_NEEDS_CONV;
    ls_computed_emit(k);
    if (k->g->node[k->n.i].op == LS_OP_CONV_DW_SQUARES)
        squares_emit(k);
    else if (k->g->node[k->n.i].op == LS_OP_CONV_DW)
        weight_emit(k);
    else
        product_emit(k);
}

/* Elements of workspace for the packed weights of CONV or CONV_DX. */
static int64_t product_workspace(const LsGraph *g, LsNodeId n, int real_bytes, double direct_rate)
{
    LsCostWay way = node_way(g, n, real_bytes, direct_rate);
    int64_t size = 0;
    for (int64_t i = 0; i < phase_count(g, n); i++) {
        Geo d = phase_geo(g, n, i);
        size += weights_size(&d, way, real_bytes);
    }
    return size;
}

static int64_t weight_workspace(const LsGraph *g, LsNodeId n, int real_bytes, double direct_rate)
{
    Geo d = weight_geo(g, n, real_bytes, direct_rate);
    if (d.chunk > 0)
        return LS_WINO_POINTS * (d.cin * d.cout + d.chunk * (d.cin + d.cout));
    if (g->node[n.i].op == LS_OP_CONV_DW_SQUARES)
        return d.images * square_parts(&d);
    return sums_parts(g, n, &d) ? d.splits * ls_count(ls_shape(g, ls_out(g, n, 0))) : 0;
}

/* Suffices for the kernel with and without Winograd's algorithm. */
static int64_t conv_workspace(const LsGraph *g, LsNodeId n, const LsTarget *t)
{
    bool weights = is_weights(g, n);
    int64_t (*need)(const LsGraph *, LsNodeId, int, double) = weights ? weight_workspace : product_workspace;
    int64_t with = need(g, n, t->real_bytes, 1), without = need(g, n, t->real_bytes, INFINITY);
    return (with > without ? with : without) * t->real_bytes;
}

static LsCostWay conv_way(const LsGraph *g, LsNodeId n, const LsTarget *t)
{
    const double rate = dot_rate(g, n, t);
    if (!is_weights(g, n))
        return node_way(g, n, t->real_bytes, rate);
    Geo d = weight_geo(g, n, t->real_bytes, rate);
    return depthwise(&d) ? LS_WAY_DEPTHWISE : d.chunk > 0 ? LS_WAY_WINOGRAD : LS_WAY_DIRECT;
}

const LsEmitter ls_emitter_conv = {
    .emit = conv_emit, .workspace = conv_workspace, .way = conv_way};
