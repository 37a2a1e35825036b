/* codegen/kernels/conv_geometry.c -- see the header. */
#include "codegen/kernels/conv_geometry.h"

#include "codegen/kernels/computed_operand.h"
#include "compiler/ops/product_shape.h"

#include <math.h>

_Static_assert((int)LS_MAX_SPATIAL == (int)LS_CONV_AXES, "an LsConv has room for all axes");

bool ls_geo_has_weights(const LsGraph *g, LsNodeId n)
{
    return g->node[n.i].op == LS_OP_CONV_DW || g->node[n.i].op == LS_OP_CONV_DW_SQUARES
           || g->node[n.i].op == LS_OP_CONV_DW_PART;
}

int64_t ls_geo_depth(const LsConvGeo *d)
{
    int64_t k = d->cin;
    for (int i = 0; i < d->n; i++)
        k *= d->ax[i].taps;
    return k;
}

int64_t ls_geo_positions(const LsConvGeo *d)
{
    int64_t p = d->images;
    for (int i = 0; i < d->n; i++)
        p *= d->ax[i].count;
    return p;
}

bool ls_geo_is_depthwise(const LsConvGeo *d)
{
    return d->group > 1 && d->cin == 1 && d->cout == 1 && d->ax[d->n - 1].tap_dim <= LS_TAPS;
}

/* Elements of the packed weights of d: panels are padded to whole vectors. */
static int64_t packed_size(const LsConvGeo *d, int real_bytes)
{
    int64_t lanes = LS_VEC_BYTES_MOST / real_bytes;
    if (ls_geo_is_depthwise(d))
        return ls_geo_depth(d) * d->group;
    const int64_t depth =
        d->dot16 && ls_geo_depth(d) < LS_DOT16_PITCH ? LS_DOT16_PITCH : ls_geo_depth(d);
    return depth * d->group * ((d->cout + lanes - 1) / lanes * lanes);
}

int64_t ls_geo_wino_tiles(const LsConvGeo *d)
{
    return d->images * ls_ceil_div(d->ax[0].count, LS_WINO_SIDE)
        * ls_ceil_div(d->ax[1].count, LS_WINO_SIDE);
}

/* Whether Winograd's algorithm is faster for phase d than the direct product. Costs are cycles of
 * two fused multiply-adds of 16 lanes. The transforms of weights and tiles cost a fixed number of
 * cycles per element, and tiles that stick out of the result add multiplications. direct_rate:
 * speed of the direct product's multiplications relative to Winograd's, which are in f32; infinity:
 * no Winograd. */
static bool winograd_wins(const LsConvGeo *d, double direct_rate)
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
    double tiles = (double)ls_geo_wino_tiles(d);
    double pairs = (double)(d->cin * d->cout), points = LS_WINO_POINTS;
    double direct = (double)ls_geo_positions(d) * 9 * pairs / 32;
    double maps = points * (2.5 * pairs + 0.5 * tiles * (double)(d->cin + d->cout));
    return tiles * points * pairs / 32 + maps < 0.85 * direct / direct_rate;
}

/* LS_WAY_FEW: so few positions for so many weights that packing all weights beforehand is a large
 * share of the work. */
LsCostWay ls_geo_way(const LsConvGeo *d, int real_bytes, double direct_rate)
{
    enum { POSITIONS = 1024, CHANNELS = 256 };
    if (ls_geo_is_depthwise(d))
        return LS_WAY_DEPTHWISE;
    if (real_bytes == 4 && winograd_wins(d, direct_rate))
        return LS_WAY_WINOGRAD;
    return ls_geo_positions(d) <= POSITIONS && d->cout >= CHANNELS ? LS_WAY_FEW : LS_WAY_DIRECT;
}

int64_t ls_geo_weights_size(const LsConvGeo *d, LsCostWay way, int real_bytes)
{
    return way == LS_WAY_FEW        ? 0
           : way == LS_WAY_WINOGRAD ? LS_WINO_POINTS * d->cin * d->cout
                                    : packed_size(d, real_bytes);
}

/* The kernel copies rows of its source as they are: they are not computed and not stored in 16
 * bits. */
