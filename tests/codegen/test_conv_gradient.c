/* tests/codegen/test_conv_gradient.c -- gradients of ReLUs moved into data gradients. Uses a cuDNN
 * of the tests (fake_cudnn.c), because the real cuDNN compiles such kernels, which needs a
 * driver. */
#include "codegen/cuda/conv_fuse.h"
#include "codegen/cuda/conv_plan.h"
#include "compiler/ops/row.h"
#include "compiler/passes/channels_last.h"
#include "compiler/passes/fuse.h"
#include "tests/support/compiled_model.h"

/* Statements that are a ReLU's gradient, over all loops. */
static int count_gradients(const LsGraph *g)
{
    int n = 0;
    for (uint32_t i = 1; i < g->nnode; i++)
        for (int s = 0; g->node[i].op == LS_OP_FUSED && s < g->node[i].attr.fused.body->nstmt; s++)
            n += g->node[i].attr.fused.body->stmt[s].op == LS_OP_RELU_GRAD;
    return n;
}

/* Operands come from earlier nodes, and each is read by the loop that lists it. */
static void check_operands(const LsGraph *g)
{
    for (uint32_t i = 1; i < g->nnode; i++)
        for (int k = 0; k < g->node[i].nin; k++) {
            const LsFused *f = g->node[i].op == LS_OP_FUSED ? g->node[i].attr.fused.body : NULL;
            bool read = f == NULL;
            for (int s = 0; f != NULL && s < f->nstmt; s++)
                for (int a = 0; a < f->stmt[s].narg; a++) {
                    ck_assert_int_lt(f->stmt[s].arg[a], s);
                    read |= f->stmt[s].arg[a] == ~k;
                }
            ck_assert_uint_lt(g->value[ls_in(g, (LsNodeId){i}, k).i].def.i, i);
            ck_assert_msg(read, "operand %d of node %u is not read", k, i);
        }
}

START_TEST(gradients_of_relus_go_into_data_gradients_where_an_engine_takes_them)
{
    static const struct { const char *masks; bool compiled; int least; } row[] = {
        {"5", false, 0},        /* engines that compile were not asked for */
        {"5", true, 4}, {"0", false, 4}};
    for (int net = 0; net < 2; net++)
        for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
            LsCtx cx = {.arena = ls_arena_new()};
            LsGraph *g = compiled(&cx, net == 0 ? "unet --width=8" : "resnet18", 2);
            setenv("FAKE_CUDNN_MASK", row[k].masks, 1);
            const LsConvWishes w = {.device = "h200", .compiled = row[k].compiled};
            LsTarget t = {.kind = LS_TARGET_CUDA, .real_bytes = 4, .device = "h200",
                          .convs = ls_conv_planner_new(cx.arena, &w)};
            int before = count_gradients(g), found = (int)ls_conv_fuse_gradients(&cx, g, &t);
            ck_assert_int_ge(found, row[k].least);
            ck_assert(row[k].least > 0 || found == 0);
            ck_assert_int_eq(count_gradients(g), before - found);
            check_operands(g);
            for (uint32_t i = 1; i < g->nnode; i++) {
                if (ls_op[g->node[i].op]->kernel != LS_K_CONV)
                    continue;
                const LsConvChoice *c = ls_conv_choose(t.convs, g, (LsNodeId){i}, 4);
                ck_assert(c->conv.mask == ls_is(ls_in(g, (LsNodeId){i}, LS_CONV_MASK)));
                ck_assert(c->json != NULL && c->alone == (c->conv.mask && row[k].compiled));
                ck_assert(c->compiled == c->alone);
                found -= c->conv.mask;
            }
            ck_assert_int_eq(found, 0);
            ls_conv_planner_free(t.convs);
            ls_arena_free(cx.arena);
        }
}
END_TEST

/* As before a ReLU of a concatenation: the loop stores parts of the gradient, which the convolution
 * cannot do. */
START_TEST(gradients_that_are_stored_in_parts_stay_where_they_are)
{
    for (int parts = 0; parts < 2; parts++) {
        LsCtx cx = {.arena = ls_arena_new()};
        LsGraph *g = ls_graph_new(&cx);
        LsShape x = {4, {2, 8, 16, 16}}, w = {4, {8, 8, 3, 3}};
        LsAttr at = {.window = {.n = 2, .kernel = {3, 3}, .stride = {1, 1}, .dilation = {1, 1},
                                .pad_lo = {1, 1}, .pad_hi = {1, 1}, .group = 1, .x_dim = {16, 16}}};
        LsValueId dy = ls_value_add(&cx, g, LS_V_INPUT, "dy", LS_REAL, &x, NULL);
        LsValueId y = ls_value_add(&cx, g, LS_V_INPUT, "y", LS_REAL, &x, NULL);
        LsValueId weight = ls_value_add(&cx, g, LS_V_PARAM, "w", LS_REAL, &w,
                                         ls_arena_alloc(cx.arena, 576, sizeof(float)));
        LsValueId out[2];
        LsValueId dx = ls_append2(&cx, g, LS_OP_CONV_DX, dy, weight, &at);
        dx = ls_append2(&cx, g, LS_OP_RELU_GRAD, dx, y, NULL);
        for (int k = 0; k < 2; k++)
            out[k] = parts ? ls_slice_axis(&cx, g, dx, 1, 4 * k, 4 * k + 4) : dx;
        g->output = out;
        g->noutput = 2;
        ck_assert(ls_layout(&cx, g, NULL) && ls_fuse(&cx, g) && ls_split(&cx, g));
        setenv("FAKE_CUDNN_MASK", "5", 1);
        const LsConvWishes wishes = {.device = "h200", .compiled = true};
        LsTarget t = {.kind = LS_TARGET_CUDA, .real_bytes = 4, .device = "h200",
                      .convs = ls_conv_planner_new(cx.arena, &wishes)};
        ck_assert_uint_eq(ls_conv_fuse_gradients(&cx, g, &t), parts ? 0 : 1);
        for (int k = 0; k < 2; k++)
            ck_assert_int_eq(ls_shape(g, g->output[k])->dim[1], parts ? 4 : 8);
        ls_conv_planner_free(t.convs);
        ls_arena_free(cx.arena);
    }
}
END_TEST

int main(void)
{
    const TTest *const test[] = {
        gradients_of_relus_go_into_data_gradients_where_an_engine_takes_them,
        gradients_that_are_stored_in_parts_stay_where_they_are,
    };
    TCase *tc = tcase_create("conv_gradient");
    if (mkdtemp(dir) == NULL)
        return perror(dir), 1;
    setenv("XDG_CACHE_HOME", "no absolute path", 1);
    unsetenv("HOME");
    setenv("LOWERSET_CUDNN", LS_FAKE_CUDNN, 1);
    setenv("FAKE_CUDNN_NO_DRIVER", "1", 1);
    tcase_set_timeout(tc, 60);
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_models("conv_gradient", tc);
}
