/* tests/support/conv_cases.h -- convolutions of all shapes, and their results by plain loops in
 * double. */
#ifndef LS_TESTS_SUPPORT_CONV_CASES_H
#define LS_TESTS_SUPPORT_CONV_CASES_H

#include "tests/support/kernel_harness.h"

typedef struct Case {
    int n;                      /* spatial axes */
    int64_t images, group, cin, cout;   /* channels in all */
    int64_t x[3], kernel[3], stride[3], dilation[3], lo[3], hi[3];
    bool bias;
} Case;

#define ALL(v) {v, v, v}
static const Case cases[] = {
    /* 2-D */
    {2, 2, 1, 16, 32, {9, 11}, ALL(3), ALL(1), ALL(1), ALL(1), ALL(1), true},
    {2, 1, 1, 1, 1, {1, 1}, ALL(1), ALL(1), ALL(1), ALL(0), ALL(0), false},
    {2, 2, 1, 3, 20, {15, 14}, ALL(7), ALL(2), ALL(1), ALL(3), ALL(3), false},
    {2, 1, 1, 3, 64, {32, 30}, ALL(7), ALL(2), ALL(1), ALL(3), {2, 3}, true},
    {2, 2, 1, 40, 24, {7, 8}, ALL(1), ALL(1), ALL(1), ALL(0), ALL(0), true},
    {2, 2, 1, 40, 24, {7, 8}, ALL(1), ALL(2), ALL(1), ALL(0), ALL(0), true},
    {2, 3, 1, 33, 65, {8, 7}, ALL(3), {2, 1}, {1, 2}, {0, 2}, {1, 1}, true},
    {2, 2, 1, 17, 5, {13, 12}, ALL(3), ALL(1), ALL(2), ALL(2), ALL(2), false},
    {2, 1, 1, 6, 7, {16, 9}, {5, 2}, {3, 2}, {2, 3}, {4, 0}, {1, 3}, true},
    {2, 1, 1, 6, 7, {11, 11}, {4, 4}, {4, 4}, {2, 2}, {1, 0}, {0, 1}, false},
    {2, 2, 1, 64, 48, {6, 5}, ALL(2), ALL(2), ALL(1), ALL(0), ALL(0), true}, /* U-Net's up-step */
    {2, 1, 1, 520, 40, {5, 5}, ALL(1), ALL(1), ALL(1), ALL(0), ALL(0), false},
    {2, 1, 1, 70, 550, {4, 5}, ALL(3), ALL(1), ALL(1), ALL(1), ALL(1), true},
    {2, 2, 1, 32, 48, {40, 36}, ALL(3), ALL(1), ALL(1), ALL(1), ALL(1), true}, /* several splits */
    {2, 1, 1, 20, 24, {22, 40}, {3, 1}, ALL(1), ALL(1), {1, 0}, {1, 0}, false},
    {2, 1, 1, 4, 6, {6, 6}, ALL(3), ALL(1), ALL(1), ALL(3), ALL(4), false}, /* padding beyond W */
    {2, 2, 1, 8, 8, {9, 9}, ALL(2), ALL(3), ALL(1), ALL(0), ALL(0), true},  /* some X unread */
    /* few positions for the weights */
    {2, 1, 1, 260, 257, {6, 5}, ALL(3), ALL(2), ALL(1), ALL(1), ALL(1), true},
    {2, 1, 1, 12, 300, {27, 25}, ALL(2), ALL(1), ALL(1), ALL(0), ALL(0), true},
    /* Winograd's algorithm, with map sizes that are and are not multiples of 4 */
    {2, 2, 1, 16, 32, {16, 20}, ALL(3), ALL(1), ALL(1), ALL(1), ALL(1), true},
    {2, 1, 1, 48, 64, {30, 29}, ALL(3), ALL(1), ALL(1), ALL(1), ALL(1), true},
    {2, 3, 1, 80, 16, {26, 35}, ALL(3), ALL(1), ALL(1), {0, 2}, {1, 0}, false},
    {2, 1, 1, 32, 336, {33, 31}, ALL(3), ALL(1), ALL(1), ALL(0), ALL(0), true},
    /* groups */
    {2, 2, 4, 24, 40, {7, 9}, ALL(3), ALL(1), ALL(1), ALL(1), ALL(1), true},
    {2, 1, 2, 6, 4, {7, 9}, ALL(3), ALL(2), ALL(1), ALL(1), {0, 1}, true},
    {2, 2, 19, 19, 19, {9, 8}, ALL(3), ALL(1), ALL(1), ALL(1), ALL(1), true},
    {2, 2, 32, 32, 32, {9, 8}, ALL(3), ALL(2), ALL(1), ALL(1), ALL(1), false},
    {2, 1, 40, 40, 40, {21, 33}, ALL(7), ALL(1), ALL(2), ALL(6), ALL(6), true},
    {2, 2, 8, 8, 24, {5, 6}, ALL(3), ALL(1), ALL(1), ALL(1), ALL(1), true}, /* multiplier 3 */
    {2, 1, 20, 20, 20, {20, 21}, {9, 7}, {2, 3}, ALL(1), {4, 3}, {4, 3}, false},
    /* 1-D and 3-D */
    {1, 3, 1, 10, 18, {29}, {5}, {2}, {1}, {2}, {1}, true},
    {1, 2, 6, 6, 6, {17}, {3}, {1}, {4}, {4}, {4}, false},
    {1, 1, 17, 17, 17, {50}, {31}, {1}, {1}, {40}, {3}, true},
    {1, 1, 18, 18, 18, {60}, {40}, {3}, {1}, {2}, {3}, true},
    {3, 2, 1, 5, 9, {5, 6, 7}, ALL(3), {1, 2, 1}, {1, 1, 2}, {1, 0, 2}, {1, 1, 2}, true},
    {3, 1, 2, 8, 6, {4, 5, 6}, {2, 3, 1}, {2, 1, 2}, ALL(1), {0, 1, 0}, {1, 1, 0}, true},
};
enum { NCASES = sizeof cases / sizeof *cases };

