/* codegen/kernels/norm.c -- LS_K_NORM: layer norm and its gradient to x, row by row.
 *
 * A row is what the normalised axes hold; it stays in the cache between the passes over it. The
 * variance is the mean of squared distances, not a difference of squares. */
#include "codegen/kernels/nest.h"

#include <inttypes.h>

typedef struct Norm {
    const LsKernelText *k;
    LsEmit *e;
    int64_t rows, n, lanes;
} Norm;

static void loop(const Norm *m)
{
    ls_emit_line(m->e, "%s(i, 0, %" PRId64 ") {", ls_lanes_word(m->n % 4 == 0), m->n);
}

/* The normalised row from its statistics, each operation rounded by itself: alternatives of its
 * readers compute the same (codegen/alternative.c). x may be y. */
static void forward_row(const Norm *m)
{
    bool bias = ls_is(ls_in(m->k->g, m->k->n, 2));
    ls_emit_line(m->e, "LS_EXACT_BEGIN");
    ls_emit_line(m->e, "LS_HELPER void %s_row(const real *x, real mean, real invstd,", m->k->name);
    ls_emit_line(m->e, "    const real *scale, %sreal *y)", bias ? "const real *bias, " : "");
    ls_emit_line(m->e, "{");
    loop(m);
    ls_emit_line(m->e, "y[i] = (x[i] - mean) * invstd * scale[i]%s;", bias ? " + bias[i]" : "");
    ls_emit_close(m->e, 2);
    ls_emit_line(m->e, "LS_EXACT_END");
}

static void forward(const Norm *m)
{
    const LsKernelText *k = m->k;
    LsEmit *e = m->e;
    bool bias = ls_is(ls_in(k->g, k->n, 2));
    ls_emit_line(e, "const real *const x = all_x + row * %" PRId64 ";", m->n);
    ls_emit_line(e, "real *const y = all_y + row * %" PRId64 ";", m->n);
    ls_emit_line(e,
                 "const real mean = (real)(ls_row_sum(x, %" PRId64 ", %" PRId64 ") / %" PRId64 ");",
                 m->n, m->lanes, m->n);
    ls_emit_line(
        e, "const double var = ls_row_square(x, mean, %" PRId64 ", %" PRId64 ") / %" PRId64 ";",
        m->n, m->lanes, m->n);
    ls_emit_line(e, "const real invstd = (real)(1 / sqrt(var + %.17g));",
                 k->g->node[k->n.i].attr.norm.eps);
    ls_emit_line(e, "%s_row(x, mean, invstd, scale, %sy);", k->name, bias ? "bias, " : "");
    ls_emit_line(e, "LS_LEAD {");
    ls_emit_line(e, "means[row] = mean;");
    ls_emit_line(e, "invstds[row] = invstd;");
    ls_emit_line(e, "}");
}

static void forward_pointers(const Norm *m)
{
    ls_emit_operand(m->k, "all_x", 0);
    ls_emit_result(m->k, "all_y", 0);
    ls_emit_operand(m->k, "scale", 1);
    if (ls_is(ls_in(m->k->g, m->k->n, 2)))
        ls_emit_operand(m->k, "bias", 2);
    ls_emit_result(m->k, "means", 1);
    ls_emit_result(m->k, "invstds", 2);
}

/* h = dy scale, z = (x - mean) invstd; two sums over the row, then dx. */
static void backward(const Norm *m)
{
    LsEmit *e = m->e;
    ls_emit_line(e, "const real *const dy = all_dy + row * %" PRId64 ";", m->n);
    ls_emit_line(e, "const real *const x = all_x + row * %" PRId64 ";", m->n);
    ls_emit_line(e, "real *const dx = all_dx + row * %" PRId64 ";", m->n);
    ls_emit_line(e, "const real mean = means[row], invstd = invstds[row];");
    ls_emit_line(e,
                 "const real sum = (real)(ls_row_dot(dy, scale, %" PRId64 ", %" PRId64
                 ") / %" PRId64 ");",
                 m->n, m->lanes, m->n);
    ls_emit_line(e,
                 "const real dot = (real)(ls_row_normal_dot(dy, scale, x, mean, invstd, %" PRId64
                 ", %" PRId64 ") / %" PRId64 ");",
                 m->n, m->lanes, m->n);
    loop(m);
    ls_emit_line(e, "dx[i] = invstd * (dy[i] * scale[i] - sum - (x[i] - mean) * invstd * dot);");
    ls_emit_line(e, "}");
}

static void backward_pointers(const Norm *m)
{
    ls_emit_operand(m->k, "all_dy", 0);
    ls_emit_operand(m->k, "all_x", 1);
    ls_emit_result(m->k, "all_dx", 0);
    ls_emit_operand(m->k, "scale", 2);
    ls_emit_operand(m->k, "means", 3);
    ls_emit_operand(m->k, "invstds", 4);
}

static void norm_emit(const LsKernelText *k)
{
    const LsNode *node = &k->g->node[k->n.i];
    bool grad = node->op == LS_OP_LAYER_NORM_GRAD;
    const LsShape *x = ls_in_shape(k->g, k->n, grad ? 1 : 0);
    Norm m = {.k = k, .e = k->e, .rows = 1, .n = 1};
    for (int a = 0; a < x->rank; a++)
        *(a < node->attr.norm.axis ? &m.rows : &m.n) *= x->dim[a];
    m.lanes = ls_lanes(m.n);
    int64_t group = ls_row_group(k, m.n);
    if (!grad)
        forward_row(&m);
    const LsGrid part = ls_rows_grid("part", m.rows, group, m.n);
    ls_emit_part(k, &part);
    (grad ? backward_pointers : forward_pointers)(&m);
    ls_emit_line(k->e, "LS_ROWS(row, lo * %" PRId64 ", ls_least(hi * %" PRId64 ", %" PRId64 ")) {",
                 group, group, m.rows);
    (grad ? backward : forward)(&m);
    ls_emit_close(k->e, 2);
    ls_emit_launch(k, &part, 1);
}

const LsEmitter ls_emitter_norm = {.emit = norm_emit};
