/* tests/codegen/test_kernels_attention.c -- attention kernels against the formulas: ragged sizes,
 * both orders of heads and tokens, grouped queries, masks of every kind, causal with columns
 * before. */
#include "tests/support/attention_cases.h"
#include "tests/support/attention_reference.h"
#include "tests/support/suite.h"

static const int real_bytes[] = {4, 8};

static double *values(const Rig *r, LsValueId v, bool filled)
{
    int64_t n = ls_is(v) ? ls_count(ls_shape(r->g, v)) : 0;
    double *x = ls_is(v) ? calloc((size_t)n, sizeof *x) : NULL;
    for (int64_t i = 0; i < n && filled; i++)
        x[i] = rig_get(r, v, i);
    return x;
}

static void compare(const Rig *r, LsValueId v, const double *want, double tolerance)
{
    for (int64_t i = 0; i < ls_count(ls_shape(r->g, v)); i++)
        rig_close_to(r, v, i, want[i], tolerance);
}

static void check(const Rig *r, LsNodeId n, double tolerance)
{
    const LsGraph *g = r->g;
    const LsNode *node = &g->node[n.i];
    bool back = ls_attention_is_back(g, n), joint = ls_attention_is_joint(g, n);
    int first = back ? 3 : 0, nq = joint ? 1 : 3;
    double *in[8] = {0}, *out[3] = {0};
    for (int k = 0; k < node->nin; k++)
        in[k] = values(r, ls_in(g, n, k), true);
    for (int k = 0; k < node->nout; k++)
        out[k] = values(r, ls_out(g, n, k), false);
    AttentionData d = {.g = g, .n = n, .q = in[first], .k = in[first + (joint ? 0 : 1)],
                       .v = in[first + (joint ? 0 : 2)], .mask = in[first + nq],
                       .spans = in[first + nq + 1],
                       .dy = back ? in[0] : NULL, .y = back ? in[1] : out[0],
                       .lse = back ? in[2] : out[1]};
    if (back)
        d.dq = out[0], d.dk = out[joint ? 0 : 1], d.dv = out[joint ? 0 : 2];
    attention_reference(&d);
    for (int k = 0; k < node->nout; k++)
        compare(r, ls_out(g, n, k), out[k], tolerance);
    for (int k = 0; k < 8; k++)
        free(in[k]);
    for (int k = 0; k < 3; k++)
        free(out[k]);
}

static void check_all(const char *flags, int real, bool cuda, bool tf32)
{
    Rig r;
    LsAttr at;
    rig_open(&r, real);
    r.products = true;
    r.flags = flags;
    r.cuda = cuda;
    r.target.tf32 = tf32;
    for (int i = 0; i < NCASES; i++) {
        if (cuda && (cases[i].cut > 0 || cases[i].rows * cases[i].cols > (tf32 ? 10000 : 4000)))
            continue;           /* the executor takes its time; GPUs have no segments */
        LsValueId in[5] = {{0}};
        LsNodeId n = forward(&r, &cases[i], in, &at);
        backward(&r, n, in, &at);
    }
    rig_run(&r);
    for (uint32_t i = 1; i < r.g->nnode; i++)
        check(&r, (LsNodeId){i}, tf32 ? 1e-2 : 2e-5);
    rig_close(&r);
}

START_TEST(attention_and_its_gradient_match_the_formulas)
{
    check_all(NULL, real_bytes[_i], false, false);
}
END_TEST

START_TEST(they_do_with_the_vectors_of_this_machine)
{
    check_all("-O2 -march=native", real_bytes[_i], false, false);
}
END_TEST

START_TEST(those_for_gpus_do_thread_by_thread)
{
    check_all(NULL, real_bytes[_i], true, false);
}
END_TEST

START_TEST(products_on_tensor_cores_are_as_near_as_tf32_allows)
{
    check_all(NULL, 4, true, true);
}
END_TEST

/* Whether the kernel of a node multiplies on tensor cores. */
static bool on_cores(Rig *r, LsNodeId n, int real, bool tf32)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    r->target = (LsTarget){.kind = LS_TARGET_CUDA, .real_bytes = real, .tf32 = tf32};
    rig_emit(r, &(LsKernelText){.g = r->g, .n = n, .name = "k", .target = &r->target}, f, f, NULL);
    fclose(f);
    bool are = strstr(text, "ls_mma_by_rows") != NULL;
    free(text);
    return are;
}

START_TEST(only_tf32_and_heads_that_fit_into_registers_use_tensor_cores)
{
    static const struct { int64_t depth, width; bool forward, back; } head[] = {
        {64, 64, true, true}, {5, 120, true, true}, {65, 64, true, false},
        {128, 128, true, false}, {128, 129, false, false},
    };
    Rig r;
    LsAttr at;
    rig_open(&r, 4);
    for (size_t k = 0; k < sizeof head / sizeof *head; k++) {
        const Case c = {.batch = 1, .heads = 1, .groups = 1, .rows = 8, .cols = 8,
                        .depth = head[k].depth, .width = head[k].width};
        LsValueId in[5] = {{0}};
        LsNodeId n = forward(&r, &c, in, &at), back = backward(&r, n, in, &at);
        ck_assert(on_cores(&r, n, 4, true) == head[k].forward);
        ck_assert(on_cores(&r, back, 4, true) == head[k].back);
        ck_assert(!on_cores(&r, n, 4, false) && !on_cores(&r, back, 4, false));
        ck_assert(!on_cores(&r, n, 8, true) && !on_cores(&r, back, 8, true));
    }
    rig_close(&r);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("kernels_attention");
    tcase_set_timeout(tc, 120);
    /* By whole sets all in both precisions; else doubles in the first test and floats in the
     * others. */
    tcase_add_loop_test(tc, attention_and_its_gradient_match_the_formulas, tests_do_all() ? 0 : 1,
                        2);
    tcase_add_loop_test(tc, they_do_with_the_vectors_of_this_machine, 0, tests_part(2, 1));
    tcase_add_loop_test(tc, those_for_gpus_do_thread_by_thread, 0, tests_part(2, 1));
    tcase_add_test(tc, products_on_tensor_cores_are_as_near_as_tf32_allows);
    tcase_add_test(tc, only_tf32_and_heads_that_fit_into_registers_use_tensor_cores);
    return run_tests("kernels_attention", tc);
}