typedef struct Dims { LsShape x, w, y; LsAttr attr; } Dims;

static inline Dims dims_of(const Case *c)
{
    Dims d = {.x = {2 + c->n, {c->images, c->cin}}, .w = {2 + c->n, {c->cout, c->cin / c->group}},
              .y = {2 + c->n, {c->images, c->cout}}};
    LsWindowAttr *at = &d.attr.window;
    at->n = c->n;
    at->group = c->group;
    for (int i = 0; i < c->n; i++) {
        at->kernel[i] = d.w.dim[2 + i] = c->kernel[i];
        at->stride[i] = c->stride[i];
        at->dilation[i] = c->dilation[i];
        at->pad_lo[i] = c->lo[i];
        at->pad_hi[i] = c->hi[i];
        at->x_dim[i] = d.x.dim[2 + i] = c->x[i];
        d.y.dim[2 + i] = (c->x[i] + c->lo[i] + c->hi[i] - (c->kernel[i] - 1) * c->dilation[i] - 1)
            / c->stride[i] + 1;
    }
    return d;
}

/* ---- reference: every product x * w of the convolution once ---- */
typedef void Each(void *user, int64_t x, int64_t w, int64_t y);

static inline void each_tap(const Case *c, const Dims *d, int64_t image, int64_t m,
                            const int64_t o[3], int64_t y, Each *each, void *user)
{
    int64_t cg = c->cin / c->group, mg = c->cout / c->group, taps = 1;
    for (int i = 0; i < c->n; i++)
        taps *= c->kernel[i];
    for (int64_t t = 0; t < taps; t++) {
        int64_t rest = t, s[3], place = image;
        bool inside = true;
        for (int i = c->n - 1; i >= 0; i--) {
            s[i] = o[i] * c->stride[i] + rest % c->kernel[i] * c->dilation[i] - c->lo[i];
            rest /= c->kernel[i];
            inside &= s[i] >= 0 && s[i] < c->x[i];
        }
        for (int i = 0; i < c->n; i++)
            place = place * d->x.dim[2 + i] + s[i];
        for (int64_t k = 0; inside && k < cg; k++)
            each(user, place * c->cin + m / mg * cg + k, (m * taps + t) * cg + k, y);
    }
}

static inline void each_product(const Case *c, const Dims *d, Each *each, void *user)
{
    int64_t n = ls_count(&d->y);
    for (int64_t y = 0; y < n; y++) {
        int64_t o[3], rest = y / c->cout;
        for (int i = c->n - 1; i >= 0; i--) {
            o[i] = rest % d->y.dim[2 + i];
            rest /= d->y.dim[2 + i];
        }
        each_tap(c, d, rest, y % c->cout, o, y, each, user);
    }
}

typedef struct Sums { const double *x, *w, *y; double *dx, *dw, *dy; } Sums;

static inline void add(void *user, int64_t x, int64_t w, int64_t y)
{
    Sums *s = user;
    s->dy[y] += s->x[x] * s->w[w];
    s->dx[x] += s->y[y] * s->w[w];
    s->dw[w] += s->y[y] * s->x[x];
}

/* Random operands of a case, and the results of its three convolutions by plain loops. */
typedef struct Sample { double *x, *w, *y, *bias, *dx, *dw, *dy; } Sample;

static inline Sample sample_new(const Case *c)
{
    Dims d = dims_of(c);
    int64_t nx = ls_count(&d.x), nw = ls_count(&d.w), ny = ls_count(&d.y);
    Sample a = {h_random(nx, 1), h_random(nw, 2), h_random(ny, 3),
                h_random(c->cin + c->cout, 4), calloc((size_t)nx, 8), calloc((size_t)nw, 8),
                calloc((size_t)ny, 8)};
    Sums s = {a.x, a.w, a.y, a.dx, a.dw, a.dy};
    each_product(c, &d, add, &s);
    for (int64_t k = 0; c->bias && k < ny; k++)
        a.dy[k] += a.bias[k % c->cout];
    for (int64_t k = 0; c->bias && k < nx; k++)
        a.dx[k] += a.bias[k % c->cin];
    return a;
}

static inline void sample_free(Sample *s)
{
    double *all[] = {s->x, s->w, s->y, s->bias, s->dx, s->dw, s->dy};
    for (int k = 0; k < 7; k++)
        free(all[k]);
}

/* ---- nodes ---- */
static inline void nodes_of(const Case *c, HNode *node[3])
{
    Dims d = dims_of(c);
    LsShape none = {.rank = -1};
    LsShape bias_y = c->bias ? (LsShape){1, {c->cout}} : none;
    LsShape bias_x = c->bias ? (LsShape){1, {c->cin}} : none;
    node[0] = h_node(LS_OP_CONV, 3, (LsShape[]){d.x, d.w, bias_y}, &d.y, LS_LAST, &d.attr);
    node[1] = h_node(LS_OP_CONV_DX, 3, (LsShape[]){d.y, d.w, bias_x}, &d.x, LS_LAST, &d.attr);
    node[2] = h_node(LS_OP_CONV_DW, 2, (LsShape[]){d.y, d.x}, &d.w, LS_LAST, &d.attr);
}

#endif
