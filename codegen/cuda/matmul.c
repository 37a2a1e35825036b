/* codegen/cuda/matmul.c -- MATMUL on GPUs: the description of a product that cuBLASLt computes. */
#include "codegen/cuda/epilogue_fallback.h"
#include "codegen/kernels/loop_nest.h"
#include "codegen/kernels/product.h"
#include "runtime/cuda/cublaslt_matmul.h"

#include <inttypes.h>

enum {
    TILE = 128,                 /* rows and columns of c that a multiprocessor computes at a time */
    SHORTEST = 256,             /* fewest terms of the sum over k worth a multiprocessor of their
                                 * own */
    MOST = 32 << 20,            /* bytes: the workspace that NVIDIA's own callers use on Hopper */
    COUNTERS = 1 << 16,         /* bytes besides the partial sums */
    SMALL = 1 << 20,            /* most multiplications not worth splitting */
    LARGE = 1 << 27,            /* fewest multiplications worth the kernels of Hopper */
};

/* A product with few tiles and a long sum leaves multiprocessors idle unless the sum is split; the
 * partial sums lie in the workspace and are added in order. Other products need no workspace. But
 * without one cuBLASLt 13.1 proposes no TF32 kernel written for Hopper, not even those that would
 * leave the workspace unused, and a product takes twice the time on an H200. */
static int64_t matmul_workspace(const LsGraph *g, LsNodeId n, const LsTarget *t)
{
    const LsProduct p = ls_product_of(g, n);
    int64_t tiles = p.batch * ls_ceil_div(p.m, TILE) * ls_ceil_div(p.n, TILE);
    int64_t pieces = 2 * LS_GPU_PROCESSORS / tiles, longest = p.depth / SHORTEST;
    if (pieces > longest)
        pieces = longest;
    if ((t->tf32 || ls_is_16(ls_type(g, ls_in(g, n, 0)))) && p.batch * p.m * p.n * p.depth >= LARGE)
        return ls_product_room(MOST);
    if (pieces < 2 || p.batch * p.m * p.n * p.depth <= SMALL)
        return 0;
    int64_t bytes = COUNTERS + pieces * p.batch * p.m * p.n * t->real_bytes;
    return ls_product_room(bytes < MOST ? bytes : MOST);
}

/* ---- the epilogue; the sum with another tensor is part of the product ---- */
static bool has_behind(const LsGraph *g, LsNodeId n)
{
    LsThen then = g->node[n.i].attr.gemm.then;
    return ls_is(ls_in(g, n, 2)) || (then != LS_THEN_NOTHING && then != LS_THEN_ADD);
}

/* States the sums of a factor's columns over the inner axis, along which its rows lie
 * (epilogue.c). */
static void state_sums(LsBehind *b, const LsNode *node, const LsProduct *p)
{
    bool of_a = node->attr.gemm.then == LS_THEN_SUM_A;
    int64_t width = of_a ? p->m : p->n;
    b->body.space = (LsShape){2, {p->depth, width}};
    b->body.axes = 1;
    int x = ls_behind_operand(b, of_a ? 0 : 1, &b->body.space);
    int sum = ls_behind_state(b, LS_OP_REDUCE_SUM, x, 0);
    ls_behind_result(b, node->nin + 1, &(LsShape){2, {1, width}},
                     (LsFusedOut){.stmt = sum, .reduce = true, .combine = LS_SUM});
}

/* States the bias, then the activation or its slope. The element between them may be a result,
 * too. */
static void state_points(LsBehind *b, const LsNode *node, const LsProduct *p, bool bias)
{
    LsThen then = node->attr.gemm.then;
    const LsShape *all = &b->body.space, vector = {1, {p->n}};
    b->body.space = (LsShape){2, {p->batch * p->m, p->n}};
    int y = ls_behind_operand(b, node->nin, all);
    int x = bias ? ls_behind_operand(b, 2, &vector)
                 : then == LS_THEN_GELU_SLOPE ? ls_behind_operand(b, 3, all) : 0;
    int before = bias ? ls_behind_state(b, LS_OP_ADD, y, x)
                      : node->nout > 1 ? ls_behind_state(b, LS_OP_DETACH, y, 0) : y;
    int end = then == LS_THEN_RELU ? ls_behind_state(b, LS_OP_RELU, before, 0)
            : then == LS_THEN_GELU ? ls_behind_state(b, LS_OP_GELU_TANH, before, 0)
            : then == LS_THEN_GELU_SLOPE ? ls_behind_state(b, LS_OP_GELU_TANH_GRAD, y, x) : before;
    ls_behind_result(b, node->nin, all, (LsFusedOut){.stmt = end});
    if (node->nout > 1)
        ls_behind_result(b, node->nin + 1, all, (LsFusedOut){.stmt = before});
}

