/* codegen/kernels/pool.c -- LS_K_POOL: max and average pooling and their gradients, channels-last.
 *
 * A unit is one row of pixels (all spatial axes but the last fixed); the innermost loops run along
 * the channels. Forward, windows that lie inside the image are printed out position by position,
 * others loop over the part that does. The gradients gather: each pixel of x sums what the windows
 * over it say, in window order, so that nothing is written twice. GPUs have most of them from
 * pool_vector4.c. */
#include "codegen/kernels/pool.h"

#include <inttypes.h>

static LsPool pool_new(const LsKernelText *k, const LsShape *x, const LsShape *y, bool max)
{
    LsPool p = {.k = k, .e = k->e, .w = &k->g->node[k->n.i].attr.window, .max = max,
                .n = x->rank - 2, .batch = x->dim[0], .channels = x->dim[1]};
    for (int d = 0; d < p.n; d++) {
        p.x[d] = x->dim[2 + d];
        p.y[d] = y->dim[2 + d];
    }
    return p;
}

const char *ls_pool_pixel(const LsPool *p, const int64_t size[], const char *var)
{
    struct LsArena *a = p->k->g->arena;
    const char *text = "b";
    for (int d = 0; d < p->n; d++)
        text = ls_arena_printf(a, "(%s * " LS_N64 " + %s%d)", text, size[d], var, d);
    return ls_arena_printf(a, "%s * " LS_N64, text, p->channels);
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
    int x = ls_threads(p->channels % 4 == 0 ? p->channels / 4 : p->channels, 256);
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
    ls_emit_line(p->e, "%s(c, 0, " LS_BOUND64 ") {", ls_lanes_word(p->channels % 4 == 0),
                 p->channels);
}

/* ---- forward ---- */
static void window_start(const LsPool *p, int d)
{
    ls_emit_line(p->e, "const int64_t s%d = p%d * " LS_N64 " - " LS_N64 ";", d, d,
                 p->w->stride[d], p->w->pad_lo[d]);
}

