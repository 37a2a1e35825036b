/* tests/models/test_model_graphs.c -- the compiler reads every generated network and makes its
 * training graph: the importer knows the zoo's training form. */
#include "compiler/passes/fuse.h"
#include "tests/support/compiled_model.h"

static const char *const full[] = {
    "autoencoder",
    "cnn",
    "densenet121",
    "densenet161",
    "densenet169",
    "densenet201",
    "digits",
    "googlenet",
    "gpt",
    "gpt --head=untied",
    "mlp",
    "pspnet50",
    "pspnet101",
    "resnet18",
    "resnet34",
    "resnet50",
    "resnet101",
    "resnet152",
    "unet",
    "unet --pad=valid",
    "unet --up=bilinear",
    "vgg16",
    "vgg16_bn",
    "vgg19",
    "vgg19_bn",
    "vit",
};
enum { NFULL = sizeof full / sizeof *full };

/* No parameter is lost, and no running statistic, mask or position is taken for a weight. */
START_TEST(every_parameter_of_every_network_gets_a_gradient)
{
    LsCtx cx = {.arena = ls_arena_new()};
    LsGraph *g = compiled(&cx, full[_i], 2);
    ck_assert_msg(cx.nwarning == 0, "%s: %d warnings", full[_i], cx.nwarning);
    char name[64] = "", err[256];
    int64_t trained = 0;
    LsModelInfo info;
    memcpy(name, full[_i], strcspn(full[_i], " "));
    LsModelRequest r = ls_model_request(ls_model_find(name));
    if (strstr(full[_i], "untied") != NULL)
        r.value[LS_OPT_HEAD] = LS_HEAD_UNTIED;
    if (strstr(full[_i], "bilinear") != NULL)
        r.value[LS_OPT_UP] = LS_UP_BILINEAR;
    ck_assert_int_eq(ls_model_count(&r, &info, err, sizeof err), 0);
    for (uint32_t i = 0; i < g->ngrad; i++)
        trained += ls_count(ls_shape(g, g->grad[i].param));
    ck_assert_msg(trained == info.parameters, "%s: %lld of %lld parameters", full[_i],
                  (long long)trained, (long long)info.parameters);
    ls_arena_free(cx.arena);
}
END_TEST

static bool is_per_channel(const LsFused *f)
{
    return f->axes == 0 && f->space.rank == 4 && ls_count(&f->space) == f->space.dim[1];
}

/* The most gradients, each as large as the result, that a backward kernel reads; numbers per
 * channel do not count. */
static int most_waiting(const char *name)
{
    LsCtx cx = {.arena = ls_arena_new()};
    LsGraph *g = compiled(&cx, name, 2);
    int most = 0;
    for (uint32_t i = 1; i < g->nnode; i++) {
        int wide = 0;
        if (g->node[i].op != LS_OP_FUSED || is_per_channel(g->node[i].attr.fused.body))
            continue;
        for (int k = 0; k < g->node[i].nin; k++)
            wide += g->node[g->value[ls_in(g, (LsNodeId){i}, k).i].def.i].phase == LS_BACKWARD
                    && ls_shape_same(ls_in_shape(g, (LsNodeId){i}, k),
                                     &g->node[i].attr.fused.body->space);
        most = wide > most ? wide : most;
    }
    ls_arena_free(cx.arena);
    return most;
}

/* A value with many readers: if one kernel added their gradients, all would have to stay until the
 * last is made. Layers of a dense block pass their gradients on as one sum. */
START_TEST(few_gradients_of_a_value_wait_for_each_other)
{
    int few = most_waiting("googlenet");
    ck_assert_int_ge(few, 4);                       /* a sum still takes several at once */
    ck_assert_int_le(few, 5);
    ck_assert_int_le(most_waiting("densenet121"), 2);
}
END_TEST

/* The gradients of concatenations are written where they belong. */
START_TEST(kernels_write_slices_themselves)
{
    LsCtx cx = {.arena = ls_arena_new()};
    LsGraph *g = compiled(&cx, "densenet121", 2);
    int parts = 0;
    for (uint32_t i = 1; i < g->nnode; i++) {
        ck_assert_int_ne(g->node[i].op, LS_OP_SLICE);
        for (int k = 0; k < g->node[i].nout && g->node[i].op == LS_OP_FUSED; k++)
            parts += g->node[i].attr.fused.body->out[k].length > 0;
    }
    ck_assert_int_ge(parts, 2 * 58);                /* two a layer */
    ls_arena_free(cx.arena);
}
END_TEST

/* The number of FUSED nodes of the backward part that satisfy a test. */
static uint32_t count_backward(const char *name, bool (*counts)(const LsFused *))
{
    LsCtx cx = {.arena = ls_arena_new()};
    LsGraph *g = compiled(&cx, name, 2);
    uint32_t n = 0;
    for (uint32_t i = 1; i < g->nnode; i++)
        n += g->node[i].op == LS_OP_FUSED && g->node[i].phase == LS_BACKWARD
             && counts(g->node[i].attr.fused.body);
    ls_arena_free(cx.arena);
    return n;
}

static bool has_norm_dx(const LsFused *f)
{
    bool has = false;
    for (int s = 0; s < f->nstmt; s++)
        has |= f->stmt[s].op == LS_OP_NORM_DX;
    return has;
}

/* A shortcut's norm shares its kernel with the norm that it is added to: both read one gradient. */
START_TEST(what_a_norm_computes_per_channel_takes_one_kernel)
{
    ck_assert_uint_eq(count_backward("resnet18", is_per_channel), 20 - 3);
}
END_TEST

/* In a dense block all norms share statistics, except the first norm and the norms behind
 * bottlenecks. */
START_TEST(norms_of_dense_blocks_pass_over_their_operands_once)
{
    ck_assert_uint_eq(count_backward("densenet121", has_norm_dx), 1 + 4 + 58);
}
END_TEST

/* Along the residual stream of a GPT no gradient is summed by a kernel that does nothing else:
 * every norm except the last adds the gradient of the stream. */
START_TEST(norms_add_up_the_gradient_of_a_residual_stream)
{
    LsCtx cx = {.arena = ls_arena_new()};
    LsGraph *g = compiled(&cx, "gpt --depth=3 --width=32 --heads=2 --context=16 --vocab=65", 2);
    int norms = 0, sums = 0;
    for (uint32_t i = 1; i < g->nnode; i++) {
        norms += g->node[i].op == LS_OP_LAYER_NORM_GRAD;
        sums += g->node[i].op == LS_OP_LAYER_NORM_GRAD && ls_is(ls_in(g, (LsNodeId){i}, 5));
    }
    ck_assert_int_eq(norms, 2 * 3 + 1);
    ck_assert_int_eq(sums, 2 * 3);
    ls_arena_free(cx.arena);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("model_graphs");
    if (mkdtemp(dir) == NULL)
        return perror(dir), 1;
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, every_parameter_of_every_network_gets_a_gradient, 0, NFULL);
    tcase_add_test(tc, few_gradients_of_a_value_wait_for_each_other);
    tcase_add_test(tc, kernels_write_slices_themselves);
    tcase_add_test(tc, what_a_norm_computes_per_channel_takes_one_kernel);
    tcase_add_test(tc, norms_of_dense_blocks_pass_over_their_operands_once);
    tcase_add_test(tc, norms_add_up_the_gradient_of_a_residual_stream);
    return run_models("model_graphs", tc);
}
