/* codegen/kernels/pool_fours.c -- pooling and its gradients for GPUs: all positions of a window are
 * printed out, each with the condition that it is there, so that a thread has what it sums up in
 * registers, reads four channels at a time and writes them once. What the loops of pool.c compute,
 * in the same order. */
#include "codegen/kernels/pool.h"

#include <inttypes.h>

static bool fours(const LsPool *p) { return p->channels % 4 == 0; }

/* Place of position r along axis d. */
static int64_t along(const LsPool *p, int64_t r, int d)
{
    for (int k = p->n - 1; k > d; k--)
        r /= p->w->kernel[k];
    return r % p->w->kernel[d];
}

/* "o0_1 && o1_2": what all axes say of position r. */
static const char *of_axes(const LsPool *p, int64_t r, const char *var, const char *joined)
{
    struct LsArena *a = p->k->g->arena;
    const char *text = "";
    for (int d = 0; d < p->n; d++)
        text = ls_arena_printf(a, "%s%s%s%d_%" PRId64, text, d > 0 ? joined : "", var, d,
                               along(p, r, d));
    return text;
}

/* Rooms of four neighbours for the values that position 0, 1, ... has. */
static void rooms(const LsPool *p, const char *word, const char *var)
{
    for (int64_t r = 0; r < ls_pool_positions(p) && fours(p); r++)
        ls_emit_line(p->e, "%s(%s%" PRId64 ");", word, var, r);
}

/* "const real v3 = (condition) ? x[at] : other;" */
static void get(const LsPool *p, const char *var, int64_t r, const char *condition, const char *x,
                const char *at, const char *other)
{
    struct LsArena *a = p->k->g->arena;
    const char *v = ls_arena_printf(a, "%s%" PRId64, var, r);
    ls_emit_line(p->e, "const real %s = %s ? %s : %s;", v, condition,
                 ls_get_text(a, fours(p), v, x, at), other);
}

/* ---- forward ---- */
static void window_axis(const LsPool *p, int d)
{
    ls_pool_window(p, d);
    for (int64_t r = 0; r < p->w->kernel[d]; r++)
        ls_emit_line(p->e, "const bool o%d_%" PRId64 " = a%d <= %" PRId64 " && %" PRId64 " < e%d;",
                     d, r, d, r, r, d);
}

static void window_point(const LsPool *p)
{
    struct LsArena *a = p->k->g->arena;
    ls_emit_line(p->e, p->max ? "real m = -INFINITY;" : "real m = 0;");
    if (p->max)
        ls_emit_line(p->e, "int32_t k = (int32_t)(%s);", ls_pool_position(p, "a"));
    for (int64_t r = 0; r < ls_pool_positions(p); r++) {
        get(p, "v", r, of_axes(p, r, "o", " && "), "x",
            ls_arena_printf(a, "from + %" PRId64 " + c", ls_pool_far(p, r)),
            p->max ? "-INFINITY" : "0");
        if (p->max) {
            ls_emit_line(p->e, "const bool t%" PRId64 " = (v%" PRId64 " > m) | (v%" PRId64
                         " != v%" PRId64 ");", r, r, r, r);
            ls_emit_line(p->e, "k = t%" PRId64 " ? %" PRId64 " : k;", r, r);
            ls_emit_line(p->e, "m = t%" PRId64 " ? v%" PRId64 " : m;", r, r);
        } else {
            ls_emit_line(p->e, "m += v%" PRId64 ";", r);
        }
    }
    if (p->max && fours(p))
        ls_emit_line(p->e, "LS_PUT4B(k, index, to + c, (uint8_t)k);");
    else if (p->max)
        ls_emit_line(p->e, "index[to + c] = (uint8_t)k;");
    ls_emit_put(p->e, fours(p), "y", "to + c", p->max ? "m" : "m / count");
}

void ls_pool_fours_forward(const LsPool *p)
{
    const LsGrid part = ls_pool_grid(p, p->y);
    ls_pool_begin(p, &part);
    rooms(p, "LS_FOUR", "v");
    if (p->max && fours(p))
        ls_emit_line(p->e, "LS_BYTES4(k);");
    ls_pool_open_windows(p, window_axis);
    ls_pool_channels(p);
    window_point(p);
    ls_emit_close(p->e, 4);
    ls_emit_launch(p->k, &part, 1);
}

/* ---- gradients ---- */
/* For each position r along the axis: the window p that has it over pixel i, whether there is one,
 * and how many of its positions an average takes. */
