/* tests/codegen/test_cuda_matmul.c -- the text that the compiler prints for products on GPUs: it
 * compiles, and with a library in cuBLASLt's place (fake_cublaslt.c) it gives the results of a
 * triple loop. */
#include "tests/support/matmul_cases.h"

#include "tests/support/cublas_stand_in.h"
#include "tests/support/cuda_objects.h"
#include "tests/support/suite.h"

static const LsEmitter *emitter(void) { return ls_emitter_of(LS_TARGET_CUDA, LS_K_MATMUL); }

static void run_case(const Case *c, HNode *h, LsKernel kernel, const LsTarget *t, double tolerance)
{
    int rb = t->real_bytes;
    void *arg[5] = {0};
    double *in[3];
    int64_t out = ls_count(&h->value[4].shape),
            work = emitter()->workspace(&h->g, (LsNodeId){1}, t);
    for (int k = 0; k < 3; k++) {
        int64_t n = h->operand[k].i != 0 ? ls_count(&h->value[k + 1].shape) : 0;
        in[k] = h_random(n, (uint64_t)k + 1);
        arg[k] = n > 0 ? h_array(n, rb) : NULL;
        for (int64_t i = 0; i < n; i++)
            if (rb == 4)
                ((float *)arg[k])[i] = (float)in[k][i];
            else
                ((double *)arg[k])[i] = in[k][i];
    }
    arg[3] = h_array(out, rb);
    arg[4] = work > 0 ? h_array(work / rb, rb) : NULL;
    double *want = reference(c, h, (const double *const *)in), scale = 1e-30;
    kernel(&(LsRun){0}, arg);
    for (int64_t i = 0; i < out; i++)
        scale = fmax(scale, fabs(want[i]));
    for (int64_t i = 0; i < out; i++)
        ck_assert_double_le(fabs(h_at(arg[3], i, rb) - want[i]), tolerance * scale);
    ck_assert(h_guarded(arg[3], out, rb));
    ck_assert(work == 0 || h_guarded(arg[4], work / rb, rb));
    for (int k = 0; k < 5; k++)
        free(arg[k]);
    for (int k = 0; k < 3; k++)
        free(in[k]);
    free(want);
}

static void check_all(const LsTarget *t, double tolerance)
{
    HNode *node[NCASES];
    stand_in_open(LS_FAKE_CUBLASLT);
    for (int i = 0; i < NCASES; i++)
        node[i] = node_of(&cases[i]);
    void *so = cuda_build(emitter(), "runtime/cuda/ls_cublaslt.h", NCASES, node, t);
    const LsKernel *kernel = dlsym(so, "kernels");
    for (int i = 0; i < NCASES; i++) {
        run_case(&cases[i], node[i], kernel[i], t, tolerance);
        h_free(node[i]);
    }
    stand_in_close();
    dlclose(so);
}

START_TEST(printed_products_give_what_loops_give)
{
    check_all(&(LsTarget){.kind = LS_TARGET_CUDA, .real_bytes = 4}, 2e-6);
}
END_TEST

START_TEST(printed_products_give_it_in_double)
{
    check_all(&(LsTarget){.kind = LS_TARGET_CUDA, .real_bytes = 8}, 1e-14);
}
END_TEST

START_TEST(printed_products_round_their_factors_where_tf32_is_allowed)
{
    check_all(&(LsTarget){.kind = LS_TARGET_CUDA, .real_bytes = 4, .tf32 = true}, 2e-3);
}
END_TEST

/* ---- epilogues ---- */
typedef struct Behind { LsThen then; bool bias, second, turn_a; LsShape a, b, y, more; } Behind;

