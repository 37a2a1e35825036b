/* codegen/kernels/pool_vector4.c -- pooling and its gradients for GPUs, unrolled.
 *
 * The text has all positions of a window, or all windows over a pixel, each with the condition that
 * it exists. So a thread accumulates in registers, reads four channels at a time and writes them
 * once. Sums run in the order of pool.c's loops. */
#include "codegen/kernels/pool_vector4.h"

#include <inttypes.h>

/* Neighbours that are read and written together: 4, 8; 0: one. */
static int wide_of(const LsPool *p) { return ls_pool_wide(p); }

/* Prints the store of result element `at`, rounded to its type. */
static void put(const LsPool *p, const char *y, const char *at, const char *v)
{
    struct LsArena *a = p->k->g->arena;
    const LsType type = ls_result_type(p->k, 0);
    ls_emit_put(p->e, wide_of(p), y, at,
                wide_of(p) > 0 ? ls_rounded(a, type, v) : ls_stored(a, type, v));
}

/* The index along axis d of element r of a box of that size. */
static int64_t along(const LsPool *p, int64_t r, int d, const int64_t size[])
{
    for (int k = p->n - 1; k > d; k--)
        r /= size[k];
    return r % size[d];
}

/* "o0_1 && o1_2": element r's variables along all axes, joined. */
static const char *of_axes(const LsPool *p, int64_t r, const int64_t size[], const char *var,
                           const char *joined)
{
    struct LsArena *a = p->k->g->arena;
    const char *text = "";
    for (int d = 0; d < p->n; d++)
        text = ls_arena_printf(a, "%s%s%s%d_%" PRId64, text, d > 0 ? joined : "", var, d,
                               along(p, r, d, size));
    return text;
}

/* Declares buffers of four neighbours for n values. */
static void rooms(const LsPool *p, int64_t n, bool bytes, const char *var)
{
    const char *word = bytes             ? wide_of(p) == 8 ? "LS_BYTES8" : "LS_BYTES4"
                       : wide_of(p) == 8 ? "LS_EIGHT"
                                         : "LS_FOUR";
    for (int64_t r = 0; r < n && wide_of(p) > 0; r++)
        ls_emit_line(p->e, "%s(%s%" PRId64 ");", word, var, r);
}

