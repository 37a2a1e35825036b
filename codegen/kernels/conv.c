/* codegen/kernels/conv.c -- CONV, CONV_DX, CONV_DW: the geometry (conv_geometry.h) as tables of
 * constants, for the code in runtime/kernels/ls_conv.h and the headers beside it, whose terms are
 * used here. */
#include "codegen/kernels/conv.h"

#include "codegen/kernels/computed_operand.h"
#include "codegen/kernels/conv_geometry.h"
#include "codegen/kernels/matmul.h"
#include "compiler/ops/product_shape.h"
#include "runtime/kernels/ls_depth_blocks.h"
#include "runtime/kernels/ls_kernel_sizes.h"

#include <inttypes.h>
#include <math.h>

/* The speed of the node's direct product relative to one in f32; and infinity where the target
 * wants no other. */
static double dot_rate(const LsGraph *g, LsNodeId n, const LsTarget *t)
{
    return ls_is_dot16(&g->node[n.i]) && t->dot_rate > 0 ? t->dot_rate : 1;
}

static double direct_rate(const LsGraph *g, LsNodeId n, const LsTarget *t)
{
    return t->direct ? INFINITY : dot_rate(g, n, t);
}

/* Whether the parts of the sum over positions are added up. With a gradient of every image they are
 * the result. */
static bool sums_parts(const LsGraph *g, LsNodeId n, const LsConvGeo *d)
{
    return d->splits > 1 && !ls_conv_weights_each(&g->node[n.i]);
}

/* At least as many as an image has in ls_conv_dw_units. */
static int64_t square_parts(const LsConvGeo *d)
{
    return d->group * ls_ceil_div(d->cout, LS_DW_ROWS) * ls_ceil_div(ls_geo_depth(d), LS_COLS);
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

static void emit_geo(const LsKernelText *k, const LsConvGeo *d)
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
    if (d->all > 0)
        ls_emit_line(e, ".before = %" PRId64 ", .all = %" PRId64 ",", d->before, d->all);
    if (d->image > 0)
        ls_emit_line(e, ".from = %" PRId64 ", .to = %" PRId64 ", .image = %" PRId64 ",", d->from,
                     d->to, d->image);
    if (d->dot16) {
        e->needs |= LS_NEEDS_DOT16;
        ls_emit_line(e, ".dot16 = LS_DOT16,");
    }
    ls_emit_line(e, "},");
}

