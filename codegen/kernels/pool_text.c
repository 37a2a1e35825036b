/* codegen/kernels/pool_text.c -- the loops of pooling kernels over pixels and windows. */
#include "codegen/kernels/pool_text.h"

#include <inttypes.h>

const char *ls_pool_pixel(const LsPool *p, const int64_t size[], const char *var)
{
    struct LsArena *a = p->k->g->arena;
    const char *text = "b";
    for (int d = 0; d < p->n; d++)
        text = ls_arena_printf(a, "(%s * " LS_N64 " + %s%d)", text, size[d], var, d);
    return ls_arena_printf(a, "%s * " LS_N64, text, p->channels);
}

bool ls_pool_is_16(const LsPool *p)
{
    return ls_is_16(ls_operand_type(p->k, 0)) || ls_is_16(ls_result_type(p->k, 0));
}

int ls_pool_wide(const LsPool *p)
{
    const bool gpu = p->k->target->kind == LS_TARGET_CUDA;
    return gpu ? ls_wide(p->channels, ls_pool_is_16(p))
         : ls_result_type(p->k, 0) == LS_REAL ? ls_fours(p->channels) : 0;
}

const char *ls_pool_get(const LsPool *p, const char *element)
{
    return ls_widened(p->k->g->arena, ls_operand_type(p->k, 0), element);
}

const char *ls_pool_put(const LsPool *p, const char *v)
{
    return ls_stored(p->k->g->arena, ls_result_type(p->k, 0), v);
}

static int64_t rows(const LsPool *p, const int64_t size[])
{
    int64_t n = p->batch;
    for (int d = 0; d < p->n - 1; d++)
        n *= size[d];
    return n;
}

LsGrid ls_pool_grid(const LsPool *p, const int64_t size[])
{
    const int wide = ls_wide(p->channels, p->k->target->kind == LS_TARGET_CUDA && ls_pool_is_16(p));
    int x = ls_threads(wide > 0 ? p->channels / wide : p->channels, 256);
    return (LsGrid){"part", rows(p, size), x, ls_threads(size[p->n - 1], 256 / x)};
}

void ls_pool_open_rows(const LsPool *p, const int64_t size[], const char *var,
                       void (*each)(const LsPool *, int axis))
{
    int64_t inside = 1;
    ls_emit_line(p->e, "for (int64_t u = lo; u < hi; u++) {");
    for (int d = p->n - 2; d >= 0; d--) {
        ls_emit_line(p->e, "const int64_t %s%d = u / " LS_N64 " %% " LS_N64 ";", var, d, inside,
                     size[d]);
        inside *= size[d];
    }
    ls_emit_line(p->e, "const int64_t b = u / " LS_N64 ";", inside);
    for (int d = 0; d < p->n - 1; d++)
        each(p, d);
    ls_emit_line(p->e, "LS_ROWS(%s%d, 0, " LS_N64 ") {", var, p->n - 1, size[p->n - 1]);
    each(p, p->n - 1);
}

void ls_pool_channels(const LsPool *p)
{
    const int wide = ls_wide(p->channels, p->k->target->kind == LS_TARGET_CUDA && ls_pool_is_16(p));
    ls_emit_line(p->e, "%s(c, 0, " LS_BOUND64 ") {", ls_lanes_word(wide), p->channels);
}

/* ---- one window ---- */
void ls_pool_window_start(const LsPool *p, int d)
{
    ls_emit_line(p->e, "const int64_t s%d = p%d * " LS_N64 " - " LS_N64 ";", d, d,
                 p->w->stride[d], p->w->pad_lo[d]);
}

void ls_pool_window(const LsPool *p, int d)
{
    const LsWindowAttr *w = p->w;
    ls_pool_window_start(p, d);
    ls_emit_line(p->e, "const int64_t a%d = ls_first_inside(s%d, %" PRId64 ");", d, d,
                 w->dilation[d]);
    ls_emit_line(p->e,
                 "const int64_t e%d = ls_end_inside(s%d, %" PRId64 ", %" PRId64 ", %" PRId64 ");",
                 d, d, w->dilation[d], p->x[d], w->kernel[d]);
}

int64_t ls_pool_positions(const LsPool *p)
{
    int64_t n = 1;
    for (int d = 0; d < p->n; d++)
        n *= p->w->kernel[d];
    return n;
}

const char *ls_pool_position(const LsPool *p, const char *var)
{
    struct LsArena *a = p->k->g->arena;
    const char *text = ls_arena_printf(a, "%s0", var);
    for (int d = 1; d < p->n; d++)
        text = ls_arena_printf(a, "(%s) * " LS_N64 " + %s%d", text, p->w->kernel[d], var, d);
    return text;
}

int64_t ls_pool_far(const LsPool *p, int64_t r)
{
    int64_t far = 0, step = p->channels;
    for (int d = p->n - 1; d >= 0; d--) {
        far += r % p->w->kernel[d] * p->w->dilation[d] * step;
        step *= p->x[d];
        r /= p->w->kernel[d];
    }
    return far;
}

const char *ls_pool_index_type(const LsPool *p)
{
    return ls_pool_positions(p) <= 256 ? "uint8_t" : "int32_t";
}

void ls_pool_divisor(const LsPool *p, const char *name)
{
    struct LsArena *a = p->k->g->arena;
    const char *text = NULL;
    for (int d = 0; d < p->n; d++) {
        const LsWindowAttr *w = p->w;
        const char *one = ls_arena_printf(a, "(e%d - a%d)", d, d);
        if (w->count_pad)
            one = ls_arena_printf(a, "ls_end_inside(s%d, %" PRId64 ", %" PRId64 ", %" PRId64 ")", d,
                                  w->dilation[d], p->x[d] + w->pad_hi[d], w->kernel[d]);
        text = text == NULL ? one : ls_arena_printf(a, "%s * %s", text, one);
    }
    ls_emit_line(p->e, "const real %s = (real)(%s);", name, text);
}

/* ---- parts ---- */
void ls_pool_begin(const LsPool *p, const LsGrid *part)
{
    ls_emit_part(p->k, part);
    ls_emit_operand(p->k, "x", 0);
    ls_emit_result(p->k, "y", 0);
    if (p->max)
        ls_emit_result(p->k, "index", 1);
}

void ls_pool_begin_gradient(const LsPool *p, const LsGrid *part)
{
    ls_emit_part(p->k, part);
    ls_emit_operand(p->k, "dy", 0);
    if (p->max)
        ls_emit_operand(p->k, "index", 1);
    ls_emit_result(p->k, "dx", 0);
}

void ls_pool_open_windows(const LsPool *p, void (*each)(const LsPool *, int axis))
{
    ls_pool_open_rows(p, p->y, "p", each);
    ls_emit_line(p->e, "const int64_t from = %s, to = %s;", ls_pool_pixel(p, p->x, "s"),
                 ls_pool_pixel(p, p->y, "p"));
    if (!p->max)
        ls_pool_divisor(p, "count");
}