static void print_behind(const LsKernelText *k)
{
    const LsNode *node = &k->g->node[k->n.i];
    const LsProduct p = ls_product_of(k->g, k->n);
    LsThen then = node->attr.gemm.then;
    LsBehind b = {.body.nstmt = 0};
    if (then == LS_THEN_SUM_A || then == LS_THEN_SUM_B)
        state_sums(&b, node, &p);
    else
        state_points(&b, node, &p, ls_is(ls_in(k->g, k->n, 2)));
    ls_behind_emit(&b, k, "cuBLASLt");
}

/* ---- the product ---- */
/* Prints the arguments besides the factors, and the library's epilogue. */
static void emit_rest(const LsKernelText *k)
{
    static const char *const after[] = {"NONE", "RELU", "GELU", "DGELU", "NONE", "NONE", "NONE"};
    const LsNode *node = &k->g->node[k->n.i];
    LsThen then = node->attr.gemm.then;
    bool bias = node->nin > 2 && ls_is(ls_in(k->g, k->n, 2));
    int second = node->nout > 1 ? node->nin + 1 : -1;
    int aux = then == LS_THEN_GELU ? second : then == LS_THEN_GELU_SLOPE ? 3 : -1;
    int64_t workspace = matmul_workspace(k->g, k->n, k->target);
    ls_emit_line(k->host, ".arg_a = 0, .arg_b = 1, .arg_bias = %d, .arg_c = %d,", bias ? 2 : -1,
                 node->nin);
    ls_emit_line(k->host, ".after = LS_AFTER_%s, .arg_aux = %d, .arg_sum_a = %d, .arg_sum_b = %d,",
                 after[then], aux, then == LS_THEN_SUM_A ? second : -1,
                 then == LS_THEN_SUM_B ? second : -1);
    if (then == LS_THEN_ADD)
        ls_emit_line(k->host, ".plus = 1, .arg_plus = 3,");
    ls_emit_line(k->host, ".arg_workspace = %d, .workspace = %" PRId64 ",",
                 workspace > 0 ? node->nin + node->nout : -1, workspace);
    if (has_behind(k->g, k->n))
        ls_emit_line(k->host, ".behind = %s_behind,", k->name);
}

/* LsProductType. */
static const char *type_word(const LsKernelText *k)
{
    const LsType factor = ls_operand_type(k, 0);
    return factor == LS_BF16                ? "LS_PRODUCT_BF16"
         : factor == LS_F16                 ? "LS_PRODUCT_F16"
         : k->target->real_bytes == 8       ? "LS_PRODUCT_F64"
         : k->target->tf32                  ? "LS_PRODUCT_TF32" : "LS_PRODUCT_F32";
}

static void matmul_emit(const LsKernelText *k)
{
    const LsNode *node = &k->g->node[k->n.i];
    const LsGemmAttr *at = &node->attr.gemm;
    const LsProduct p = ls_product_of(k->g, k->n);
    LsEmit *e = k->host;
    if (has_behind(k->g, k->n))
        print_behind(k);
    ls_emit_line(e, "static const LsCudaMatmul %s_product = {", k->name);
    ls_emit_line(e, ".type = %s, .m = %" PRId64 ", .n = %" PRId64 ", .k = %" PRId64 ",",
                 type_word(k), p.m, p.n, p.depth);
    if (ls_is_16(ls_operand_type(k, 0)) && !ls_is_16(ls_result_type(k, 0)))
        ls_emit_line(e, ".wide = true,");
    ls_emit_line(e, ".turn_a = %d, .turn_b = %d, .alpha = %.17g, .naxis = %d,", at->trans_a,
                 at->trans_b, at->alpha, p.naxis);
    if (p.row_a != (at->trans_a ? p.m : p.depth))
        ls_emit_line(e, ".row_a = %" PRId64 ",", p.row_a);
    if (p.row_c != p.n)
        ls_emit_line(e, ".row_c = %" PRId64 ",", p.row_c);
    for (int i = 0; i < p.naxis; i++)
        ls_emit_line(e, ".axis[%d] = {%" PRId64 ", %" PRId64 ", %" PRId64 "},", i, p.dim[i], p.a[i],
                     p.b[i]);
    emit_rest(k);
    ls_emit_line(e, "};");
    ls_emit_line(e, "static void %s(LsRun *run, void *const arg[])", k->name);
    ls_emit_line(e, "{");
    ls_emit_line(e, "ls_cuda_matmul(run, &%s_product, arg);", k->name);
    ls_emit_line(e, "}");
}

const LsEmitter ls_emitter_matmul_cuda = {.emit = matmul_emit, .workspace = matmul_workspace};
