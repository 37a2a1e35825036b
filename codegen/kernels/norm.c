/* codegen/kernels/norm.c -- LS_K_NORM: layer norm and its gradient to x, row by row. The gradient
 * may be stored as its sum with another tensor.
 *
 * A row spans the normalised axes and stays in the cache between the passes over it. The variance
 * is the mean of squared distances, not a difference of squares. */
#include "codegen/kernels/widen_rows.h"

#include <inttypes.h>

typedef struct Norm {
    const LsKernelText *k;
    LsEmit *e;
    int64_t rows, n, lanes;
    int y;                      /* rows of threads */
} Norm;

/* Prints the function that stores a row once its sums are known. It rounds each operation by
 * itself, so alternatives of y's readers compute the same bits
 * (codegen/fusion/fused_alternatives.c), and so does dx with an addend. y may be any of the rows
 * that it is computed from. */
static void row_function(const Norm *m, const char *takes, const char *value)
{
    ls_emit_line(m->e, "LS_EXACT_BEGIN");
    ls_emit_line(m->e, "LS_HELPER void %s_row(%s,", m->k->name, takes);
    ls_emit_line(m->e, "    real *y LS_THREADS)");
    ls_emit_line(m->e, "{");
    ls_emit_line(m->e, "%s(i, 0, %" PRId64 ") {", ls_lanes_word(ls_fours(m->n)), m->n);
    ls_emit_line(m->e, "y[i] = %s;", value);
    ls_emit_close(m->e, 2);
    ls_emit_line(m->e, "LS_EXACT_END");
}

/* The same where rows are of 16 bits and in place: `takes` and `value` then speak of pointers to
 * their elements. rows, vectors: the arrays of that type that the value reads, and those of
 * reals. */
static void row_function_in_place(const Norm *m, const char *takes, const char *const rows[],
                                  const char *const vectors[], const char *value)
{
    const LsType type = ls_result_type(m->k, 0);
    const int wide = ls_wide(m->n, true);
    ls_emit_line(m->e, "LS_HELPER void %s_row(%s,", m->k->name, takes);
    ls_emit_line(m->e, "    %s *y LS_THREADS)", ls_ctype(type));
    ls_emit_line(m->e, "{");
    for (int k = 0; wide > 0 && rows[k] != NULL; k++)
        ls_emit_room(m->e, wide, rows[k]);
    for (int k = 0; wide > 0 && vectors[k] != NULL; k++)
        ls_emit_room(m->e, wide, vectors[k]);
    if (wide > 0)
        ls_emit_room(m->e, wide, "y");
    ls_emit_line(m->e, "%s(i, 0, %" PRId64 ") {", ls_lanes_word(wide), m->n);
    for (int k = 0; rows[k] != NULL; k++)
        ls_emit_line(m->e, "const real %s_i = %s;", rows[k], ls_row_get(m->k, type, wide, rows[k]));
    for (int k = 0; vectors[k] != NULL; k++)
        ls_emit_line(m->e, "const real %s_i = %s;", vectors[k],
                     ls_row_get(m->k, LS_REAL, wide, vectors[k]));
    ls_row_put(m->k, type, wide, "y", value);
    ls_emit_close(m->e, 2);
}

static bool has(const Norm *m, int operand) { return ls_is(ls_in(m->k->g, m->k->n, operand)); }

static void forward_row_in_place(const Norm *m)
{
    static const char *const rows[] = {"x", NULL}, *const scaled[] = {"scale", NULL},
                             *const both[] = {"scale", "bias", NULL};
    const char *takes =
        ls_arena_printf(m->k->g->arena, "const %s *x, const real *scale, real mean, real invstd%s",
                        ls_ctype(ls_result_type(m->k, 0)), has(m, 2) ? ", const real *bias" : "");
    row_function_in_place(m, takes, rows, has(m, 2) ? both : scaled,
                          has(m, 2) ? "(x_i - mean) * invstd * scale_i + bias_i"
                                    : "(x_i - mean) * invstd * scale_i");
}

static void forward_row(const Norm *m)
{
    if (ls_rows_in_place(m->k)) {
        forward_row_in_place(m);
        return;
    }
    static const char takes[] = "const real *x, const real *scale, real mean, real invstd";
    if (has(m, 2))
        row_function(m, ls_arena_printf(m->k->g->arena, "%s, const real *bias", takes),
                     "(x[i] - mean) * invstd * scale[i] + bias[i]");
    else
        row_function(m, takes, "(x[i] - mean) * invstd * scale[i]");
}

static LsRowStage stage(const Norm *m, const char *all)
{
    return (LsRowStage){all, ls_arena_printf(m->k->g->arena, "row * " LS_N64, m->n), m->n, m->y};
}

