/* codegen/kernels/matmul.c -- MATMUL: the shape of one product, and the product of the batch that a
 * unit belongs to, for the code in runtime/kernels/ls_matmul.h. */
#include "codegen/kernels/matmul.h"

#include "codegen/kernels/computed_operand.h"
#include "codegen/kernels/product.h"
#include "compiler/ops/product_shape.h"
#include "runtime/kernels/ls_depth_blocks.h"
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
    const LsShape y = ls_matmul_shape(g, n);
    int rank = y.rank - 2;
    int64_t a[LS_MAX_RANK], b[LS_MAX_RANK];
    matrix_strides(ls_in_shape(g, n, 0), rank, a);
    matrix_strides(ls_in_shape(g, n, 1), rank, b);
    for (int i = 0; i < rank; i++) {
        int64_t dim = y.dim[i];
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
    const LsShape *a = ls_in_shape(g, n, 0), *b = ls_in_shape(g, n, 1), y = ls_matmul_shape(g, n);
    LsProduct p = {.m = y.dim[y.rank - 2], .n = b->dim[b->rank - (at->trans_b ? 2 : 1)],
                   .depth = b->dim[b->rank - (at->trans_b ? 1 : 2)], .batch = 1,
                   .row_a = a->dim[a->rank - 1], .row_c = y.dim[y.rank - 1]};
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

/* For one product, with B not transposed. Each block of columns packs all rows of A, and each block
 * of rows packs B again. */
double ls_matmul_computes(const LsGraph *g, LsNodeId n, int operand, int *axis)
{
    /* A thread takes neighbouring units at once: about two by two. */
    enum { ROWS = 2 * LS_MATMUL_ROWS, COLS = 2 * LS_MATMUL_COLS };
    const LsGemmAttr *at = &g->node[n.i].attr.gemm;
    LsProduct p = ls_product_of(g, n);
    if (g->node[n.i].op != LS_OP_MATMUL || operand > 1 || p.batch > 1
        || (operand == 1 && at->trans_b))
        return 0;
    *axis = ls_in_shape(g, n, operand)->rank - 1;
    return (double)(operand == 0 ? ls_ceil_div(p.n, COLS) : ls_ceil_div(p.m, ROWS));
}

void ls_product_emit_shape(const LsKernelText *k, const LsProduct *p, const LsGemmAttr *at)
{
    const bool dot16 = ls_is_dot16(&k->g->node[k->n.i]);
    /* Sums in the order of tiles go on behind any 32 terms, and their blocks depend on the unit. */
    const char *any = dot16 ? "LS_DOT16_TILES ? 0 : " : "";
    k->e->needs |= dot16 ? LS_NEEDS_MATMUL | LS_NEEDS_DOT16 : LS_NEEDS_MATMUL;
    ls_emit_line(k->e,
                 "static const LsMatmul %s_shape = {.batch = %" PRId64 ", .m = %" PRId64
                 ", .n = %" PRId64 ", .k = %" PRId64
                 ", .turn_a = %d, .turn_b = %d, .alpha = LS_R(%.17g)%s%s};",
                 k->name, p->batch, p->m, p->n, p->depth, at->trans_a, at->trans_b, at->alpha,
                 dot16 ? ", .dot16 = LS_DOT16" : "",
                 k->g->node[k->n.i].op == LS_OP_MATMUL_PART && at->of > 0
                     ? ls_arena_printf(k->g->arena, ", .of = %s%" PRId64 ", .from = %s%" PRId64,
                                       any, at->of, any, at->from)
                     : "");
}

/* The variable as a pointer to the operand's elements. */
static const char *elements_of(const LsKernelText *k, int operand, const char *var)
{
    return ls_arena_printf(k->g->arena, "(const %s *)%s", ls_ctype(ls_operand_type(k, operand)),
                           var);
}

/* ---- columns times rows ---- */

/* Whether the result is so large that no cache holds it, and each element is one product. */
static bool is_outer(const LsKernelText *k, const LsProduct *p)
{
    enum { LARGE = 64 << 20 };      /* bytes */
    const LsNode *node = &k->g->node[k->n.i];
    return p->depth == 1 && p->row_c == p->n && node->nin == 2 && node->computed == NULL
           && node->rounds == LS_REAL && ls_operand_type(k, 0) == LS_REAL
           && ls_operand_type(k, 1) == LS_REAL && ls_result_type(k, 0) == LS_REAL
           && p->batch * p->m * p->n * k->target->real_bytes >= LARGE;
}

static void outer_emit(const LsKernelText *k, const LsProduct *p)
{
    enum { ROWS = 16 };             /* of a unit */
    const int64_t blocks = ls_ceil_div(p->m, ROWS);
    char ta[ADDRESS], tb[ADDRESS];
    LsEmit *e = k->e;
    e->needs |= LS_NEEDS_MATMUL;
    address(ta, sizeof ta, "a", p, p->a);
    address(tb, sizeof tb, "b", p, p->b);
    ls_emit_line(e, "static void %s_part(LsRun *run, void *const arg[], int64_t lo, int64_t hi)",
                 k->name);
    ls_emit_line(e, "{");
    ls_emit_operand(k, "a", 0);
    ls_emit_operand(k, "b", 1);
    ls_emit_result(k, "c", 0);
    ls_emit_line(e, "(void)run;");
    ls_emit_line(e, "for (int64_t u = lo; u < hi; u++) {");
    ls_emit_line(e, "const int64_t matrix = u / %" PRId64 ", row = u %% %" PRId64 " * %d;", blocks,
                 blocks, ROWS);
    ls_emit_line(e,
                 "ls_outer(c + (matrix * %" PRId64 " + row) * %" PRId64
                 ", %s + row, %s, ls_least(%d, %" PRId64 " - row),",
                 p->m, p->n, ta, tb, ROWS, p->m);
    ls_emit_line(e, "    %" PRId64 ", LS_R(%.17g));", p->n, k->g->node[k->n.i].attr.gemm.alpha);
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
    ls_emit_line(e, "static void %s(LsRun *run, void *const arg[])", k->name);
    ls_emit_line(e, "{");
    ls_emit_line(e, "ls_parallel(run, %s_part, %" PRId64 ", arg);", k->name, p->batch * blocks);
    ls_emit_line(e, "}");
}

/* ---- */

static void matmul_emit(const LsKernelText *k)
{
    const LsGraph *g = k->g;
    const LsNode *node = &g->node[k->n.i];
    const LsGemmAttr *at = &node->attr.gemm;
    const LsProduct p = ls_product_of(g, k->n);
    const bool third = ls_own_operands(node) > 2 && ls_is(ls_in(g, k->n, 2)),
               start = third && node->op == LS_OP_MATMUL_PART, bias = third && !start;
    char ta[ADDRESS], tb[ADDRESS];
    LsType to = ls_result_type(k, 0);
    address(ta, sizeof ta, elements_of(k, 0, "a.at"), &p, p.a);
    address(tb, sizeof tb, elements_of(k, 1, "b.at"), &p, p.b);
    const char *result = ls_is_16(to)
        ? ls_arena_printf(g->arena, ".to = %s, .rounded = c", ls_stored_word(to)) : ".c = c";
    LsEmit *e = k->e;
    if (is_outer(k, &p)) {
        outer_emit(k, &p);
        return;
    }
    ls_computed_emit(k);
    ls_product_emit_shape(k, &p, at);
    ls_emit_line(e, "static void %s_part(LsRun *run, void *const arg[], int64_t lo, int64_t hi)",
                 k->name);
    ls_emit_line(e, "{");
    ls_computed_source(k, "a", 0);
    ls_computed_source(k, "b", 1);
    if (third)
        ls_emit_operand(k, start ? "start" : "bias", 2);
    ls_emit_result(k, "c", 0);
    ls_emit_line(e, "(void)run;");
    if (p.batch == 1) {
        ls_emit_line(e, "const LsMatmulArgs of = {.a = a, .b = b, .bias = %s, %s%s};",
                     bias ? "bias" : "NULL", start ? ".start = start, " : "", result);
        ls_emit_line(e, "ls_matmul_some(&%s_shape, &of, lo, hi);", k->name);
    } else {
        ls_emit_line(e, "const int64_t units = ls_matmul_units(&%s_shape);", k->name);
        ls_emit_line(e, "for (int64_t end; lo < hi; lo = end) {");
        ls_emit_line(e, "const int64_t matrix = lo / units, first = matrix * units;");
        ls_emit_line(e, "end = ls_least(first + units, hi);");
        ls_emit_line(e, "const LsMatmulArgs of = {.a = %s,", ls_stored_source(k, ta, 0));
        ls_emit_line(e, "    .b = %s, .bias = %s, %s + matrix * %" PRId64 "};",
                     ls_stored_source(k, tb, 1), bias ? "bias" : "NULL", result, p.m * p.n);
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

/* ---- squared norms of products ---- */

/* Rows of c whose squares one unit adds up: fewer where there are few products, so that there are
 * enough units. */
static int64_t square_rows(const LsProduct *p)
{
    enum { UNITS = 16, LEAST = 64 };
    int64_t rows = LS_MATMUL_ROWS;
    while (rows > LEAST && p->batch * ls_ceil_div(p->m, rows) < UNITS)
        rows /= 2;
    return rows;
}

static int64_t square_parts(const LsProduct *p) { return ls_ceil_div(p->m, square_rows(p)); }

void ls_squares_emit_sum(const LsKernelText *k, int64_t norms, const char *parts)
{
    LsEmit *e = k->e;
    ls_emit_line(e, "static void %s_sum(LsRun *run, void *const arg[], int64_t lo, int64_t hi)",
                 k->name);
    ls_emit_line(e, "{");
    ls_emit_result(k, "y", 0);
    ls_emit_workspace(k, "real", "part");
    ls_emit_line(e, "(void)run, (void)lo, (void)hi;");
    ls_emit_line(e, "ls_squares_join(y, part, %" PRId64 ", %s);", norms, parts);
    ls_emit_line(e, "}");
}

static void squares_emit(const LsKernelText *k)
{
    const LsProduct p = ls_product_of(k->g, k->n);
    const int64_t parts = square_parts(&p);
    char ta[ADDRESS], tb[ADDRESS];
    LsEmit *e = k->e;
    address(ta, sizeof ta, elements_of(k, 0, "a.at"), &p, p.a);
    address(tb, sizeof tb, elements_of(k, 1, "b.at"), &p, p.b);
    ls_product_emit_shape(k, &p, &k->g->node[k->n.i].attr.gemm);
    ls_emit_line(e, "static void %s_part(LsRun *run, void *const arg[], int64_t lo, int64_t hi)",
                 k->name);
    ls_emit_line(e, "{");
    ls_computed_source(k, "a", 0);
    ls_computed_source(k, "b", 1);
    ls_emit_workspace(k, "real", "part");
    ls_emit_line(e, "(void)run;");
    ls_emit_line(e, "for (int64_t u = lo; u < hi; u++) {");
    ls_emit_line(e, "const int64_t matrix = u / %" PRId64 ", row = u %% %" PRId64 " * %" PRId64 ";",
                 parts, parts, square_rows(&p));
    ls_emit_line(e, "(void)matrix;");
    ls_emit_line(e, "const LsMatmulArgs of = {.a = %s, .b = %s};", ls_stored_source(k, ta, 0),
                 ls_stored_source(k, tb, 1));
    ls_emit_line(e,
                 "part[u] = ls_matmul_squares(&%s_shape, &of, row, ls_least(%" PRId64 ", %" PRId64
                 " - row));",
                 k->name, square_rows(&p), p.m);
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
    ls_squares_emit_sum(k, p.batch, ls_arena_printf(k->g->arena, "%" PRId64, parts));
    ls_emit_line(e, "static void %s(LsRun *run, void *const arg[])", k->name);
    ls_emit_line(e, "{");
    ls_emit_line(e, "ls_parallel(run, %s_part, %" PRId64 ", arg);", k->name, parts * p.batch);
    ls_emit_line(e, "ls_parallel(run, %s_sum, 1, arg);", k->name);
    ls_emit_line(e, "}");
}

static void emit(const LsKernelText *k)
{
    (k->g->node[k->n.i].op == LS_OP_MATMUL_SQUARES ? squares_emit : matmul_emit)(k);
}

static int64_t workspace(const LsGraph *g, LsNodeId n, const LsTarget *t)
{
    if (g->node[n.i].op != LS_OP_MATMUL_SQUARES)
        return 0;
    const LsProduct p = ls_product_of(g, n);
    return p.batch * square_parts(&p) * t->real_bytes;
}

bool ls_matmul_block_ends(int real_bytes, bool dot16, int64_t k, int64_t at)
{
    enum { APART = 32 };        /* terms of bfloat16 that add up apart, in the order of tiles */
    const int64_t line = 64 / real_bytes, n = ls_depth_blocks(k, real_bytes, false);
    return ls_depth_block(k, n, ls_depth_block_of(k, n, at, line), line) == at
           && (!dot16 || at == k || at % APART == 0);
}

const LsEmitter ls_emitter_matmul = {.emit = emit, .workspace = workspace};
