/* codegen/kernels/matmul.c -- MATMUL: the shape of one product, and the product of the batch that a unit
 * belongs to, for the code in runtime/kernels/ls_matmul.h. */
#include "codegen/kernels/matmul.h"

#include "codegen/kernels/computed_operand.h"
#include "codegen/kernels/product.h"
#include "runtime/kernels/ls_kernel_sizes.h"

#include <inttypes.h>

static void matrix_strides(const LsShape *s, int batch_rank, int64_t stride[LS_MAX_RANK])
{
    int64_t dense[LS_MAX_RANK];
    ls_strides(s, LS_ROW, dense);
    for (int i = 0; i < batch_rank; i++) {
        int at = i + s->rank - 2 - batch_rank;
        stride[i] = at < 0 || s->dim[at] == 1 ? 0 : dense[at];
    }
}

static void batch_of(const LsGraph *g, LsNodeId n, LsProduct *p)
{
    const LsShape *y = ls_shape(g, ls_out(g, n, 0));
    int rank = y->rank - 2;
    int64_t a[LS_MAX_RANK], b[LS_MAX_RANK];
    matrix_strides(ls_in_shape(g, n, 0), rank, a);
    matrix_strides(ls_in_shape(g, n, 1), rank, b);
    for (int i = 0; i < rank; i++) {
        int64_t dim = y->dim[i];
        int k = p->naxis - 1;
        if (dim == 1)
            continue;
        if (k >= 0 && p->a[k] == a[i] * dim && p->b[k] == b[i] * dim)
            p->dim[k] *= dim;
        else
            p->dim[k = p->naxis++] = dim;
        p->a[k] = a[i];
        p->b[k] = b[i];
    }
}

enum { ADDRESS = 1024 };        /* bytes of an address text: eight axes of the largest numbers */

/* Writes "VAR + matrix / 4 % 8 * 1024 + ..." to `text`. VAR: a pointer to elements. */
static void address(char *text, size_t room, const char *var, const LsProduct *p,
                    const int64_t *stride)
{
    int used = snprintf(text, room, "%s", var);
    int64_t below = 1;
    for (int i = p->naxis - 1; i >= 0; below *= p->dim[i--])
        if (stride[i] != 0) {
            used += snprintf(text + used, room - (size_t)used, " + matrix");
            if (below != 1)
                used += snprintf(text + used, room - (size_t)used, " / %" PRId64, below);
            if (i > 0)
                used += snprintf(text + used, room - (size_t)used, " %% %" PRId64, p->dim[i]);
            used += snprintf(text + used, room - (size_t)used, " * %" PRId64, stride[i]);
        }
}

LsProduct ls_product_of(const LsGraph *g, LsNodeId n)
{
    const LsGemmAttr *at = &g->node[n.i].attr.gemm;
    const LsShape *a = ls_in_shape(g, n, 0), *y = ls_shape(g, ls_out(g, n, 0));
    const LsShape *b = ls_in_shape(g, n, 1);
    LsProduct p = {.m = y->dim[y->rank - 2], .n = b->dim[b->rank - (at->trans_b ? 2 : 1)],
                   .depth = b->dim[b->rank - (at->trans_b ? 1 : 2)], .batch = 1,
                   .row_a = a->dim[a->rank - 1], .row_c = y->dim[y->rank - 1]};
    int64_t behind = g->value[ls_in(g, n, 1).i].rows_behind;
    if (at->trans_b && p.row_c == p.n + behind)
        p.n += behind;
    if (!at->trans_a && !at->trans_b && p.row_a == p.depth + behind)
        p.depth += behind;
    batch_of(g, n, &p);
    if (p.naxis == 1 && p.b[0] == 0 && !at->trans_a && p.a[0] == p.m * p.row_a) {
        p.m *= p.dim[0];        /* one B for all: the batch adds rows to A */
        p.naxis = 0;
    }
    for (int i = 0; i < p.naxis; i++)
        p.batch *= p.dim[i];
    return p;
}

/* For one product, with B not transposed. Each block of columns packs all rows of A, and each block of rows
 * packs B again. */
double ls_matmul_computes(const LsGraph *g, LsNodeId n, int operand, int *axis)
{
    /* A thread takes neighbouring units at once: about two by two. */
    enum { ROWS = 2 * LS_MATMUL_ROWS, COLS = 2 * LS_MATMUL_COLS };
    const LsGemmAttr *at = &g->node[n.i].attr.gemm;
    LsProduct p = ls_product_of(g, n);
    if (operand > 1 || p.batch > 1 || (operand == 1 && at->trans_b))
        return 0;
    *axis = ls_in_shape(g, n, operand)->rank - 1;
    return (double)(operand == 0 ? ls_ceil_div(p.n, COLS) : ls_ceil_div(p.m, ROWS));
}