/* Prints the table of phases; returns their number. */
static int64_t emit_phases(const LsKernelText *k, LsCostWay way)
{
    int64_t packed = 0, n = ls_geo_phases(k->g, k->n);
    ls_emit_line(k->e, "static const LsConv %s_conv[] = {", k->name);
    for (int64_t i = 0; i < n; i++) {
        LsConvGeo d = ls_geo_of_phase(k->g, k->n, i);
        d.packed = packed;
        packed += ls_geo_weights_size(&d, way, k->target->real_bytes);
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
    ls_emit_line(k->e, "LsConvArgs a = {.x = x, .w = %s, .bias = %s, .y = arg[%d]};",
                 ls_stored_source(k, "arg[1]", 1), ls_own_operands(node) > 2 ? "arg[2]" : "NULL",
                 node->nin);
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
    LsCostWay way =
        ls_geo_node_way(k->g, k->n, k->target->real_bytes, direct_rate(k->g, k->n, k->target));
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
    LsConvGeo d =
        ls_geo_of_weights(k->g, k->n, k->target->real_bytes, direct_rate(k->g, k->n, k->target));
    int64_t size = ls_count(ls_shape(k->g, ls_out(k->g, k->n, 0)));
    const bool sums = sums_parts(k->g, k->n, &d);
    const char *kind = ls_geo_is_depthwise(&d) ? "depthwise" : "conv";
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

/* The sum over some images goes on with the state of those before. */
static void weight_part_emit(const LsKernelText *k)
{
    LsEmit *e = k->e;
    const LsNode *node = &k->g->node[k->n.i];
    const LsConvGeo d =
        ls_geo_of_weights(k->g, k->n, k->target->real_bytes, direct_rate(k->g, k->n, k->target));
    ls_emit_line(e, "static const LsConv %s_conv[] = {", k->name);
    emit_geo(k, &d);
    ls_emit_line(e, "};");
    if (d.chunk == 0) {
        begin_part(k, "part");
        ls_computed_source(k, "dy", 0);
        ls_computed_source(k, "x", 1);
        ls_emit_result(k, "dw", 0);
        ls_emit_line(e, "for (int64_t u = lo; u < hi; u++)");
        ls_emit_line(e, "    ls_conv_dw_unit(%s_conv, dy, x, dw, u);", k->name);
        ls_emit_line(e, "}");
    }
    begin_kernel(k);
    if (ls_own_operands(node) > 2) {
        ls_emit_line(e, "if (arg[2] != arg[%d])", node->nin);
        ls_emit_line(e, "    memcpy(arg[%d], arg[2], %" PRId64 ");", node->nin,
                     ls_value_bytes(k->g, ls_out(k->g, k->n, 0), k->target->real_bytes));
    }
    if (d.chunk == 0) {
        ls_emit_line(e, "ls_parallel(run, %s_part, ls_conv_dw_units(%s_conv), arg);", k->name,
                     k->name);
    } else {
        ls_computed_source(k, "dy", 0);
        ls_computed_source(k, "x", 1);
        ls_emit_line(e, "ls_wino_dw_points(run, %s_conv, dy, x, arg[%d], arg[%d]);", k->name,
                     node->nin, node->nin + 1);
    }
    ls_emit_line(e, "}");
}

bool ls_conv_may_go_on(const LsGraph *g, LsNodeId n, const LsTarget *t, int64_t *parts,
                       int64_t *points)
{
    const LsNode *node = &g->node[n.i];
    const LsConvGeo d = ls_geo_of_weights(g, n, t->real_bytes, direct_rate(g, n, t));
    *parts = d.chunk > 0 ? 0 : d.splits;
    *points = d.chunk > 0 ? LS_WINO_POINTS * d.cin * d.cout
                          : ls_count(ls_shape(g, ls_out(g, n, 0)));
    const int64_t places = d.chunk > 0 ? ls_geo_wino_tiles(&d) / d.images
                                       : ls_geo_positions(&d) / d.images;
    if (places < (d.chunk > 0 ? LS_WINO_IMAGE : LS_DW_IMAGE))
        return false;
    return t->kind == LS_TARGET_CPU && node->op == LS_OP_CONV_DW && node->nin == 2
           && !node->attr.window.each && !ls_geo_is_depthwise(&d);
}

static LsCostWay conv_way(const LsGraph *g, LsNodeId n, const LsTarget *t)
{
    const double rate = dot_rate(g, n, t);
    if (!ls_geo_has_weights(g, n))
        return ls_geo_node_way(g, n, t->real_bytes, rate);
    LsConvGeo d = ls_geo_of_weights(g, n, t->real_bytes, rate);
    return ls_geo_is_depthwise(&d) ? LS_WAY_DEPTHWISE
           : d.chunk > 0           ? LS_WAY_WINOGRAD
                                   : LS_WAY_DIRECT;
}

LsConvTerms ls_conv_terms(const LsGraph *g, LsNodeId n, const LsTarget *t)
{
    int64_t parts, points;
    const LsConvGeo d = ls_geo_of_weights(g, n, t->real_bytes, direct_rate(g, n, t));
    const bool winograd = d.chunk > 0;
    LsConvTerms of = {.rows = winograd ? LS_WINO_SIDE : 1};
    if (d.images != 1 || !ls_conv_may_go_on(g, n, t, &parts, &points))
        return of;
    of.all = winograd ? ls_geo_wino_tiles(&d) : ls_geo_positions(&d);
    of.each = of.all / ls_ceil_div(d.ax[0].count, of.rows);
    of.block = ls_dw_block_size(of.all, winograd ? LS_WINO_IMAGE : LS_DW_IMAGE, LS_DW_DEPTH);
    return of;
}

bool ls_conv_is_winograd(const LsGraph *g, LsNodeId n, const LsTarget *t)
{
    return conv_way(g, n, t) == LS_WAY_WINOGRAD;
}

/* The squared norms of the weight gradients of images, block by block. */
static void squares_emit(const LsKernelText *k)
{
    LsEmit *e = k->e;
    const LsConvGeo d =
        ls_geo_of_weights(k->g, k->n, k->target->real_bytes, direct_rate(k->g, k->n, k->target));
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
    ls_squares_emit_sum(k, d.images,
                        ls_arena_printf(k->g->arena, "%s / %" PRId64, units, d.images));
    begin_kernel(k);
    ls_emit_line(e, "ls_parallel(run, %s_part, %s, arg);", k->name, units);
    ls_emit_line(e, "ls_parallel(run, %s_sum, 1, arg);", k->name);
    ls_emit_line(e, "}");
}

/* Serves the source of a convolution or of its weight gradient, unless depthwise. An element is
 * computed once per tap that reads it and per block of the result's channels, or with Winograd in
 * tiles of 6 x 6 for 4 x 4 results. */
double ls_conv_computes(const LsGraph *g, LsNodeId n, int operand, int *axis)
{
    bool weights = g->node[n.i].op == LS_OP_CONV_DW || g->node[n.i].op == LS_OP_CONV_DW_PART;
    if (g->node[n.i].op == LS_OP_CONV_DX || g->node[n.i].op == LS_OP_CONV_DW_SQUARES
        || operand != (weights ? 1 : 0))
        return 0;
    LsConvGeo d = weights ? ls_geo_of_weights(g, n, 4, 1) : ls_geo_of_phase(g, n, 0);
    if (ls_geo_is_depthwise(&d))
        return 0;
    *axis = 1;
    LsCostWay way = ls_geo_way(&d, 4, 1);
    if (weights ? d.chunk > 0 : way == LS_WAY_WINOGRAD)
        return 2.25;
    double read = (double)ls_geo_positions(&d) * (double)ls_geo_depth(&d) * (double)d.group;
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
    else if (k->g->node[k->n.i].op == LS_OP_CONV_DW_PART)
        weight_part_emit(k);
    else
        product_emit(k);
}

/* Elements of workspace for the packed weights of CONV or CONV_DX. */
static int64_t product_workspace(const LsGraph *g, LsNodeId n, int real_bytes, double direct_rate)
{
    LsCostWay way = ls_geo_node_way(g, n, real_bytes, direct_rate);
    int64_t size = 0;
    for (int64_t i = 0; i < ls_geo_phases(g, n); i++) {
        LsConvGeo d = ls_geo_of_phase(g, n, i);
        size += ls_geo_weights_size(&d, way, real_bytes);
    }
    return size;
}

static int64_t weight_workspace(const LsGraph *g, LsNodeId n, int real_bytes, double direct_rate)
{
    LsConvGeo d = ls_geo_of_weights(g, n, real_bytes, direct_rate);
    const bool part = g->node[n.i].op == LS_OP_CONV_DW_PART;
    if (d.chunk > 0)
        return LS_WINO_POINTS * ((part ? 0 : d.cin * d.cout) + d.chunk * (d.cin + d.cout));
    if (part)
        return 0;
    if (g->node[n.i].op == LS_OP_CONV_DW_SQUARES)
        return d.images * square_parts(&d);
    return sums_parts(g, n, &d) ? d.splits * ls_count(ls_shape(g, ls_out(g, n, 0))) : 0;
}

/* Suffices for the kernel with and without Winograd's algorithm. */
static int64_t conv_workspace(const LsGraph *g, LsNodeId n, const LsTarget *t)
{
    bool weights = ls_geo_has_weights(g, n);
    int64_t (*need)(const LsGraph *, LsNodeId, int, double) =
        weights ? weight_workspace : product_workspace;
    int64_t with = need(g, n, t->real_bytes, 1), without = need(g, n, t->real_bytes, INFINITY);
    return (with > without ? with : without) * t->real_bytes;
}

const LsEmitter ls_emitter_conv = {
    .emit = conv_emit, .workspace = conv_workspace, .way = conv_way};