static bool reads_in_place(const LsGraph *g, LsNodeId n, int operand)
{
    return g->node[n.i].computed == NULL && !ls_is_16(ls_type(g, ls_in(g, n, operand)))
        && g->node[n.i].rounds == LS_REAL;
}

/* Sets d's run; a source that is not read in place has one run per position. */
static void merge_runs(LsConvGeo *d, bool computed)
{
    const LsAxis *last = &d->ax[d->n - 1];
    bool touch = d->group == 1 && last->taps > 1 && last->off_step == 1 && !computed;
    d->run = touch ? last->taps * d->cin : d->cin;
}

/* The forward gather of node n, with X, W and Y of these shapes. */
static LsConvGeo forward_geo(const LsGraph *g, LsNodeId n, const LsShape *x, const LsShape *w,
                       const LsShape *y)
{
    const LsWindowAttr *at = &g->node[n.i].attr.window;
    LsConvGeo d = {.n = at->n, .images = x->dim[0], .group = at->group, .cin = w->dim[1],
             .cout = w->dim[0] / at->group, .splits = 1, .dot16 = ls_is_dot16(&g->node[n.i])};
    for (int i = 0; i < d.n; i++)
        d.ax[i] = (LsAxis){.count = y->dim[2 + i],
                           .to_step = 1,
                           .to_dim = y->dim[2 + i],
                           .from_step = at->stride[i],
                           .from_dim = x->dim[2 + i],
                           .taps = w->dim[2 + i],
                           .off = -at->pad_lo[i],
                           .off_step = at->dilation[i],
                           .tap_step = 1,
                           .tap_dim = w->dim[2 + i]};
    merge_runs(&d, !reads_in_place(g, n, ls_geo_has_weights(g, n)));
    return d;
}

/* Axis k of the positions x = `phase` + stride * i of X. Tap t reads Y at (x + pad - t * dilation)
 * / stride if the division is exact. Taps run backwards, so that the indices into Y ascend. */
static LsAxis back_axis(const LsWindowAttr *at, int k, int64_t phase, int64_t x, int64_t w,
                        int64_t y)
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

int64_t ls_geo_phases(const LsGraph *g, LsNodeId n)
{
    const LsWindowAttr *at = &g->node[n.i].attr.window;
    const LsShape *x = ls_shape(g, ls_out(g, n, 0));
    int64_t count = 1;
    for (int i = 0; i < at->n && g->node[n.i].op == LS_OP_CONV_DX; i++)
        count *= at->stride[i] < x->dim[2 + i] ? at->stride[i] : x->dim[2 + i];
    return count;
}

LsConvGeo ls_geo_of_phase(const LsGraph *g, LsNodeId n, int64_t phase)
{
    const LsWindowAttr *at = &g->node[n.i].attr.window;
    const LsShape *from = ls_in_shape(g, n, 0), *w = ls_in_shape(g, n, 1);
    const LsShape *to = ls_shape(g, ls_out(g, n, 0));
    if (g->node[n.i].op == LS_OP_CONV)
        return forward_geo(g, n, from, w, to);
    LsConvGeo d = {.n = at->n,
                   .images = to->dim[0],
                   .group = at->group,
                   .cin = w->dim[0] / at->group,
                   .cout = w->dim[1],
                   .splits = 1,
                   .back = true,
                   .dot16 = ls_is_dot16(&g->node[n.i])};
    for (int i = d.n - 1; i >= 0; i--) {
        int64_t x = to->dim[2 + i], phases = at->stride[i] < x ? at->stride[i] : x;
        d.ax[i] = back_axis(at, i, phase % phases, x, w->dim[2 + i], from->dim[2 + i]);
        phase /= phases;
    }
    merge_runs(&d, !reads_in_place(g, n, 0));
    return d;
}

/* The same for all images of the batch, and all rows: of some of them the algorithm must be that of
 * all. */
static LsConvGeo of_all(const LsGraph *g, LsNodeId n, LsConvGeo d)
{
    const LsTilePlace *of = g->node[n.i].tile;
    if (of != NULL && of->axis == 0)
        d.images = of->of;
    else if (of != NULL)
        d.ax[0].count = ls_ceil_div(of->of - d.ax[0].to, d.ax[0].to_step);
    return d;
}

