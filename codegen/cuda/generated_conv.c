/* codegen/cuda/generated_conv.c */
#include "codegen/cuda/generated_conv.h"

#include "codegen/cuda/conv_plan.h"
#include "codegen/kernels/loop_nest.h"

#include <inttypes.h>

typedef struct Own {            /* X [N,C,X..], W [M,C/group,K..], Y [N,M,Y..], channels last */
    const LsKernelText *k;
    const LsWindowAttr *at;
    const LsShape *x, *w, *y;
    int64_t cg, mg;             /* channels of X and of Y in a group */
} Own;

static Own own_of(const LsKernelText *k)
{
    const LsNode *node = &k->g->node[k->n.i];
    const LsShape *in = ls_in_shape(k->g, k->n, 0), *in1 = ls_in_shape(k->g, k->n, 1);
    const LsShape *out = ls_shape(k->g, ls_out(k->g, k->n, 0));
    bool data = node->op == LS_OP_CONV_DX, weights = node->op == LS_OP_CONV_DW;
    Own o = {.k = k, .at = &node->attr.window, .x = data ? out : weights ? in1 : in,
             .w = weights ? out : in1, .y = data || weights ? in : out};
    o.cg = o.w->dim[1];
    o.mg = o.w->dim[0] / o.at->group;
    return o;
}

/* Opens the loop over units: PREFIX0, PREFIX1... are a unit's indices along the spatial axes `dim`,
 * NAME the remaining index. */
static void open_units(LsEmit *e, const int64_t *dim, int n, const char *prefix, const char *name)
{
    ls_emit_line(e, "for (int64_t u = lo; u < hi; u++) {");
    int64_t below = 1;
    for (int d = n - 1; d >= 0; d--) {
        ls_emit_line(e, "const int64_t %s%d = u / " LS_N64 " %% " LS_N64 ";", prefix, d, below,
                     dim[d]);
        below *= dim[d];
    }
    ls_emit_line(e, "const int64_t %s = u / " LS_N64 ";", name, below);
}

static int open_loop(LsEmit *e, const char *var, int d, int64_t n)
{
    ls_emit_line(e, "for (int64_t %s%d = 0; %s%d < %" PRId64 "; %s%d++) {", var, d, var, d, n, var,
                 d);
    return 1;
}

/* "((n * 28 + i0) * 28 + i1) * 64" */
static const char *place(const Own *o, const char *outer, const char *var, const int64_t *dim,
                         int64_t channels)
{
    LsArena *arena = o->k->g->arena;
    const char *text = outer;
    for (int d = 0; d < o->at->n; d++)
        text = ls_arena_printf(arena, "(%s * " LS_N64 " + %s%d)", text, dim[d], var, d);
    return ls_arena_printf(arena, "%s * " LS_N64, text, channels);
}

/* Declares i, the index along axis d of X's element under tap t of window q; skips taps outside
 * X. */
static void tap_to_x(const Own *o, int d)
{
    LsEmit *e = o->k->e;
    ls_emit_line(e, "const int64_t i%d = q%d * " LS_N64 " + t%d * " LS_N64 " - " LS_N64 ";", d,
                 d, o->at->stride[d], d, o->at->dilation[d], o->at->pad_lo[d]);
    ls_emit_line(e, "if (i%d < 0 || i%d >= %" PRId64 ") continue;", d, d, o->x->dim[2 + d]);
}

/* Declares q, the window along axis d with tap t on element i of X; skips taps without a window. */
static void tap_to_y(const Own *o, int d)
{
    LsEmit *e = o->k->e;
    ls_emit_line(e, "const int64_t z%d = i%d + " LS_N64 " - t%d * " LS_N64 ";", d, d,
                 o->at->pad_lo[d], d, o->at->dilation[d]);
    ls_emit_line(e, "const int64_t q%d = z%d / " LS_N64 ";", d, d, o->at->stride[d]);
    ls_emit_line(e, "if (z%d < 0 || z%d %% %" PRId64 " != 0 || q%d >= %" PRId64 ") continue;", d, d,
                 o->at->stride[d], d, o->y->dim[2 + d]);
}

static void pointers(const Own *o, const char *a, const char *b, const char *out)
{
    const LsKernelText *k = o->k;
    ls_emit_operand(k, a, 0);
    ls_emit_operand(k, b, 1);
    if (ls_is(ls_in(k->g, k->n, 2)))
        ls_emit_operand(k, "bias", 2);
    ls_emit_result(k, out, 0);
}

/* Element `x` of operand k as a value. */
static const char *get(const Own *o, int k, const char *x)
{
    return ls_widened(o->k->g->arena, ls_operand_type(o->k, k), x);
}

/* A value as an element of the result. */
static const char *put(const Own *o, const char *v)
{
    return ls_stored(o->k->g->arena, ls_result_type(o->k, 0), v);
}

static const char *start(const Own *o, const char *bias)
{
    return ls_is(ls_in(o->k->g, o->k->n, 2)) ? bias : "0";
}