static void pixel_axis(const LsPool *p, int d)
{
    const LsWindowAttr *w = p->w;
    LsEmit *e = p->e;
    for (int64_t r = 0; r < w->kernel[d]; r++) {
        ls_emit_line(e, "const int64_t t%d_%" PRId64 " = i%d + %" PRId64 ";", d, r, d,
                     w->pad_lo[d] - r * w->dilation[d]);
        ls_emit_line(e, "const int64_t p%d_%" PRId64 " = t%d_%" PRId64 " / %" PRId64 ";", d, r, d,
                     r, w->stride[d]);
        ls_emit_line(e, "const bool o%d_%" PRId64 " = t%d_%" PRId64 " >= 0 && t%d_%" PRId64
                     " %% %" PRId64 " == 0 && p%d_%" PRId64 " < %" PRId64 ";", d, r, d, r, d, r,
                     w->stride[d], d, r, p->y[d]);
        if (p->max)
            continue;
        ls_emit_line(e, "const int64_t s%d_%" PRId64 " = p%d_%" PRId64 " * %" PRId64 " - %" PRId64
                     ";", d, r, d, r, w->stride[d], w->pad_lo[d]);
        ls_emit_line(e, "const int64_t e%d_%" PRId64 " = ls_end_inside(s%d_%" PRId64 ", %" PRId64
                     ", %" PRId64 ", %" PRId64 ");", d, r, d, r, w->dilation[d],
                     p->x[d] + (w->count_pad ? w->pad_hi[d] : 0), w->kernel[d]);
        if (!w->count_pad)
            ls_emit_line(e, "const int64_t l%d_%" PRId64 " = e%d_%" PRId64
                         " - ls_first_inside(s%d_%" PRId64 ", %" PRId64 ");", d, r, d, r, d, r,
                         w->dilation[d]);
    }
}

/* Window r over the pixel: whether it is there, its first channel, an average's divisor. */
static void pixel_windows(const LsPool *p)
{
    struct LsArena *a = p->k->g->arena;
    for (int64_t r = 0; r < ls_pool_positions(p); r++) {
        const char *at = "b";
        for (int d = 0; d < p->n; d++)
            at = ls_arena_printf(a, "(%s * %" PRId64 " + p%d_%" PRId64 ")", at, p->y[d], d,
                                 along(p, r, d));
        ls_emit_line(p->e, "const bool o%" PRId64 " = %s;", r, of_axes(p, r, "o", " && "));
        ls_emit_line(p->e, "const int64_t f%" PRId64 " = %s * %" PRId64 ";", r, at, p->channels);
        if (!p->max)
            ls_emit_line(p->e, "const real by%" PRId64 " = (real)(%s);", r,
                         of_axes(p, r, p->w->count_pad ? "e" : "l", " * "));
    }
}

static void pixel_point(const LsPool *p)
{
    struct LsArena *a = p->k->g->arena;
    ls_emit_line(p->e, "real sum = 0;");
    for (int64_t r = 0; r < ls_pool_positions(p); r++) {
        const char *at = ls_arena_printf(a, "f%" PRId64 " + c", r);
        const char *there = ls_arena_printf(a, "o%" PRId64, r);
        get(p, "g", r, there, "dy", at, "0");
        if (!p->max) {
            ls_emit_line(p->e, "sum += o%" PRId64 " ? g%" PRId64 " / by%" PRId64 " : 0;", r, r, r);
            continue;
        }
        ls_emit_line(p->e, "const uint8_t k%" PRId64 " = %s ? %s : 255;", r, there,
                     fours(p) ? ls_arena_printf(a, "LS_GET4B(k%" PRId64 ", index, %s)", r, at)
                              : ls_arena_printf(a, "index[%s]", at));
        ls_emit_line(p->e, "sum += k%" PRId64 " == %" PRId64 " ? g%" PRId64 " : 0;", r, r, r);
    }
    ls_emit_put(p->e, fours(p), "dx", "to + c", "sum");
}

void ls_pool_fours_gradient(const LsPool *p)
{
    const LsGrid part = ls_pool_grid(p, p->x);
    ls_pool_begin_gradient(p, &part);
    rooms(p, "LS_FOUR", "g");
    if (p->max)
        rooms(p, "LS_BYTES4", "k");
    ls_pool_open_rows(p, p->x, "i", pixel_axis);
    ls_emit_line(p->e, "const int64_t to = %s;", ls_pool_pixel(p, p->x, "i"));
    pixel_windows(p);
    ls_pool_channels(p);
    pixel_point(p);
    ls_emit_close(p->e, 4);
    ls_emit_launch(p->k, &part, 1);
}
