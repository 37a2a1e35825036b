/* tests/test_cuda_matmul.c -- what the compiler prints for products on GPUs: it compiles, and computed
 * by a library in cuBLASLt's place (fake_cublaslt.c) it gives what a triple loop gives. */
#include "tests/matmul_cases.h"

#include "tests/cublas_stand_in.h"
#include "tests/suite.h"

static const LsEmitter *emitter(void) { return ls_emitter_of(LS_TARGET_CUDA, LS_K_MATMUL); }

/* The kernels of all nodes as a shared object. */
static void *build(int n, HNode *const node[], const LsTarget *target)
{
    char path[] = "/tmp/ls_cuda_matmul_XXXXXX.c", command[512];
    int fd = mkstemps(path, 2);
    FILE *to = fdopen(fd, "w");
    ck_assert_ptr_nonnull(to);
    fprintf(to, "#include \"runtime/cuda/ls_cublaslt.h\"\n");
    LsEmit e = {.to = to};
    for (int i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "k%d", i);
        emitter()->emit(&(LsKernelText){.host = &e, .g = &node[i]->g, .n = {1}, .name = name,
                                        .target = target});
        ck_assert_int_eq(e.depth, 0);
    }
    fprintf(to, "const LsKernel kernels[] = {");
    for (int i = 0; i < n; i++)
        fprintf(to, "k%d, ", i);
    fprintf(to, "};\n");
    fclose(to);
    snprintf(command, sizeof command,
             "cc -std=gnu11 -Wall -Wextra -Werror -shared -fPIC -I%s %s -o %s.so", LS_SOURCE, path,
             path);
    ck_assert_msg(system(command) == 0, "%s", command);
    snprintf(command, sizeof command, "%s.so", path);
    void *so = dlopen(command, RTLD_NOW);
    ck_assert_msg(so != NULL, "%s", dlerror());
    unlink(path);
    unlink(command);
    return so;
}

static void run_case(const Case *c, HNode *h, LsKernel kernel, const LsTarget *t, double tolerance)
{
    int rb = t->real_bytes;
    void *arg[5] = {0};
    double *in[3];
    int64_t out = ls_count(&h->value[4].shape), work = emitter()->workspace(&h->g, (LsNodeId){1}, t);
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
    kernel(NULL, arg);
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
    void *so = build(NCASES, node, t);
    const LsKernel *kernel = dlsym(so, "kernels");
    for (int i = 0; i < NCASES; i++) {
        run_case(&cases[i], node[i], kernel[i], t, tolerance);
        free(node[i]);
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

static int64_t workspace_of(int64_t m, int64_t n, int64_t k)
{
    const Case c = {.m = m, .n = n, .k = k, .alpha = 1};
    HNode *h = node_of(&c);
    int64_t bytes = emitter()->workspace(&h->g, (LsNodeId){1},
                                         &(LsTarget){.kind = LS_TARGET_CUDA, .real_bytes = 4});
    free(h);
    return bytes;
}

START_TEST(workspace_goes_to_long_sums_that_leave_processors_idle)
{
    ck_assert_int_eq(workspace_of(16384, 3072, 768), 0);    /* tiles for every processor */
    ck_assert_int_eq(workspace_of(8, 10, 2048), 0);         /* too little to share out */
    ck_assert_int_eq(workspace_of(256, 1000, 100), 0);      /* too short a sum */
    int64_t bytes = workspace_of(768, 768, 16384);          /* a weight's gradient: 7 pieces */
    ck_assert_int_eq(bytes, (1 << 16) + 7 * 768 * 768 * 4 + 255);
    ck_assert_int_eq(workspace_of(1024, 1024, 1 << 20), (1 << 16) + 4 * (1 << 22) + 255);
    ck_assert_int_eq(workspace_of(128, 128 * 20, 1 << 20), (1 << 16) + 13 * 128 * 128 * 20 * 4 + 255);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("cuda_matmul");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, printed_products_give_what_loops_give);
    tcase_add_test(tc, printed_products_give_it_in_double);
    tcase_add_test(tc, printed_products_round_their_factors_where_tf32_is_allowed);
    tcase_add_test(tc, workspace_goes_to_long_sums_that_leave_processors_idle);
    return run_tests("cuda_matmul", tc);
}