void ls_product_emit_shape(const LsKernelText *k, const LsProduct *p, const LsGemmAttr *at)
{
    const bool dot16 = ls_is_dot16(&k->g->node[k->n.i]);
    k->e->needs |= dot16 ? LS_NEEDS_MATMUL | LS_NEEDS_DOT16 : LS_NEEDS_MATMUL;
    ls_emit_line(k->e,
                 "static const LsMatmul %s_shape = {.batch = %" PRId64 ", .m = %" PRId64
                 ", .n = %" PRId64 ", .k = %" PRId64
                 ", .turn_a = %d, .turn_b = %d, .alpha = LS_R(%.17g)%s};",
                 k->name, p->batch, p->m, p->n, p->depth, at->trans_a, at->trans_b, at->alpha,
                 dot16 ? ", .dot16 = LS_DOT16" : "");
}

/* The variable as a pointer to the operand's elements. */
static const char *elements_of(const LsKernelText *k, int operand, const char *var)
{
    return ls_arena_printf(k->g->arena, "(const %s *)%s", ls_ctype(ls_operand_type(k, operand)), var);
}

static void matmul_emit(const LsKernelText *k)
{
    const LsGraph *g = k->g;
    const LsNode *node = &g->node[k->n.i];
    const LsGemmAttr *at = &node->attr.gemm;
    const LsProduct p = ls_product_of(g, k->n);
    bool bias = ls_own_operands(node) > 2 && ls_is(ls_in(g, k->n, 2));
    char ta[ADDRESS], tb[ADDRESS];
    LsType to = ls_result_type(k, 0);
    address(ta, sizeof ta, elements_of(k, 0, "a.at"), &p, p.a);
    address(tb, sizeof tb, elements_of(k, 1, "b.at"), &p, p.b);
    const char *result = ls_is_16(to)
        ? ls_arena_printf(g->arena, ".to = %s, .rounded = c", ls_stored_word(to)) : ".c = c";
    LsEmit *e = k->e;
    ls_computed_emit(k);
    ls_product_emit_shape(k, &p, at);
    ls_emit_line(e, "static void %s_part(LsRun *run, void *const arg[], int64_t lo, int64_t hi)",
                 k->name);
    ls_emit_line(e, "{");
    ls_computed_source(k, "a", 0);
    ls_computed_source(k, "b", 1);
    if (bias)
        ls_emit_operand(k, "bias", 2);
    ls_emit_result(k, "c", 0);
    ls_emit_line(e, "(void)run;");
    if (p.batch == 1) {
        ls_emit_line(e, "const LsMatmulArgs of = {.a = a, .b = b, .bias = %s, %s};", bias ? "bias" : "NULL", result);
        ls_emit_line(e, "ls_matmul_some(&%s_shape, &of, lo, hi);", k->name);
    } else {
        ls_emit_line(e, "const int64_t units = ls_matmul_units(&%s_shape);", k->name);
        ls_emit_line(e, "for (int64_t end; lo < hi; lo = end) {");
        ls_emit_line(e, "const int64_t matrix = lo / units, first = matrix * units;");
        ls_emit_line(e, "end = ls_least(first + units, hi);");
        ls_emit_line(e, "const LsMatmulArgs of = {.a = %s,", ls_stored_source(k, ta, 0));
        ls_emit_line(e, "    .b = %s, .bias = %s, %s + matrix * %" PRId64 "};", ls_stored_source(k, tb, 1),
                     bias ? "bias" : "NULL", result, p.m * p.n);
        ls_emit_line(e, "ls_matmul_some(&%s_shape, &of, lo - first, end - first);", k->name);
        ls_emit_line(e, "}");
    }
    ls_emit_line(e, "}");
    ls_emit_line(e, "static void %s(LsRun *run, void *const arg[])", k->name);
    ls_emit_line(e, "{");
    ls_emit_line(e, "ls_parallel(run, %s_part, ls_matmul_units(&%s_shape) * %" PRId64 ", arg);",
                 k->name, k->name, p.batch);
    ls_emit_line(e, "}");
}

const LsEmitter ls_emitter_matmul = {.emit = matmul_emit};