static const Behind behinds[] = {
    {LS_THEN_NOTHING, true, false, false, {2, {12, 8}}, {2, {8, 20}}, {2, {12, 20}}, {-1, {0}}},
    {LS_THEN_NOTHING, true, false, false, {2, {3, 8}}, {2, {8, 5}}, {2, {3, 5}}, {-1, {0}}},
    {LS_THEN_RELU, true, false, false, {3, {3, 6, 8}}, {3, {3, 8, 20}}, {3, {3, 6, 20}}, {-1, {0}}},
    {LS_THEN_RELU, false, false, false, {2, {700, 3}}, {2, {3, 9}}, {2, {700, 9}}, {-1, {0}}},
    {LS_THEN_GELU, true, false, false, {2, {12, 8}}, {2, {8, 20}}, {2, {12, 20}}, {-1, {0}}},
    {LS_THEN_GELU, true, true, false, {2, {12, 8}}, {2, {8, 24}}, {2, {12, 24}}, {2, {12, 24}}},
    {LS_THEN_GELU, false, true, false, {2, {12, 8}}, {2, {8, 24}}, {2, {12, 24}}, {2, {12, 24}}},
    {LS_THEN_GELU_SLOPE, false, false, false, {2, {12, 8}}, {2, {8, 24}}, {2, {12, 24}}, {-1, {0}}},
    {LS_THEN_ADD, true, false, false, {2, {12, 8}}, {2, {8, 20}}, {2, {12, 20}}, {-1, {0}}},
    {LS_THEN_ADD, false, false, false, {3, {3, 6, 8}}, {3, {3, 8, 5}}, {3, {3, 6, 5}}, {-1, {0}}},
    {LS_THEN_SUM_A, false, true, true, {2, {650, 11}}, {2, {650, 10}}, {2, {11, 10}}, {1, {11}}},
    {LS_THEN_SUM_B, false, true, true, {2, {650, 11}}, {2, {650, 300}}, {2, {11, 300}}, {1, {300}}},
};
enum { NBEHINDS = sizeof behinds / sizeof *behinds, BEHIND_ARGUMENTS = 7 };

static HNode *behind_node(const Behind *b)
{
    const LsShape none = {.rank = -1}, bias = {1, {b->y.dim[b->y.rank - 1]}};
    bool four = b->then == LS_THEN_GELU_SLOPE || b->then == LS_THEN_ADD;
    const LsShape in[4] = {b->a, b->b, b->bias ? bias : none, b->y};
    HNode *h = h_node(LS_OP_MATMUL, four ? 4 : 3, in, &b->y, LS_ROW,
                      &(LsAttr){.gemm = {.trans_a = b->turn_a, .alpha = 1, .then = b->then}});
    if (b->second) {
        h->value[h->g.nvalue++] = (LsValue){.name = "v", .kind = LS_V_TEMP, .shape = b->more};
        h->node[1].nout = 2;
    }
    return h;
}

/* Runs the kernel. Returns its results one after the other, to be freed. */
static double *results_of(const HNode *h, LsKernel kernel, const LsTarget *t, int64_t *count)
{
    void *arg[BEHIND_ARGUMENTS] = {0};
    int nin = h->node[1].nin, nout = h->node[1].nout, rb = t->real_bytes;
    int64_t size[BEHIND_ARGUMENTS] = {0}, n = 0;
    int64_t work = (emitter()->workspace(&h->g, (LsNodeId){1}, t) + rb - 1) / rb;
    for (int k = 0; k < nin + nout; k++) {
        if (k < nin && h->operand[k].i == 0)
            continue;
        size[k] = ls_count(&h->value[k + 1].shape);
        double *from = h_random(size[k], (uint64_t)k + 1);
        arg[k] = h_array(size[k], rb);
        for (int64_t i = 0; i < size[k] && k < nin; i++)
            if (rb == 4)
                ((float *)arg[k])[i] = (float)from[i];
            else
                ((double *)arg[k])[i] = from[i];
        free(from);
        n += k >= nin ? size[k] : 0;
    }
    arg[nin + nout] = work > 0 ? h_array(work, rb) : NULL;
    kernel(&(LsRun){0}, arg);
    double *all = malloc((size_t)n * sizeof *all);
    *count = 0;
    for (int k = 0; k <= nin + nout; k++) {
        for (int64_t i = 0; i < size[k] && k >= nin; i++)
            all[(*count)++] = h_at(arg[k], i, rb);
        ck_assert(arg[k] == NULL || k < nin
                  || h_guarded(arg[k], k < nin + nout ? size[k] : work, rb));
        free(arg[k]);
    }
    return all;
}