/* y: one unit per window, the channels of y over the threads. */
static void forward_body(const Own *o)
{
    LsEmit *e = o->k->e;
    int n = o->at->n, open = 0;
    pointers(o, "x", "w", "y");
    open_units(e, o->y->dim + 2, n, "q", "image");
    ls_emit_line(e, "LS_LANES(m, 0, " LS_BOUND64 ") {", o->w->dim[0]);
    ls_emit_line(e, "real sum = %s;", start(o, "bias[m]"));
    for (int d = 0; d < n; d++) {
        open += open_loop(e, "t", d, o->w->dim[2 + d]);
        tap_to_x(o, d);
    }
    const char *px = place(o, "image", "i", o->x->dim + 2, o->x->dim[1]);
    const char *pw = place(o, "m", "t", o->w->dim + 2, o->cg);
    ls_emit_line(e, "const %s *const px = x + %s + m / " LS_N64 " * " LS_N64 ";",
                 ls_ctype(ls_operand_type(o->k, 0)), px, o->mg, o->cg);
    ls_emit_line(e, "const %s *const pw = w + %s;", ls_ctype(ls_operand_type(o->k, 1)), pw);
    ls_emit_line(e, "for (int64_t c = 0; c < %" PRId64 "; c++)", o->cg);
    ls_emit_line(e, "    sum = ls_fma(%s, %s, sum);", get(o, 0, "px[c]"), get(o, 1, "pw[c]"));
    ls_emit_close(e, open);
    ls_emit_line(e, "y[u * " LS_N64 " + m] = %s;", o->w->dim[0], put(o, "sum"));
}

/* x: one unit per point of X, its channels over the threads. */
static void data_body(const Own *o)
{
    LsEmit *e = o->k->e;
    int n = o->at->n, open = 0;
    pointers(o, "y", "w", "x");
    open_units(e, o->x->dim + 2, n, "i", "image");
    ls_emit_line(e, "LS_LANES(c, 0, " LS_BOUND64 ") {", o->x->dim[1]);
    ls_emit_line(e, "const int64_t first = c / " LS_N64 " * " LS_N64 ";", o->cg, o->mg);
    ls_emit_line(e, "real sum = %s;", start(o, "bias[c]"));
    for (int d = 0; d < n; d++) {
        open += open_loop(e, "t", d, o->w->dim[2 + d]);
        tap_to_y(o, d);
    }
    const char *py = place(o, "image", "q", o->y->dim + 2, o->y->dim[1]);
    const char *pw = place(o, "m", "t", o->w->dim + 2, o->cg);
    ls_emit_line(e, "for (int64_t m = first; m < first + %" PRId64 "; m++)", o->mg);
    LsArena *a = o->k->g->arena;
    const char *at_y = ls_arena_printf(a, "y[%s + m]", ls_unmarked(a, py));
    const char *at_w = ls_arena_printf(a, "w[%s + c %% %" PRId64 "]", ls_unmarked(a, pw), o->cg);
    ls_emit_line(e, "    sum = ls_fma(%s, %s, sum);", get(o, 0, at_y), get(o, 1, at_w));
    ls_emit_close(e, open);
    ls_emit_line(e, "x[u * " LS_N64 " + c] = %s;", o->x->dim[1], put(o, "sum"));
}

/* w: one unit per filter and tap, its channels over the threads; long sums in double. */
static void weights_body(const Own *o)
{
    LsEmit *e = o->k->e;
    int n = o->at->n, open = 0;
    pointers(o, "y", "x", "w");
    open_units(e, o->w->dim + 2, n, "t", "m");
    ls_emit_line(e, "LS_LANES(c, 0, " LS_BOUND64 ") {", o->cg);
    ls_emit_line(e, "double sum = 0;");
    ls_emit_line(e, "for (int64_t image = 0; image < %" PRId64 "; image++) {", o->x->dim[0]);
    open++;
    for (int d = 0; d < n; d++) {
        open += open_loop(e, "q", d, o->y->dim[2 + d]);
        tap_to_x(o, d);
    }
    const char *px = place(o, "image", "i", o->x->dim + 2, o->x->dim[1]);
    const char *py = place(o, "image", "q", o->y->dim + 2, o->y->dim[1]);
    LsArena *a = o->k->g->arena;
    const char *at_y = ls_arena_printf(a, "y[%s + m]", py);
    const char *at_x =
        ls_arena_printf(a, "x[%s + m / " LS_N64 " * " LS_N64 " + c]", px, o->mg, o->cg);
    ls_emit_line(e, "sum += (double)%s * (double)%s;", get(o, 0, at_y), get(o, 1, at_x));
    ls_emit_close(e, open);
    ls_emit_line(e, "w[u * " LS_N64 " + c] = %s;", o->cg, put(o, "(real)sum"));
}

LsGrid ls_conv_own_part(const LsKernelText *k)
{
    const Own o = own_of(k);
    int op = k->g->node[k->n.i].op;
    const LsShape *out = ls_shape(k->g, ls_out(k->g, k->n, 0));
    int64_t channels = out->dim[1];
    const LsGrid part = {"part", ls_count(out) / channels, ls_threads(channels, 256), 1};
    ls_emit_part(k, &part);
    if (op == LS_OP_CONV)
        forward_body(&o);
    else if (op == LS_OP_CONV_DX)
        data_body(&o);
    else
        weights_body(&o);
    ls_emit_close(k->e, 3);     /* lanes, units, part */
    return part;
}
