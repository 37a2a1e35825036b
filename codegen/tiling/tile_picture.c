/* codegen/tiling/tile_picture.c -- see the header. */
#include "codegen/tiling/tile_picture.h"

#include "codegen/kernels/conv.h"
#include "codegen/kernels/loop_nest.h"
#include "codegen/kernels/reduce.h"
#include "codegen/kernels/resize.h"
#include "codegen/tiling/tile_loss.h"
#include "runtime/kernels/ls_kernel_sizes.h"

enum { ROWS = 2 };              /* the axis */

bool ls_is_picture(const LsGraph *g, LsValueId v)
{
    const LsShape *s = ls_shape(g, v);
    return ls_is(v) && (s->rank == 4 || s->rank == 5) && s->dim[0] == 1 && s->dim[ROWS] > 1;
}

/* ---- where bands begin ---- */

static int64_t gcd(int64_t a, int64_t b) { return b == 0 ? a : gcd(b, a % b); }

/* Rows of which bands are multiples: whole squares of Winograd's, and whole runs of a sum. */
static int64_t grain_of(const LsShape *s)
{
    const int64_t each = ls_count(s) / (s->dim[0] * s->dim[1] * s->dim[ROWS]);
    const int64_t run = LS_REDUCE_RUN / gcd(LS_REDUCE_RUN, each);
    return run > LS_WINO_SIDE ? run : LS_WINO_SIDE;
}

/* Values of `rows` rows in so many grains are a better measure of bands than those of *best: they
 * have grains for all tiles, and as few rows as possible. */
static bool is_better(int64_t rows, int64_t grains, int64_t tiles, int64_t best, int64_t most)
{
    return grains < tiles ? grains > most : most < tiles || rows < best;
}

bool ls_picture_choose(LsCtx *cx, LsTileRegion *r, const LsTiling *o)
{
    const LsGraph *g = r->g;
    int64_t grain = 1, best = 0, most = 0;
    for (uint32_t v = 1; v < g->nvalue; v++) {
        const LsShape *s = &g->value[v].shape;
        if (g->value[v].def.i == 0 || !ls_is_picture(g, (LsValueId){v})
            || ls_value_bytes(g, (LsValueId){v}, r->target->real_bytes) < o->least)
            continue;
        const int64_t rows = s->dim[ROWS], grains = rows / grain_of(s);
        if (!is_better(rows, grains, o->tiles, best, most) && (rows != best || grains >= most))
            continue;
        best = rows;
        most = grains;
        grain = grain_of(s);
    }
    const int64_t tiles = o->tiles < most ? o->tiles : most;
    if (tiles < 2)
        return false;
    r->samples = best;
    int64_t *end = ls_arena_alloc(cx->arena, (size_t)tiles, sizeof *end);
    for (int64_t t = 0; t < tiles; t++)
        end[t] = t + 1 == tiles ? r->samples : most * (t + 1) / tiles * grain;
    r->axis = ROWS;
    r->tiles = (int)tiles;
    r->end = end;
    return true;
}

LsSpan ls_picture_span(const LsTileRegion *r, int64_t rows, int t)
{
    int64_t at[2];
    for (int k = 0; k < 2; k++) {
        const int64_t cut = t + k > 0 ? r->end[t + k - 1] : 0;
        at[k] = cut * rows / r->samples;
        if (rows > r->samples && cut < r->samples)
            at[k] = at[k] / LS_WINO_SIDE * LS_WINO_SIDE;
    }
    return (LsSpan){at[0], at[1]};
}

/* ---- windows ---- */

static bool is_back(LsOpCode op)
{
    return op == LS_OP_CONV_DX || op == LS_OP_MAX_POOL_GRAD || op == LS_OP_AVERAGE_POOL_GRAD;
}

static bool is_pool(LsOpCode op)
{
    return op == LS_OP_MAX_POOL || op == LS_OP_MAX_POOL_GRAD || op == LS_OP_AVERAGE_POOL
           || op == LS_OP_AVERAGE_POOL_GRAD;
}

