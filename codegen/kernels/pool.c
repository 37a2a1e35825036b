/* codegen/kernels/pool.c -- LS_K_POOL: max and average pooling and their gradients, channels-last.
 *
 * A unit is one row of pixels (all spatial axes but the last fixed); the innermost loops run along
 * the channels. Forward, windows inside the image are unrolled position by position; other windows
 * loop over the positions inside. The gradients gather: each pixel of x sums over the windows that
 * cover it, in window order, so no element is written by two units. On GPUs pool_vector4.c prints
 * most poolings. */
#include "codegen/kernels/pool_text.h"
#include "codegen/kernels/pool_vector4.h"

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

/* ---- forward ---- */

/* Prints a window that lies inside: all its positions, unrolled, for each channel. */
static void whole_window(const LsPool *p)
{
    ls_pool_channels(p);
    ls_emit_line(p->e, "real m = %s;", ls_pool_get(p, "x[from + c]"));
    if (p->max)
        ls_emit_line(p->e, "int32_t k = 0;");
    for (int64_t r = 1; r < ls_pool_positions(p); r++) {
        const char *v = ls_pool_get(
            p, ls_arena_printf(p->k->g->arena, "x[from + " LS_N64 " + c]", ls_pool_far(p, r)));
        if (p->max) {
            ls_emit_line(p->e, "const real v%" PRId64 " = %s;", r, v);
            ls_emit_line(p->e,
                         "k = ((v%" PRId64 " > m) | (v%" PRId64 " != v%" PRId64 ")) ? %" PRId64
                         " : k;",
                         r, r, r, r);
            ls_emit_line(p->e,
                         "m = ((v%" PRId64 " > m) | (v%" PRId64 " != v%" PRId64 ")) ? v%" PRId64
                         " : m;",
                         r, r, r, r);
        } else {
            ls_emit_line(p->e, "m += %s;", v);
        }
    }
    if (p->max)
        ls_emit_line(p->e, "index[to + c] = (%s)k;", ls_pool_index_type(p));
    ls_emit_put(p->e, ls_pool_wide(p), "y", "to + c", ls_pool_put(p, p->max ? "m" : "m / count"));
    ls_emit_line(p->e, "}");
}

/* The accumulator of channel c, as text: the result itself, or, where that is stored in 16 bits, an
 * array that is declared here and stored by close_sums. */
static const char *open_sums(const LsPool *p, const char *result)
{
    if (ls_result_type(p->k, 0) == LS_REAL)
        return ls_arena_printf(p->k->g->arena, "%s[to + c]", result);
    ls_emit_line(p->e, "LS_LOCAL_ROWS(real, sums, %" PRId64 ", %d);", p->channels,
                 ls_pool_grid(p, result[0] == 'y' ? p->y : p->x).y);
    return "sums[c]";
}

static void close_sums(const LsPool *p, const char *result)
{
    if (ls_result_type(p->k, 0) == LS_REAL)
        return;
    ls_pool_channels(p);
    ls_emit_line(p->e, "%s[to + c] = %s;", result, ls_pool_put(p, "sums[c]"));
    ls_emit_line(p->e, "}");
}

static void part_window(const LsPool *p)
{
    const char *far = "from", *sum = open_sums(p, "y");
    int64_t step = p->channels;
    ls_pool_channels(p);
    if (p->max) {
        ls_emit_line(p->e, "index[to + c] = (%s)(%s);", ls_pool_index_type(p),
                     ls_pool_position(p, "a"));
    }
    ls_emit_line(p->e, p->max ? "%s = -INFINITY;" : "%s = 0;", sum);
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
        ls_emit_line(p->e, "const real v = %s, m = %s;",
                     ls_pool_get(p, ls_arena_printf(p->k->g->arena, "x[%s + c]", far)), sum);
        ls_emit_line(p->e, "const bool take = (v > m) | (v != v);");
        ls_emit_line(p->e, "index[to + c] = take ? (%s)(%s) : index[to + c];",
                     ls_pool_index_type(p), ls_pool_position(p, "r"));
        ls_emit_line(p->e, "%s = take ? v : m;", sum);
    } else {
        ls_emit_line(p->e, "%s += %s;", sum,
                     ls_pool_get(p, ls_arena_printf(p->k->g->arena, "x[%s + c]", far)));
    }
    ls_emit_close(p->e, p->n + 1);
    if (!p->max) {
        ls_pool_channels(p);
        ls_emit_line(p->e, "%s /= count;", sum);
        ls_emit_line(p->e, "}");
    }
    close_sums(p, "y");
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

/* Loops over r along axis d, with the pixel p of the small side whose window position r lies on
 * pixel i; skips an r without one. */
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
        ls_pool_window_start(p, d);
    else if (!p->max)
        ls_pool_window(p, d);
}

static void gradient(const LsPool *p)
{
    const LsGrid part = ls_pool_grid(p, p->x);
    ls_pool_begin_gradient(p, &part);
    ls_pool_open_rows(p, p->x, "i", nothing);
    ls_emit_line(p->e, "const int64_t to = %s;", ls_pool_pixel(p, p->x, "i"));
    const char *sum = open_sums(p, "dx");
    ls_pool_channels(p);
    ls_emit_line(p->e, "%s = 0;", sum);
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
    ls_emit_line(p->e, p->max ? "%s += index[from + c] == r ? %s : 0;" : "%s += %s / count;", sum,
                 ls_pool_get(p, "dy[from + c]"));
    ls_emit_close(p->e, p->n + 1);
    close_sums(p, "dx");
    ls_emit_close(p->e, 3);
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
