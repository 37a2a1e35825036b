/* tests/codegen/test_cuda_conv.c -- the text that the compiler prints for convolutions on GPUs. A
 * library in cuDNN's place (fake_cudnn.c) plans and computes them, and the results agree with plain
 * loops; so do the kernels that replace it where no engine fits. Parts run as on the CPU. */
#include "codegen/cuda/conv_plan.h"
#include "base/arena.h"
#include "tests/support/conv_cases.h"
#include "tests/support/cudnn_stand_in.h"
#include "tests/support/cuda_objects.h"
#include "tests/support/suite.h"

enum { NODES = 4 };             /* of a case */

static const LsEmitter *emitter(void) { return ls_emitter_of(LS_TARGET_CUDA, LS_K_CONV); }

static void *filled(const double *from, int64_t n, int real_bytes)
{
    void *to = h_array(n, real_bytes);
    for (int64_t i = 0; i < n; i++)
        if (real_bytes == 4)
            ((float *)to)[i] = (float)from[i];
        else
            ((double *)to)[i] = from[i];
    return to;
}

static void run_node(const HNode *h, LsKernel kernel, const LsTarget *t, const double *const in[],
                     const double *want, int number)
{
    int nin = h->node[1].nin, rb = t->real_bytes;
    int64_t out = ls_count(&h->value[nin + 1].shape);
    int64_t room = (emitter()->workspace(&h->g, (LsNodeId){1}, t) + rb - 1) / rb;
    void *arg[6] = {0};
    for (int k = 0; k < nin; k++)
        if (h->operand[k].i != 0)
            arg[k] = filled(in[k], ls_count(&h->value[k + 1].shape), rb);
    arg[nin] = h_array(out, rb);
    arg[nin + 1] = room > 0 ? h_array(room, rb) : NULL;
    LsRun run = {0};
    kernel(&run, arg);
    double scale = 1e-30;
    for (int64_t j = 0; j < out; j++)
        scale = fmax(scale, fabs(want[j]));
    for (int64_t j = 0; j < out; j++) {
        double got = h_at(arg[nin], j, rb);
        ck_assert_msg(fabs(got - want[j]) <= (rb == 8 ? 1e-13 : 2e-5) * scale,
                      "case %d, node %d: element %lld is %g, not %g", number / NODES,
                      number % NODES, (long long)j, got, want[j]);
    }
    ck_assert_msg(h_guarded(arg[nin], out, rb), "case %d wrote behind its result",
                  number / NODES);
    ck_assert_msg(room == 0 || h_guarded(arg[nin + 1], room, rb), "case %d left its workspace",
                  number / NODES);
    for (int k = 0; k <= nin + 1; k++)
        free(arg[k]);
}

/* The three convolutions of a case, and the data gradient with the gradient of a ReLU whose result
 * is x. */
static void all_nodes_of(const Case *c, HNode *node[NODES])
{
    Dims d = dims_of(c);
    nodes_of(c, node);
    node[3] = h_node(LS_OP_CONV_DX, 4, (LsShape[]){d.y, d.w, {.rank = -1}, d.x}, &d.x, LS_LAST,
                     &d.attr);
}

static void check_case(int i, HNode *const node[NODES], const LsKernel kernel[NODES],
                       const LsTarget *t)
{
    const Case *c = &cases[i];
    Sample s = sample_new(c);
    int n = NODES * i;
    run_node(node[0], kernel[0], t, (const double *[]){s.x, s.w, s.bias}, s.dy, n);
    run_node(node[1], kernel[1], t, (const double *[]){s.y, s.w, s.bias}, s.dx, n + 1);
    run_node(node[2], kernel[2], t, (const double *[]){s.y, s.x}, s.dw, n + 2);
    for (int64_t k = 0; k < ls_count(&node[3]->value[4].shape); k++)
        s.dx[k] = s.x[k] > 0 ? s.dx[k] - (c->bias ? s.bias[k % c->cin] : 0) : 0;
    run_node(node[3], kernel[3], t, (const double *[]){s.y, s.w, NULL, s.x}, s.dx, n + 3);
    sample_free(&s);
}

/* Few enough products for a library that computes them one by one. */
static bool is_small(const Case *c)
{
    Dims d = dims_of(c);
    return ls_count(&d.y) * (ls_count(&d.w) / c->cout) < 400000;
}

/* engines: of the library that plans; NULL: the compiler has no library. again: engines of the
 * library that runs. */