static bool is_resize(LsOpCode op) { return op == LS_OP_RESIZE || op == LS_OP_RESIZE_GRAD; }

static bool has_window(LsOpCode op)
{
    return op == LS_OP_CONV || op == LS_OP_CONV_DX || op == LS_OP_CONV_DW || is_pool(op);
}

/* Rows from the first tap of a window to behind its last one. */
static int64_t window_span(const LsGraph *g, LsNodeId n)
{
    const LsWindowAttr *at = &g->node[n.i].attr.window;
    const LsOpCode op = (LsOpCode)g->node[n.i].op;
    const int64_t taps = is_pool(op) ? at->kernel[0]
                         : op == LS_OP_CONV_DW ? ls_shape(g, ls_out(g, n, 0))->dim[2]
                                               : ls_in_shape(g, n, 1)->dim[2];
    return (taps - 1) * at->dilation[0] + 1;
}

static int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

static LsSpan clipped(int64_t first, int64_t end, int64_t rows)
{
    return (LsSpan){first > 0 ? first : 0, end < rows ? end : rows};
}

/* Rows of the source that rows y of the result read. */
static LsSpan ahead(const LsGraph *g, LsNodeId n, LsSpan y, int64_t rows)
{
    const LsWindowAttr *at = &g->node[n.i].attr.window;
    const int64_t first = y.first * at->stride[0] - at->pad_lo[0];
    return clipped(first, (y.end - 1) * at->stride[0] - at->pad_lo[0] + window_span(g, n), rows);
}

/* Rows of the result whose windows reach rows x of the source. */
static LsSpan back(const LsGraph *g, LsNodeId n, LsSpan x, int64_t rows)
{
    const LsWindowAttr *at = &g->node[n.i].attr.window;
    const int64_t stride = at->stride[0], first = x.first + at->pad_lo[0] - window_span(g, n) + 1;
    return clipped(-floor_div(-first, stride),
                   floor_div(x.end - 1 + at->pad_lo[0], stride) + 1, rows);
}

LsSpan ls_picture_terms(const LsTileRegion *r, LsNodeId n, int t)
{
    const LsConvTerms of = ls_conv_terms(r->g, n, r->target);
    const int64_t rows = ls_in_shape(r->g, n, 0)->dim[ROWS];
    const LsSpan own = ls_picture_span(r, rows, t);
    const int64_t first = own.first / of.rows * of.each, end = own.end / of.rows * of.each;
    return (LsSpan){first / of.block * of.block,
                    own.end == rows ? of.all : end / of.block * of.block};
}

/* The rows of dY that have these terms. */
static LsSpan rows_of_terms(const LsTileRegion *r, LsNodeId n, LsSpan terms)
{
    const LsConvTerms of = ls_conv_terms(r->g, n, r->target);
    return clipped(terms.first / of.each * of.rows, ls_ceil_div(terms.end, of.each) * of.rows,
                   ls_in_shape(r->g, n, 0)->dim[ROWS]);
}

LsSpan ls_picture_made_span(const LsTileRegion *r, LsNodeId n, int t, int64_t *of)
{
    const LsNode *node = &r->g->node[n.i];
    const LsShape *s = node->op == LS_OP_FUSED     ? &node->attr.fused.body->space
                       : node->op == LS_OP_CONV_DW || ls_tile_is_loss(node)
                           ? ls_in_shape(r->g, n, 0)
                           : ls_shape(r->g, ls_out(r->g, n, 0));
    *of = s->dim[ROWS];
    if (node->op == LS_OP_CONV_DW)
        return rows_of_terms(r, n, ls_picture_terms(r, n, t));
    return ls_picture_span(r, *of, t);
}