static void forward(const Norm *m)
{
    const LsKernelText *k = m->k;
    LsEmit *e = m->e;
    const LsRowStage x = stage(m, "all_x"), y = stage(m, "all_y");
    ls_row_stage_in(k, "x", 0, &x);
    ls_row_stage_out(k, "y", 0, &y);
    ls_emit_line(e,
                 "const real mean = (real)(ls_row_sum(x, %" PRId64 ", %" PRId64 ") / " LS_N64 ");",
                 m->n, m->lanes, m->n);
    ls_emit_line(
        e, "const double var = ls_row_square(x, mean, %" PRId64 ", %" PRId64 ") / " LS_N64 ";",
        m->n, m->lanes, m->n);
    ls_emit_line(e, "const real invstd = (real)(1 / sqrt(var + %.17g));",
                 k->g->node[k->n.i].attr.norm.eps);
    ls_emit_line(e, "%s_row(x, scale, mean, invstd, %sy LS_ITS_THREADS);", k->name,
                 has(m, 2) ? "bias, " : "");
    ls_row_stage_end(k, "y", 0, &y);
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
    if (has(m, 2))
        ls_emit_operand(m->k, "bias", 2);
    ls_emit_result(m->k, "means", 1);
    ls_emit_result(m->k, "invstds", 2);
}

static void backward_row_in_place(const Norm *m)
{
    static const char *const two[] = {"dy", "x", NULL}, *const three[] = {"dy", "x", "plus", NULL};
    static const char *const vectors[] = {"scale", NULL};
    const char *type = ls_ctype(ls_result_type(m->k, 0));
    const char *takes = ls_arena_printf(
        m->k->g->arena,
        "const %s *dy, const %s *x, const real *scale,\n    real mean, real "
        "invstd, real sum, real dot%s",
        type, type, has(m, 5) ? ls_arena_printf(m->k->g->arena, ", const %s *plus", type) : "");
    row_function_in_place(
        m, takes, has(m, 5) ? three : two, vectors,
        has(m, 5) ? "invstd * (dy_i * scale_i - sum - (x_i - mean) * invstd * dot) + plus_i"
                  : "invstd * (dy_i * scale_i - sum - (x_i - mean) * invstd * dot)");
}

static void backward_row(const Norm *m)
{
    if (ls_rows_in_place(m->k)) {
        backward_row_in_place(m);
        return;
    }
    static const char takes[] = "const real *dy, const real *x, const real *scale,\n"
                                "    real mean, real invstd, real sum, real dot";
    static const char dx[] = "invstd * (dy[i] * scale[i] - sum - (x[i] - mean) * invstd * dot)";
    struct LsArena *a = m->k->g->arena;
    if (has(m, 5))
        row_function(m, ls_arena_printf(a, "%s, const real *plus", takes),
                     ls_arena_printf(a, "%s + plus[i]", dx));
    else
        row_function(m, takes, dx);
}

/* With h = dy scale and z = (x - mean) invstd: the sums of h and h z over the row, then dx. */
static void backward(const Norm *m)
{
    LsEmit *e = m->e;
    const LsRowStage dy = stage(m, "all_dy"), x = stage(m, "all_x"), dx = stage(m, "all_dx"),
                     plus = stage(m, "all_plus");
    ls_row_stage_in(m->k, "dy", 0, &dy);
    ls_row_stage_in(m->k, "x", 1, &x);
    ls_row_stage_out(m->k, "dx", 0, &dx);
    ls_emit_line(e, "const real mean = means[row], invstd = invstds[row];");
    ls_emit_line(e,
                 "const real sum = (real)(ls_row_%s(dy, scale, %" PRId64 ", %" PRId64
                 ") / " LS_N64 ");",
                 ls_rows_in_place(m->k) ? "weighted" : "dot", m->n, m->lanes, m->n);
    ls_emit_line(e,
                 "const real dot = (real)(ls_row_normal_dot(dy, scale, x, mean, invstd, %" PRId64
                 ", %" PRId64 ") / " LS_N64 ");",
                 m->n, m->lanes, m->n);
    if (has(m, 5))
        ls_row_stage_in(m->k, "plus", 5, &plus);
    ls_emit_line(e, "%s_row(dy, x, scale, mean, invstd, sum, dot, %sdx LS_ITS_THREADS);",
                 m->k->name, has(m, 5) ? "plus, " : "");
    ls_row_stage_end(m->k, "dx", 0, &dx);
}

static void backward_pointers(const Norm *m)
{
    ls_emit_operand(m->k, "all_dy", 0);
    ls_emit_operand(m->k, "all_x", 1);
    ls_emit_result(m->k, "all_dx", 0);
    ls_emit_operand(m->k, "scale", 2);
    ls_emit_operand(m->k, "means", 3);
    ls_emit_operand(m->k, "invstds", 4);
    if (has(m, 5))
        ls_emit_operand(m->k, "all_plus", 5);
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
    (grad ? backward_row : forward_row)(&m);
    const LsGrid part = ls_rows_grid("part", m.rows, group, m.n);
    m.y = part.y;
    ls_emit_part(k, &part);
    (grad ? backward_pointers : forward_pointers)(&m);
    ls_emit_line(k->e, "LS_ROWS(row, lo * " LS_N64 ", ls_least(hi * " LS_N64 ", " LS_N64 ")) {",
                 group, group, m.rows);
    (grad ? backward : forward)(&m);
    ls_emit_close(k->e, 2);
    ls_emit_launch(k, &part, 1);
}

const LsEmitter ls_emitter_norm = {.emit = norm_emit};