static void check_all(int real_bytes, const char *engines, const char *again)
{
    HNode *node[NODES * NCASES];
    LsKernel kernel[NODES * NCASES];
    int of[NCASES], n = 0;
    int kept, made_again;
    LsArena *a = ls_arena_new();
    LsTarget t = {.kind = LS_TARGET_CUDA, .real_bytes = real_bytes, .device = "h200"};
    if (engines != NULL) {
        setenv("FAKE_CUDNN_ENGINES", engines, 1);
        t.convs = ls_conv_planner_new(a, &(LsConvWishes){.device = "h200"});
    }
    for (int i = 0; i < NCASES; i++)
        if (is_small(&cases[i])) {
            of[n] = i;
            all_nodes_of(&cases[i], node + NODES * n++);
        }
    ck_assert_int_gt(n, NCASES / 2);
    void *so = cuda_build(emitter(), "runtime/cuda/ls_cudnn.h", NODES * n, node, &t);
    memcpy(kernel, dlsym(so, "kernels"), NODES * (size_t)n * sizeof *kernel);
    setenv("FAKE_CUDNN_ENGINES", again, 1);
    cudnn_stand_in_open();
    for (int i = 0; i < n; i++)
        check_case(of[i], node + NODES * i, kernel + NODES * i, &t);
    cudnn_stand_in_close(&kept, &made_again);
    ck_assert_int_eq(made_again > 0, engines == NULL);
    ck_assert_int_eq(kept > 0, engines != NULL && engines[0] != '\0');
    ls_conv_planner_free(t.convs);
    for (int i = 0; i < NODES * n; i++)
        h_free(node[i]);
    dlclose(so);
    ls_arena_free(a);
}

START_TEST(planned_convolutions_are_right) { check_all(4, "320", "320"); }
END_TEST
START_TEST(planned_convolutions_are_right_in_double) { check_all(8, "2", "2"); }
END_TEST
START_TEST(convolutions_that_no_engine_serves_have_kernels) { check_all(4, "", ""); }
END_TEST
START_TEST(engines_take_the_gradients_of_relus)
{
    setenv("FAKE_CUDNN_MASK", "320", 1);
    check_all(4, "320", "320");
    unsetenv("FAKE_CUDNN_MASK");
}
END_TEST
START_TEST(so_they_have_in_double) { check_all(8, "", ""); }
END_TEST
START_TEST(a_compiler_without_the_library_leaves_planning_to_the_program)
{
    check_all(4, NULL, "20");
}
END_TEST

/* cuDNN's plans may contain the placeholder that stands for a kernel's name when texts are
 * compared. */
START_TEST(no_line_of_a_plan_has_the_name_that_kernels_are_compared_under)
{
    HNode *node[3];
    char *text = NULL;
    size_t size;
    LsArena *a = ls_arena_new();
    LsTarget t = {.kind = LS_TARGET_CUDA, .real_bytes = 4, .device = "h200"};
    setenv("FAKE_CUDNN_ENGINES", "0", 1);
    setenv("FAKE_CUDNN_WORD", "TYPE_KERNEL_CFG", 1);
    t.convs = ls_conv_planner_new(a, &(LsConvWishes){.device = "h200"});
    nodes_of(&cases[0], node);
    FILE *to = open_memstream(&text, &size);
    cuda_print_all(to, emitter(), "runtime/cuda/ls_cudnn.h", 3, node, &t);
    fclose(to);
    ck_assert_ptr_nonnull(strstr(text, "_CFG"));
    ck_assert_ptr_null(strstr(text, "KERNEL"));
    free(text);
    ls_conv_planner_free(t.convs);
    unsetenv("FAKE_CUDNN_WORD");
    for (int i = 0; i < 3; i++)
        h_free(node[i]);
    ls_arena_free(a);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("cuda_conv");
    const TTest *const test[] = {
        planned_convolutions_are_right, planned_convolutions_are_right_in_double,
        convolutions_that_no_engine_serves_have_kernels, so_they_have_in_double,
        engines_take_the_gradients_of_relus,
        a_compiler_without_the_library_leaves_planning_to_the_program,
        no_line_of_a_plan_has_the_name_that_kernels_are_compared_under,
    };
    setenv("LOWERSET_CUDNN", LS_FAKE_CUDNN, 1);
    setenv("XDG_CACHE_HOME", "no absolute path", 1);
    unsetenv("HOME");
    tcase_set_timeout(tc, 120);
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("cuda_conv", tc);
}