LsSpan ls_picture_read_span(const LsTileRegion *r, LsNodeId n, int k, int t)
{
    const LsGraph *g = r->g;
    const LsOpCode op = (LsOpCode)g->node[n.i].op;
    const int64_t rows = ls_in_shape(g, n, k)->dim[ROWS];
    int64_t of;
    const LsSpan own = ls_picture_made_span(r, n, t, &of);
    if (is_resize(op)) {
        int64_t from[2];
        ls_resize_rows(g, n, ROWS, own.first, own.end, from);
        return (LsSpan){from[0], from[1]};
    }
    if (!has_window(op) || (op == LS_OP_CONV_DW && k == 0))
        return own;
    return is_back(op) ? back(g, n, own, rows) : ahead(g, n, own, rows);
}

void ls_picture_attr(const LsTileRegion *r, LsNodeId n, int t, LsAttr *attr)
{
    const LsOpCode op = (LsOpCode)r->g->node[n.i].op;
    LsWindowAttr *at = &attr->window;
    if (!has_window(op))
        return;
    int64_t of;
    const LsSpan own = ls_picture_made_span(r, n, t, &of);
    const LsSpan from = ls_picture_read_span(r, n, op == LS_OP_CONV_DW, t);
    at->pad_lo[0] += is_back(op) ? own.first - from.first * at->stride[0]
                                 : from.first - own.first * at->stride[0];
    if (at->x_dim[0] > 0)
        at->x_dim[0] = is_back(op) ? own.end - own.first : from.end - from.first;
}

/* ---- which nodes ---- */

bool ls_picture_reads(const LsTileRegion *r, LsNodeId n, int k)
{
    const LsNode *node = &r->g->node[n.i];
    const LsValueId v = ls_in(r->g, n, k);
    switch (node->op) {
    case LS_OP_FUSED: {
        const LsShape *space = &node->attr.fused.body->space;
        return ls_is_picture(r->g, v) && ls_shape(r->g, v)->rank == space->rank
               && ls_shape(r->g, v)->dim[ROWS] == space->dim[ROWS];
    }
    case LS_OP_CONV: case LS_OP_CONV_DX:
        return k == 0;
    default: return !ls_tile_is_of_loss(node) || ls_tile_loss_reads(node, k);
    }
}

/* An operand that is read as a whole has one element for all rows. */
static bool is_for_all_rows(const LsShape *s, const LsShape *space)
{
    const int at = ROWS - (space->rank - s->rank);
    return at < 0 || s->dim[at] == 1;
}

static bool fused_has_rows(const LsTileRegion *r, LsNodeId n)
{
    const LsNode *node = &r->g->node[n.i];
    const LsFused *f = node->attr.fused.body;
    if ((f->space.rank != 4 && f->space.rank != 5) || f->space.dim[0] != 1
        || f->space.dim[ROWS] < 2)
        return false;
    for (int k = 0; k < node->nin; k++)
        if (ls_is(ls_in(r->g, n, k)) && !ls_picture_reads(r, n, k)
            && !is_for_all_rows(ls_in_shape(r->g, n, k), &f->space))
            return false;
    for (int k = 0; k < node->nout; k++) {
        const LsShape *y = ls_shape(r->g, ls_out(r->g, n, k));
        if (!f->out[k].reduce
            && (y->rank != f->space.rank || y->dim[ROWS] != f->space.dim[ROWS]
                || (f->out[k].length > 0 && f->split == ROWS)))
            return false;
    }
    return true;
}

/* Bands begin where the windows of a back step, and Winograd's squares, do. */
static bool bands_fit(const LsTileRegion *r, LsNodeId n)
{
    const LsNode *node = &r->g->node[n.i];
    const LsWindowAttr *at = &node->attr.window;
    const bool convolves = node->op == LS_OP_CONV || node->op == LS_OP_CONV_DX;
    int64_t side = is_back((LsOpCode)node->op) ? at->stride[0] : 1, of;
    if (convolves && ls_conv_is_winograd(r->g, n, r->target))
        side = LS_WINO_SIDE;
    for (int t = 0; t < r->tiles; t++)
        if (ls_picture_made_span(r, n, t, &of).first % side != 0)
            return false;
    return true;
}