LsCostWay ls_geo_node_way(const LsGraph *g, LsNodeId n, int real_bytes, double direct_rate)
{
    LsConvGeo d = of_all(g, n, ls_geo_of_phase(g, n, 0));
    LsCostWay way = ls_geo_way(&d, real_bytes, direct_rate);
    for (int64_t i = 1; i < ls_geo_phases(g, n); i++) {
        d = of_all(g, n, ls_geo_of_phase(g, n, i));
        if (ls_geo_way(&d, real_bytes, direct_rate) != way)
            return LS_WAY_DIRECT;
    }
    return way;
}

/* Of d, the sum of all images and rows, those terms that the node adds up. */
static void set_terms(const LsGraph *g, LsNodeId n, const LsConvGeo *some, LsConvGeo *d)
{
    const LsTilePlace *of = g->node[n.i].tile;
    const int64_t all = d->chunk > 0 ? ls_geo_wino_tiles(d) : ls_geo_positions(d);
    if (of == NULL || g->node[n.i].op != LS_OP_CONV_DW_PART)
        return;
    d->all = all;
    if (of->axis == 0) {
        d->before = all / d->images * of->first;
        d->images = some->images;
        return;
    }
    const int64_t side = d->chunk > 0 ? LS_WINO_SIDE : 1;
    d->before = all / ls_ceil_div(d->ax[0].count, side) * (of->first / side);
    d->image = all;
    d->from = of->from - d->before;
    d->to = of->to - d->before;
    d->ax[0].count = some->ax[0].count;
}

/* The weight gradient, with the sum over positions split so that several threads have units
 * although dW is small. Each split costs a copy of dW in the workspace. */
LsConvGeo ls_geo_of_weights(const LsGraph *g, LsNodeId n, int real_bytes, double direct_rate)
{
    enum { UNITS = 16, POSITIONS = 512, BYTES = 4 << 20, CHUNK = 8 << 20 };
    const bool each = ls_conv_weights_each(&g->node[n.i]);
    const LsShape w = ls_conv_weight_shape(g, n);
    LsConvGeo d = forward_geo(g, n, ls_in_shape(g, n, 1), &w, ls_in_shape(g, n, 0));
    if (each) {
        d.splits = d.images;
        return d;
    }
    const LsConvGeo some = d;
    d = of_all(g, n, d);
    int64_t units = ls_geo_is_depthwise(&d) ? ls_ceil_div(d.group * real_bytes, LS_VEC_BYTES_MOST)
                                  : d.group * ls_ceil_div(d.cout, LS_DW_ROWS)
                                        * ls_ceil_div(ls_geo_depth(&d), LS_COLS);
    int64_t parts = (UNITS + units - 1) / units, most = ls_geo_positions(&d) / POSITIONS;
    int64_t fit = BYTES / (ls_count(&w) * real_bytes);
    parts = parts < most ? parts : most;
    parts = parts < fit ? parts : fit;
    d.splits = parts > 1 ? parts : 1;
    if (ls_geo_way(&d, real_bytes, direct_rate) == LS_WAY_WINOGRAD) {
        int64_t tiles = ls_geo_wino_tiles(&d);
        /* Half of the bytes that the node reads, at most: small models stay small. */
        int64_t bytes = (ls_count(ls_in_shape(g, n, 0)) + ls_count(ls_in_shape(g, n, 1))) * 2;
        d.chunk = (bytes < CHUNK ? bytes : CHUNK) / (LS_WINO_POINTS * 4 * (d.cin + d.cout));
        d.chunk = d.chunk > 64 ? d.chunk : 64;
        d.chunk = (tiles + (tiles - 1) / d.chunk) / ((tiles - 1) / d.chunk + 1); /* about equal */
        if (tiles / d.images >= LS_WINO_IMAGE && d.chunk < LS_DW_DEPTH)
            d.chunk = LS_DW_DEPTH;
    }
    set_terms(g, n, &some, &d);
    return d;
}