void ls_pool_window(const LsPool *p, int d)
{
    const LsWindowAttr *w = p->w;
    window_start(p, d);
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

/* The window lies inside: all positions of one channel in a row. */
static void whole_window(const LsPool *p)
{
    ls_pool_channels(p);
    ls_emit_line(p->e, "real m = x[from + c];");
    if (p->max)
        ls_emit_line(p->e, "int32_t k = 0;");
    for (int64_t r = 1; r < ls_pool_positions(p); r++) {
        const char *v =
            ls_arena_printf(p->k->g->arena, "x[from + " LS_N64 " + c]", ls_pool_far(p, r));
        if (p->max) {
            ls_emit_line(p->e, "const real v%" PRId64 " = %s;", r, v);
            ls_emit_line(
                p->e, "k = ((v%" PRId64 " > m) | (v%" PRId64 " != v%" PRId64 ")) ? %" PRId64 " : k;",
                r, r, r, r);
            ls_emit_line(
                p->e, "m = ((v%" PRId64 " > m) | (v%" PRId64 " != v%" PRId64 ")) ? v%" PRId64 " : m;",
                r, r, r, r);
        } else {
            ls_emit_line(p->e, "m += %s;", v);
        }
    }
    if (p->max)
        ls_emit_line(p->e, "index[to + c] = (%s)k;", ls_pool_index_type(p));
    ls_emit_put(p->e, p->channels % 4 == 0, "y", "to + c", p->max ? "m" : "m / count");
    ls_emit_line(p->e, "}");
}

static void part_window(const LsPool *p)
{
    const char *far = "from";
    int64_t step = p->channels;
    ls_pool_channels(p);
    if (p->max) {
        ls_emit_line(p->e, "index[to + c] = (%s)(%s);", ls_pool_index_type(p),
                     ls_pool_position(p, "a"));
    }
    ls_emit_line(p->e, p->max ? "y[to + c] = -INFINITY;" : "y[to + c] = 0;");
    ls_emit_line(p->e, "}");
    for (int d = p->n - 1; d >= 0; d--) {
        far = ls_arena_printf(p->k->g->arena, "%s + r%d * " LS_N64, far, d,
                              p->w->dilation[d] * step);
        step *= p->x[d];
    }
    for (int d = 0; d < p->n; d++)
        ls_emit_line(p->e, "for (int64_t r%d = a%d; r%d < e%d; r%d++) {", d, d, d, d, d);
    ls_pool_channels(p);
    if (p->max) {
        ls_emit_line(p->e, "const real v = x[%s + c], m = y[to + c];", far);
        ls_emit_line(p->e, "const bool take = (v > m) | (v != v);");
        ls_emit_line(p->e, "index[to + c] = take ? (%s)(%s) : index[to + c];",
                     ls_pool_index_type(p), ls_pool_position(p, "r"));
        ls_emit_line(p->e, "y[to + c] = take ? v : m;");
    } else {
        ls_emit_line(p->e, "y[to + c] += x[%s + c];", far);
    }
    ls_emit_close(p->e, p->n + 1);
    if (!p->max) {
        ls_pool_channels(p);
        ls_emit_line(p->e, "y[to + c] /= count;");
        ls_emit_line(p->e, "}");
    }
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

void ls_pool_begin(const LsPool *p, const LsGrid *part)
{
    ls_emit_part(p->k, part);
    ls_emit_operand(p->k, "x", 0);
    ls_emit_result(p->k, "y", 0);
    if (p->max)
        ls_emit_result(p->k, "index", 1);
}

void ls_pool_open_windows(const LsPool *p, void (*each)(const LsPool *, int axis))
{
    ls_pool_open_rows(p, p->y, "p", each);
    ls_emit_line(p->e, "const int64_t from = %s, to = %s;", ls_pool_pixel(p, p->x, "s"),
                 ls_pool_pixel(p, p->y, "p"));
    if (!p->max)
        ls_pool_divisor(p, "count");
}

static void forward(const LsPool *p)
{
    struct LsArena *a = p->k->g->arena;
    const char *inside = "";
    bool unroll = ls_pool_positions(p) <= LS_POOL_UNROLL;
    const LsGrid part = ls_pool_grid(p, p->y);
    ls_pool_begin(p, &part);
    ls_pool_open_windows(p, ls_pool_window);
    for (int d = 0; d < p->n; d++)
        inside = ls_arena_printf(a, "%s%se%d - a%d == %" PRId64, inside, d > 0 ? " && " : "", d, d,
                                 p->w->kernel[d]);
    if (unroll) {
        ls_emit_line(p->e, "if (%s) {", inside);
        whole_window(p);
        ls_emit_line(p->e, "continue;");
        ls_emit_line(p->e, "}");
    }
    part_window(p);
    ls_emit_close(p->e, 3);
    ls_emit_launch(p->k, &part, 1);
}

/* ---- gradients ---- */
static void nothing(const LsPool *p, int d) { (void)p, (void)d; }

/* The small side's pixel p whose window position r lies on pixel i; none: the next r. */
static void open_window(const LsPool *p, int d)
{
    const LsWindowAttr *w = p->w;
    ls_emit_line(p->e, "for (int64_t r%d = 0; r%d < %" PRId64 "; r%d++) {", d, d, w->kernel[d], d);
    ls_emit_line(
        p->e, "const int64_t t%d = i%d + " LS_N64 " - r%d * " LS_N64 ", p%d = t%d / " LS_N64 ";",
        d, d, w->pad_lo[d], d, w->dilation[d], d, d, w->stride[d]);
    ls_emit_line(p->e, "if (t%d < 0 || t%d %% %" PRId64 " != 0 || p%d >= %" PRId64 ")", d, d,
                 w->stride[d], d, p->y[d]);
    ls_emit_line(p->e, "    continue;");
    if (!p->max && p->w->count_pad)
        window_start(p, d);
    else if (!p->max)
        ls_pool_window(p, d);
}

void ls_pool_begin_gradient(const LsPool *p, const LsGrid *part)
{
    ls_emit_part(p->k, part);
    ls_emit_operand(p->k, "dy", 0);
    if (p->max)
        ls_emit_operand(p->k, "index", 1);
    ls_emit_result(p->k, "dx", 0);
}

static void gradient(const LsPool *p)
{
    const LsGrid part = ls_pool_grid(p, p->x);
    ls_pool_begin_gradient(p, &part);
    ls_pool_open_rows(p, p->x, "i", nothing);
    ls_emit_line(p->e, "const int64_t to = %s;", ls_pool_pixel(p, p->x, "i"));
    ls_pool_channels(p);
    ls_emit_line(p->e, "dx[to + c] = 0;");
    ls_emit_line(p->e, "}");
    for (int d = 0; d < p->n; d++)
        open_window(p, d);
    ls_emit_line(p->e, "const int64_t from = %s;", ls_pool_pixel(p, p->y, "p"));
    if (p->max)
        ls_emit_line(p->e, "const %s r = (%s)(%s);", ls_pool_index_type(p), ls_pool_index_type(p),
                     ls_pool_position(p, "r"));
    else
        ls_pool_divisor(p, "count");
    ls_pool_channels(p);
    ls_emit_line(p->e, p->max ? "dx[to + c] += index[from + c] == r ? dy[from + c] : 0;"
                              : "dx[to + c] += dy[from + c] / count;");
    ls_emit_close(p->e, p->n + 4);
    ls_emit_launch(p->k, &part, 1);
}

static void pool_emit(const LsKernelText *k)
{
    const LsNode *n = &k->g->node[k->n.i];
    const LsShape *in = ls_in_shape(k->g, k->n, 0), *out = ls_shape(k->g, ls_out(k->g, k->n, 0));
    bool max = n->op == LS_OP_MAX_POOL || n->op == LS_OP_MAX_POOL_GRAD;
    bool ahead = n->op == LS_OP_MAX_POOL || n->op == LS_OP_AVERAGE_POOL;
    const LsPool p = ahead ? pool_new(k, in, out, max) : pool_new(k, out, in, max);
    if (k->target->kind == LS_TARGET_CUDA && ls_pool_positions(&p) <= LS_POOL_UNROLL)
        (ahead ? ls_pool_fours_forward : ls_pool_fours_gradient)(&p);
    else
        (ahead ? forward : gradient)(&p);
}

const LsEmitter ls_emitter_pool = {.emit = pool_emit};