static void check_behind(int real_bytes, const char *how, double tolerance)
{
    const LsTarget t = {.kind = LS_TARGET_CUDA, .real_bytes = real_bytes};
    HNode *node[NBEHINDS];
    double *want[NBEHINDS];
    int64_t n, m;
    for (int i = 0; i < NBEHINDS; i++)
        node[i] = behind_node(&behinds[i]);
    void *so = cuda_build(emitter(), "runtime/cuda/ls_cublaslt.h", NBEHINDS, node, &t);
    const LsKernel *kernel = dlsym(so, "kernels");
    stand_in_open(LS_FAKE_CUBLASLT);
    for (int i = 0; i < NBEHINDS; i++)
        want[i] = results_of(node[i], kernel[i], &t, &n);
    stand_in_close();
    setenv(how, "all", 1);
    stand_in_open(LS_FAKE_CUBLASLT);
    for (int i = 0; i < NBEHINDS; i++) {
        double *got = results_of(node[i], kernel[i], &t, &m), scale = 1;
        free(results_of(node[i], kernel[i], &t, &n));       /* the library no longer does it */
        for (int64_t k = 0; k < m; k++)
            scale = fmax(scale, fabs(want[i][k]));
        for (int64_t k = 0; k < m; k++)
            ck_assert_msg(fabs(got[k] - want[i][k]) <= tolerance * scale,
                          "case %d: element %lld is %g, not %g", i, (long long)k, got[k],
                          want[i][k]);
        free(got);
        free(want[i]);
        h_free(node[i]);
    }
    stand_in_close();
    unsetenv(how);
    dlclose(so);
}

START_TEST(what_the_library_does_not_do_behind_a_product_the_printed_kernel_does)
{
    check_behind(4, "FAKE_CUBLASLT_WITHOUT", 4e-6);
    check_behind(4, "FAKE_CUBLASLT_STOPS", 4e-6);
    check_behind(8, "FAKE_CUBLASLT_WITHOUT", 1e-14);
}
END_TEST

static int64_t workspace_of(bool tf32, int64_t m, int64_t n, int64_t k)
{
    const Case c = {.m = m, .n = n, .k = k, .alpha = 1};
    HNode *h = node_of(&c);
    const LsTarget t = {.kind = LS_TARGET_CUDA, .real_bytes = 4, .tf32 = tf32};
    int64_t bytes = emitter()->workspace(&h->g, (LsNodeId){1}, &t);
    free(h);
    return bytes;
}

START_TEST(workspace_goes_to_long_sums_that_leave_processors_idle)
{
    ck_assert_int_eq(workspace_of(false, 16384, 3072, 768), 0);    /* tiles for every processor */
    ck_assert_int_eq(workspace_of(false, 8, 10, 2048), 0);         /* too little work to share */
    ck_assert_int_eq(workspace_of(false, 256, 1000, 100), 0);      /* too short a sum */
    /* a weight's gradient: 7 pieces */
    int64_t bytes = workspace_of(false, 768, 768, 16384);
    ck_assert_int_eq(bytes, (1 << 16) + 7 * 768 * 768 * 4 + 255);
    ck_assert_int_eq(workspace_of(false, 1024, 1024, 1 << 20), (1 << 16) + 4 * (1 << 22) + 255);
    ck_assert_int_eq(workspace_of(false, 128, 128 * 20, 1 << 20),
                     (1 << 16) + 13 * 128 * 128 * 20 * 4 + 255);
    /* large products in TF32: without a workspace there are no kernels for Hopper */
    ck_assert_int_eq(workspace_of(true, 16384, 3072, 768), (32 << 20) + 255);
    ck_assert_int_eq(workspace_of(true, 256, 1000, 100), 0);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("cuda_matmul");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, printed_products_give_what_loops_give);
    tcase_add_test(tc, printed_products_give_it_in_double);
    tcase_add_test(tc, printed_products_round_their_factors_where_tf32_is_allowed);
    tcase_add_test(tc, what_the_library_does_not_do_behind_a_product_the_printed_kernel_does);
    tcase_add_test(tc, workspace_goes_to_long_sums_that_leave_processors_idle);
    return run_tests("cuda_matmul", tc);
}