/* "const real v3 = (condition) ? x[at] : other;" */
static void get(const LsPool *p, const char *var, int64_t r, const char *condition, const char *x,
                const char *at, const char *other)
{
    struct LsArena *a = p->k->g->arena;
    const char *v = ls_arena_printf(a, "%s%" PRId64, var, r);
    const char *element = ls_get_text(a, wide_of(p), v, x, at);
    ls_emit_line(p->e, "const real %s = %s ? %s : %s;", v, condition,
                 wide_of(p) > 0 ? element : ls_pool_get(p, element), other);
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
        get(p, "v", r, of_axes(p, r, p->w->kernel, "o", " && "), "x",
            ls_arena_printf(a, "from + " LS_N64 " + c", ls_pool_far(p, r)),
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
    if (p->max && wide_of(p) > 0)
        ls_emit_line(p->e, "LS_PUT%dB(k, index, to + c, (uint8_t)k);", wide_of(p));
    else if (p->max)
        ls_emit_line(p->e, "index[to + c] = (uint8_t)k;");
    put(p, "y", "to + c", p->max ? "m" : "m / count");
}

void ls_pool_fours_forward(const LsPool *p)
{
    const LsGrid part = ls_pool_grid(p, p->y);
    ls_pool_begin(p, &part);
    rooms(p, ls_pool_positions(p), false, "v");
    if (p->max && wide_of(p) > 0)
        ls_emit_line(p->e, "LS_BYTES%d(k);", wide_of(p));
    ls_pool_open_windows(p, window_axis);
    ls_pool_channels(p);
    window_point(p);
    ls_emit_close(p->e, 4);
    ls_emit_launch(p->k, &part, 1);
}

/* ---- gradients ---- */
/* The windows that may cover one pixel along each axis, one stride apart. With dilation the
 * candidates are all positions of the kernel. */
typedef struct Slots { int64_t n[LS_MAX_SPATIAL], all; } Slots;

static Slots slots_of(const LsPool *p)
{
    Slots s = {.all = 1};
    for (int d = 0; d < p->n; d++) {
        int64_t kernel = p->w->kernel[d];
        s.n[d] = p->w->dilation[d] == 1 ? ls_ceil_div(kernel, p->w->stride[d]) : kernel;
        s.all *= s.n[d];
    }
    return s;
}

/* Declares slot q along the axis: the window p with pixel i at its position r, and whether the
 * window exists (o). */
static void pixel_slot(const LsPool *p, int d, int64_t q)
{
    const LsWindowAttr *w = p->w;
    LsEmit *e = p->e;
    if (w->dilation[d] != 1) {
        ls_emit_line(e, "const int64_t t%d_%" PRId64 " = i%d + " LS_N64 ", r%d_%" PRId64 " = %"
                     PRId64 ";", d, q, d, w->pad_lo[d] - q * w->dilation[d], d, q, q);
        ls_emit_line(e, "const int64_t p%d_%" PRId64 " = t%d_%" PRId64 " / " LS_N64 ";", d, q, d,
                     q, w->stride[d]);
        ls_emit_line(e, "const bool o%d_%" PRId64 " = t%d_%" PRId64 " >= 0 && t%d_%" PRId64
                     " %% " LS_N64 " == 0 && p%d_%" PRId64 " < %" PRId64 ";", d, q, d, q, d, q,
                     w->stride[d], d, q, p->y[d]);
        return;
    }
    const char *inside = w->kernel[d] % w->stride[d] == 0 ? ""
        : ls_arena_printf(p->k->g->arena, " && r%d_%" PRId64 " < %" PRId64, d, q, w->kernel[d]);
    ls_emit_line(e, "const int64_t p%d_%" PRId64 " = (i%d + " LS_N64 ") / " LS_N64 " - " LS_N64
                 ";", d, q, d, w->pad_lo[d], w->stride[d], q);
    ls_emit_line(e, "const int64_t r%d_%" PRId64 " = (i%d + " LS_N64 ") %% " LS_N64 " + " LS_N64
                 ";", d, q, d, w->pad_lo[d], w->stride[d], q * w->stride[d]);
    ls_emit_line(e, "const bool o%d_%" PRId64 " = p%d_%" PRId64 " >= 0 && p%d_%" PRId64 " < %"
                 PRId64
                 "%s;", d, q, d, q, d, q, p->y[d], inside);
}

/* Declares the positions that an average counts along the axis in slot q's window. */
static void pixel_length(const LsPool *p, int d, int64_t q)
{
    const LsWindowAttr *w = p->w;
    LsEmit *e = p->e;
    ls_emit_line(e, "const int64_t s%d_%" PRId64 " = p%d_%" PRId64 " * " LS_N64 " - " LS_N64 ";",
                 d, q, d, q, w->stride[d], w->pad_lo[d]);
    ls_emit_line(e, "const int64_t e%d_%" PRId64 " = ls_end_inside(s%d_%" PRId64 ", %" PRId64
                 ", %" PRId64 ", %" PRId64 ");", d, q, d, q, w->dilation[d],
                 p->x[d] + (w->count_pad ? w->pad_hi[d] : 0), w->kernel[d]);
    if (!w->count_pad)
        ls_emit_line(e, "const int64_t l%d_%" PRId64 " = e%d_%" PRId64
                     " - ls_first_inside(s%d_%" PRId64 ", %" PRId64 ");", d, q, d, q, d, q,
                     w->dilation[d]);
}

static void pixel_axis(const LsPool *p, int d)
{
    int64_t n = slots_of(p).n[d];
    for (int64_t q = 0; q < n; q++) {
        pixel_slot(p, d, q);
        if (p->max)
            continue;
        ls_emit_line(p->e, "(void)r%d_%" PRId64 ";", d, q);
        pixel_length(p, d, q);
    }
}

/* Declares for each window q over the pixel: whether it exists, its first channel, and the pixel's
 * position in it or an average's divisor. */
static void pixel_windows(const LsPool *p, const Slots *s)
{
    struct LsArena *a = p->k->g->arena;
    for (int64_t q = 0; q < s->all; q++) {
        const char *at = "b", *number = "0";
        for (int d = 0; d < p->n; d++) {
            int64_t slot = along(p, q, d, s->n);
            at = ls_arena_printf(a, "(%s * " LS_N64 " + p%d_%" PRId64 ")", at, p->y[d], d, slot);
            number = d == 0 ? ls_arena_printf(a, "r0_%" PRId64, slot)
                            : ls_arena_printf(a, "(%s) * " LS_N64 " + r%d_%" PRId64, number,
                                              p->w->kernel[d], d, slot);
        }
        ls_emit_line(p->e, "const bool o%" PRId64 " = %s;", q, of_axes(p, q, s->n, "o", " && "));
        ls_emit_line(p->e, "const int64_t f%" PRId64 " = %s * " LS_N64 ";", q, at, p->channels);
        if (p->max)
            ls_emit_line(p->e, "const int64_t nth%" PRId64 " = %s;", q, number);
        else
            ls_emit_line(p->e, "const real by%" PRId64 " = (real)(%s);", q,
                         of_axes(p, q, s->n, p->w->count_pad ? "e" : "l", " * "));
    }
}

static void pixel_point(const LsPool *p, int64_t windows)
{
    struct LsArena *a = p->k->g->arena;
    ls_emit_line(p->e, "real sum = 0;");
    for (int64_t q = 0; q < windows; q++) {
        const char *at = ls_arena_printf(a, "f%" PRId64 " + c", q);
        const char *there = ls_arena_printf(a, "o%" PRId64, q);
        get(p, "g", q, there, "dy", at, "0");
        if (!p->max) {
            ls_emit_line(p->e, "sum += o%" PRId64 " ? g%" PRId64 " / by%" PRId64 " : 0;", q, q, q);
            continue;
        }
        ls_emit_line(p->e, "const uint8_t k%" PRId64 " = %s ? %s : 255;", q, there,
                     wide_of(p) > 0 ? ls_arena_printf(a, "LS_GET%dB(k%" PRId64 ", index, %s)",
                                                      wide_of(p), q, at)
                                    : ls_arena_printf(a, "index[%s]", at));
        ls_emit_line(p->e, "sum += k%" PRId64 " == nth%" PRId64 " ? g%" PRId64 " : 0;", q, q, q);
    }
    put(p, "dx", "to + c", "sum");
}

void ls_pool_fours_gradient(const LsPool *p)
{
    const LsGrid part = ls_pool_grid(p, p->x);
    const Slots s = slots_of(p);
    ls_pool_begin_gradient(p, &part);
    rooms(p, s.all, false, "g");
    if (p->max)
        rooms(p, s.all, true, "k");
    ls_pool_open_rows(p, p->x, "i", pixel_axis);
    ls_emit_line(p->e, "const int64_t to = %s;", ls_pool_pixel(p, p->x, "i"));
    pixel_windows(p, &s);
    ls_pool_channels(p);
    pixel_point(p, s.all);
    ls_emit_close(p->e, 4);
    ls_emit_launch(p->k, &part, 1);
}
