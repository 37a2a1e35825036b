/* compiler/passes/per_sample_conv.c -- norms of a convolution's weight gradients, by pairs of positions.
 *
 * A convolution is a product of the patches of its operand, a row for each position of the result. So the gradient of
 * its weight has the norm of row_pairs.h, with a group's patches and its channels of the result as factors. */
#include "compiler/ops/window.h"
#include "compiler/passes/per_sample.h"
#include "compiler/passes/row_pairs.h"

typedef struct Geometry {
    LsWindowAttr window;
    LsShape y, x;               /* operands of the weight gradient */
    int64_t places, taps;       /* positions of y, elements of the window */
    int64_t channels, filters;  /* of a group */
} Geometry;

static Geometry geometry_of(const LsGraph *g, LsNodeId n)
{
    Geometry c = {.window = g->node[n.i].attr.window, .y = *ls_in_shape(g, n, 0), .x = *ls_in_shape(g, n, 1),
                  .places = 1, .taps = 1};
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
        const int64_t all = (c->y.dim[2 + d] - 1) * c->window.stride[d] + ls_window_span(&c->window, d);
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

/* [batch, groups, places, channels * taps] */
static LsValueId patches(const LsPerSample *p, const Geometry *c, LsValueId x)
{
    const int64_t batch = p->g->batch, group = c->window.group;
    x = padded(p, c, x);
    const LsShape image = *ls_shape(p->g, x);
    const LsShape flat = {3, {batch, c->x.dim[1], ls_count(&image) / batch / c->x.dim[1]}};
    const LsShape apart = {5, {batch, group, c->channels, c->places, c->taps}};
    const LsShape rows = {4, {batch, group, c->places, c->channels * c->taps}};
    x = ls_reshape(p->cx, p->g, x, &flat);
    x = ls_append2(p->cx, p->g, LS_OP_GATHER, x, window_places(p, c, &image), &(LsAttr){.gather = {.axis = 2}});
    x = ls_reshape(p->cx, p->g, x, &apart);
    x = ls_transpose(p->cx, p->g, x, (int[]){0, 1, 3, 2, 4});
    return ls_reshape(p->cx, p->g, x, &rows);
}

LsValueId ls_conv_norm_by_rows(LsPerSample *p, LsNodeId n)
{
    LsGraph *g = p->g;
    const Geometry c = geometry_of(g, n);
    const int64_t length = c.channels * c.taps;
    if (c.y.dim[0] != g->batch || !ls_takes_pairs(p, c.places, length, c.filters))
        return (LsValueId){0};
    const LsShape y = {4, {g->batch, c.window.group, c.filters, c.places}};
    const LsRowSum of = {.rows = c.places, .length = {c.filters, length}, .turned = {true, false}, .alpha = 1};
    LsValueId sum = ls_row_pairs(p->cx, g, &of, ls_reshape(p->cx, g, ls_in(g, n, 0), &y), patches(p, &c, ls_in(g, n, 1)));
    sum = ls_append1(p->cx, g, LS_OP_REDUCE_SUM, sum, &(LsAttr){.reduce = {2 | 4 | 8, true}});
    return ls_reshape(p->cx, g, sum, &(LsShape){1, {g->batch}});
}