/* The windows of an average tile the picture. */
static bool windows_are_apart(const LsWindowAttr *at)
{
    return at->kernel[0] == at->stride[0] && at->dilation[0] == 1 && at->pad_lo[0] == 0
           && at->pad_hi[0] == 0;
}

/* Every tile has rows of all its operands and results. */
static bool has_all_rows(const LsTileRegion *r, LsNodeId n)
{
    const LsNode *node = &r->g->node[n.i];
    const bool sums = node->op == LS_OP_CONV_DW;        /* a tile may be without terms */
    const bool loss = ls_tile_is_of_loss(node);
    int64_t of;
    for (int t = 0; t < r->tiles; t++) {
        const LsSpan own = ls_picture_made_span(r, n, t, &of);
        if (own.end <= own.first && !sums)
            return false;
        for (int k = 0; k < node->nin && own.end > own.first; k++) {
            if (!ls_is(ls_in(r->g, n, k)) || !ls_picture_reads(r, n, k))
                continue;
            const LsSpan from = ls_picture_read_span(r, n, k, t);
            if (!ls_is_picture(r->g, ls_in(r->g, n, k)) || from.end <= from.first)
                return false;
        }
    }
    for (int k = 0; k < node->nout && !sums; k++)
        if (node->op != LS_OP_FUSED && (!loss || ls_tile_loss_makes(node, k))
            && !ls_is_picture(r->g, ls_out(r->g, n, k)))
            return false;
    return true;
}

static bool is_uncut(const LsSliceAttr *at, const LsShape *x)
{
    return at->start[ROWS] == 0 && at->step[ROWS] == 1 && at->stop[ROWS] == x->dim[ROWS];
}

bool ls_picture_fits(const LsTileRegion *r, LsNodeId n)
{
    const LsGraph *g = r->g;
    const LsNode *node = &g->node[n.i];
    bool fits = false;
    switch (node->op) {
    case LS_OP_FUSED: fits = fused_has_rows(r, n); break;
    case LS_OP_CONV: case LS_OP_MAX_POOL: case LS_OP_MAX_POOL_GRAD: case LS_OP_AVERAGE_POOL:
    case LS_OP_CONVERT: case LS_OP_RESIZE: case LS_OP_RESIZE_GRAD: fits = true; break;
    case LS_OP_SOFTMAX: case LS_OP_LOG_SOFTMAX: case LS_OP_SOFTMAX_GRAD:
    case LS_OP_LOG_SOFTMAX_GRAD: fits = node->attr.axis.axis == 1; break;
    case LS_OP_CONV_DX: fits = node->nin <= 3; break;
    case LS_OP_AVERAGE_POOL_GRAD: fits = windows_are_apart(&node->attr.window); break;
    case LS_OP_CONV_DW:
        fits = ls_is_picture(g, ls_in(g, n, 0)) && ls_is_picture(g, ls_in(g, n, 1))
               && ls_conv_terms(g, n, r->target).all > 0;
        break;
    case LS_OP_CONCAT: fits = node->attr.axis.axis == 1; break;
    case LS_OP_SLICE: fits = is_uncut(&node->attr.slice, ls_in_shape(g, n, 0)); break;
    case LS_OP_PAD:
        fits = node->attr.pad.lo[ROWS] == 0 && node->attr.pad.hi[ROWS] == 0;
        break;
    default: fits = ls_tile_is_of_loss(node) && ls_tile_loss_fits(r, n); break;
    }
    if (!fits || (has_window((LsOpCode)node->op) && !is_pool((LsOpCode)node->op)
                  && !ls_is_picture(g, ls_in(g, n, 0))))
        return false;
    return has_all_rows(r, n) && (!has_window((LsOpCode)node->op) || bands_fit(r, n));
}
