/* compiler/per_sample/per_sample_conv.c -- norms of a convolution's weight gradients, by pairs of
 * positions, or by tiles.
 *
 * A convolution is a product of the patches of its operand, a row for each position of the result.
 * So the gradient of its weight has the norm of row_pairs.h, with a group's patches and its
 * channels of the result as factors. */
#include "compiler/ops/window.h"
#include "compiler/per_sample/per_sample.h"
#include "compiler/per_sample/row_pairs.h"

typedef struct Geometry {
    LsWindowAttr window;
    LsShape y, x;               /* operands of the weight gradient */
    int64_t places, taps;       /* positions of y, elements of the window */
    int64_t channels, filters;  /* of a group */
} Geometry;

static Geometry geometry_of(const LsGraph *g, LsNodeId n)
{
    Geometry c = {.window = g->node[n.i].attr.window,
                  .y = *ls_in_shape(g, n, 0),
                  .x = *ls_in_shape(g, n, 1),
                  .places = 1,
                  .taps = 1};
    for (int d = 0; d < c.window.n; d++) {
        c.places *= c.y.dim[2 + d];
        c.taps *= c.window.kernel[d];
    }
    c.channels = c.x.dim[1] / c.window.group;
    c.filters = c.y.dim[1] / c.window.group;
    return c;
}

/* x with its padding, and cropped where no window reaches. */
static LsValueId padded(const LsPerSample *p, const Geometry *c, LsValueId x)
{
    LsAttr at = {.pad = {.mode = LS_PAD_CONSTANT}};
    bool any = false;
    for (int d = 0; d < c->window.n; d++) {
        const int64_t all =
            (c->y.dim[2 + d] - 1) * c->window.stride[d] + ls_window_span(&c->window, d);
        at.pad.lo[2 + d] = c->window.pad_lo[d];
        at.pad.hi[2 + d] = all - c->window.pad_lo[d] - c->x.dim[2 + d];
        any |= at.pad.lo[2 + d] != 0 || at.pad.hi[2 + d] != 0;
    }
    return any ? ls_append1(p->cx, p->g, LS_OP_PAD, x, &at) : x;
}

/* Places in the padded image, row-major: for each position the elements of its window. */
static LsValueId window_places(const LsPerSample *p, const Geometry *c, const LsShape *image)
{
    const int64_t count = c->places * c->taps;
    int64_t *at = ls_arena_alloc(p->cx->arena, (size_t)count, sizeof *at);
    for (int64_t i = 0; i < count; i++) {
        int64_t place = i / c->taps, tap = i % c->taps, step = 1;
        for (int d = c->window.n - 1; d >= 0; d--) {
            const int64_t y = place % c->y.dim[2 + d], k = tap % c->window.kernel[d];
            at[i] += (y * c->window.stride[d] + k * c->window.dilation[d]) * step;
            place /= c->y.dim[2 + d];
            tap /= c->window.kernel[d];
            step *= image->dim[2 + d];
        }
    }
    return ls_const_add(p->cx, p->g, LS_I64, &(LsShape){1, {count}}, at);
}

/* v [batch, channels, ..] with the channels behind: [batch, positions, channels]. In memory they
 * are there already. */
static LsValueId channels_behind(const LsPerSample *p, LsValueId v)
{
    const LsShape s = *ls_shape(p->g, v),
                  to = {3, {s.dim[0], ls_count(&s) / s.dim[0] / s.dim[1], s.dim[1]}};
    int perm[LS_MAX_RANK] = {0};
    for (int k = 1; k < s.rank; k++)
        perm[k] = k + 1 < s.rank ? k + 1 : 1;
    return ls_reshape(p->cx, p->g, ls_transpose(p->cx, p->g, v, perm), &to);
}

/* [batch, groups, places, channels * taps]; of one group [batch, places, taps * channels], in whole
 * rows of channels. */
static LsValueId patches(const LsPerSample *p, const Geometry *c, LsValueId x)
{
    const int64_t batch = p->g->batch, group = c->window.group;
    x = padded(p, c, x);
    const LsShape image = *ls_shape(p->g, x);
    if (group == 1) {
        const LsShape rows = {3, {batch, c->places, c->taps * c->channels}};
        x = ls_append2(p->cx, p->g, LS_OP_GATHER, channels_behind(p, x),
                       window_places(p, c, &image), &(LsAttr){.gather = {.axis = 1}});
        return ls_reshape(p->cx, p->g, x, &rows);
    }
    const LsShape flat = {3, {batch, c->x.dim[1], ls_count(&image) / batch / c->x.dim[1]}};
    const LsShape apart = {5, {batch, group, c->channels, c->places, c->taps}};
    const LsShape rows = {4, {batch, group, c->places, c->channels * c->taps}};
    x = ls_reshape(p->cx, p->g, x, &flat);
    x = ls_append2(p->cx, p->g, LS_OP_GATHER, x, window_places(p, c, &image),
                   &(LsAttr){.gather = {.axis = 2}});
    x = ls_reshape(p->cx, p->g, x, &apart);
    x = ls_transpose(p->cx, p->g, x, (int[]){0, 1, 3, 2, 4});
    return ls_reshape(p->cx, p->g, x, &rows);
}

LsValueId ls_conv_norm_by_tiles(LsPerSample *p, LsNodeId n)
{
    const Geometry c = geometry_of(p->g, n);
    const LsAttr at = p->g->node[n.i].attr;
    const bool depthwise = c.window.group > 1 && c.channels == 1 && c.filters == 1;
    return c.y.dim[0] != p->g->batch || depthwise ? (LsValueId){0}
        : ls_append2(p->cx, p->g, LS_OP_CONV_DW_SQUARES, ls_in(p->g, n, 0), ls_in(p->g, n, 1), &at);
}

LsValueId ls_conv_norm_by_pairs(LsPerSample *p, LsNodeId n)
{
    LsGraph *g = p->g;
    const Geometry c = geometry_of(g, n);
    if (c.y.dim[0] != g->batch)
        return (LsValueId){0};
    const bool grouped = c.window.group > 1;
    const LsShape y = {4, {g->batch, c.window.group, c.filters, c.places}};
    const LsRowSum of = {.rows = c.places,
                         .length = {c.filters, c.channels * c.taps},
                         .turned = {grouped, false},
                         .alpha = 1};
    const LsValueId dy = ls_in(g, n, 0);
    LsValueId sum =
        ls_row_pairs(p->cx, g, &of, grouped ? ls_reshape(p->cx, g, dy, &y) : channels_behind(p, dy),
                     patches(p, &c, ls_in(g, n, 1)));
    sum = ls_append1(p->cx, g, LS_OP_REDUCE_SUM, sum,
                     &(LsAttr){.reduce = {.axes = grouped ? 2 | 4 | 8 : 2 | 4, .keep = true}});
    return ls_reshape(p->cx, g, sum, &(LsShape){1, {g->batch}});
}
