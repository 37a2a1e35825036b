/* tests/codegen/test_cuda_passes.c -- changes to graphs for GPUs only: moments in one pass, wider
 * scores, joined updates. */
#include "codegen/cuda/moments.h"
#include "codegen/cuda/updates.h"
#include "codegen/cuda/pad_classes.h"
#include "compiler/passes/fuse.h"
#include "compiler/passes/passes.h"
#include "tests/support/compiled_model.h"

static const LsTarget gpu = {.kind = LS_TARGET_CUDA, .real_bytes = 4};
static const LsTarget cpu = {.kind = LS_TARGET_CPU, .real_bytes = 4};

static uint32_t statements(const LsGraph *g, LsOpCode op)
{
    uint32_t n = 0;
    for (uint32_t i = 1; i < g->nnode; i++)
        for (int k = 0; g->node[i].op == LS_OP_FUSED && k < g->node[i].attr.fused.body->nstmt; k++)
            n += g->node[i].attr.fused.body->stmt[k].op == op;
    return n;
}

START_TEST(means_and_variances_of_batch_norms_are_joined)
{
    LsCtx cx = {.arena = ls_arena_new()};
    LsGraph *g = compiled(&cx, "resnet18", 4);
    uint32_t norms = statements(g, LS_OP_NORM_VAR), nodes = g->nnode;
    ck_assert_uint_eq(norms, 20);
    ck_assert_uint_eq(ls_join_moments(&cx, g, &cpu), 0);
    ck_assert_uint_eq(ls_join_moments(&cx, g, &gpu), norms);
    ck_assert_uint_eq(statements(g, LS_OP_NORM_VAR), 0);
    ck_assert_uint_le(g->nnode, nodes - norms);
    ck_assert(ls_verify(&cx, g));
    ck_assert_uint_eq(ls_join_moments(&cx, g, &gpu), 0);
    ls_arena_free(cx.arena);
}
END_TEST

START_TEST(channels_that_are_no_multiple_of_four_take_two_passes)
{
    LsCtx cx = {.arena = ls_arena_new()};
    LsGraph *g = compiled(&cx, "unet --width=6 --depth=2 --size=16", 2);
    uint32_t norms = statements(g, LS_OP_NORM_VAR), joined = ls_join_moments(&cx, g, &gpu);
    ck_assert_uint_gt(joined, 0);           /* 12 and 24 channels, but not 6 */
    ck_assert_uint_gt(statements(g, LS_OP_NORM_VAR), 0);
    ck_assert_uint_eq(joined + statements(g, LS_OP_NORM_VAR), norms);
    ls_arena_free(cx.arena);
}
END_TEST

/* The number of values of g that are wider than their columns; each by `more`. */
static int widened(const LsGraph *g, int64_t classes, int64_t more)
{
    int n = 0;
    for (uint32_t i = 1; i < g->nvalue; i++)
        if (g->value[i].columns > 0) {
            const LsShape *s = &g->value[i].shape;
            ck_assert_int_eq(g->value[i].columns, classes);
            ck_assert_int_eq(s->dim[s->rank - 1], classes + more);
            n++;
        }
    return n;
}

static const LsValue *weights(const LsGraph *g)
{
    for (uint32_t i = 1; i < g->nvalue; i++)
        if (g->value[i].rows_behind > 0)
            return &g->value[i];
    return NULL;
}

START_TEST(scores_and_their_gradients_get_whole_fours_of_columns)
{
    LsCtx cx = {.arena = ls_arena_new()};
    LsGraph *g = compiled(&cx, "gpt --depth=1 --heads=2 --width=32 --context=16 --vocab=66", 2);
    ck_assert_uint_eq(ls_widen_scores(g, &cpu), 0);
    ck_assert_int_eq(widened(g, 66, 2), 0);
    ck_assert_uint_eq(ls_widen_scores(g, &gpu), 1);
    ck_assert_int_eq(widened(g, 66, 2), 4);     /* the product, its view, the gradient, its view */
    const LsValue *w = weights(g);
    ck_assert_ptr_nonnull(w);
    ck_assert_str_eq(w->name, "transformer.wte.weight");
    ck_assert_int_eq(w->rows_behind, 2);
    LsValueId id = {(uint32_t)(w - g->value)};
    ck_assert_int_eq(ls_value_bytes(g, id, 4), 66 * 32 * 4);
    ck_assert_int_eq(ls_stored_bytes(g, id, 4), 68 * 32 * 4);
    ck_assert_uint_eq(ls_widen_scores(g, &gpu), 0);
    ls_arena_free(cx.arena);
}
END_TEST

START_TEST(scores_in_16_bits_get_whole_eights)
{
    LsCtx cx = {.arena = ls_arena_new()};
    LsGraph *g = compiled_with(&cx, "gpt --depth=1 --heads=2 --width=32 --context=16 --vocab=66", 2,
                               (LsOptimizerOptions){.kind = LS_SGD},
                               (LsPrecision){.compute = LS_BF16, .gpu = true});
    ck_assert_uint_eq(ls_widen_scores(g, &gpu), 1);
    ck_assert_int_eq(widened(g, 66, 6), 4);
    const LsValue *w = weights(g), *copy = NULL;
    ck_assert_ptr_nonnull(w);
    ck_assert_str_eq(w->name, "transformer.wte.weight");
    ck_assert_int_eq(w->rows_behind, 6);
    for (uint32_t i = 1; i < g->nvalue; i++)
        copy = strcmp(g->value[i].name, "transformer.wte.weight.bf16") == 0 ? &g->value[i] : copy;
    ck_assert_ptr_nonnull(copy);
    ck_assert_int_eq(copy->shape.dim[0], 72);           /* both products read it */
    ck_assert_int_eq(g->node[copy->def.i].attr.fused.body->space.dim[0], 72);
    ls_arena_free(cx.arena);
}
END_TEST

START_TEST(whole_fours_and_few_classes_stay_as_they_are)
{
    static const char *const line[] = {
        "gpt --depth=1 --heads=2 --width=32 --context=16 --vocab=64", "mlp --width=32",
        "unet --width=4 --size=16"};
    for (size_t k = 0; k < sizeof line / sizeof *line; k++) {
        LsCtx cx = {.arena = ls_arena_new()};
        LsGraph *g = compiled(&cx, line[k], 2);
        ck_assert_uint_eq(ls_widen_scores(g, &gpu), 0);
        ck_assert_ptr_null(weights(g));
        ls_arena_free(cx.arena);
    }
}
END_TEST

/* Counts nodes of the operator, and the tensors that they update. */
static void count_updates(const LsGraph *g, LsOpCode op, uint32_t *nodes, uint32_t *tensors)
{
    *nodes = *tensors = 0;
    for (uint32_t i = 1; i < g->nnode; i++)
        if (g->node[i].op == op) {
            ++*nodes;
            *tensors += (uint32_t)ls_updated(&g->node[i]);
        }
}

/* 41 weights and biases of layers, 40 scales and biases of norms; 40 statistics. */
START_TEST(updates_of_small_tensors_are_joined)
{
    LsCtx cx = {.arena = ls_arena_new()};
    LsGraph *g = compiled(&cx, "resnet18", 4);
    uint32_t nodes, tensors, after, same;
    count_updates(g, LS_OP_SGD, &nodes, &tensors);
    ck_assert_uint_eq(nodes, tensors);
    ck_assert_uint_eq(ls_join_updates(&cx, g, &cpu), 0);
    uint32_t joined = ls_join_updates(&cx, g, &gpu);
    ck_assert(ls_verify(&cx, g));
    ck_assert_uint_ge(joined, 80);
    count_updates(g, LS_OP_SGD, &after, &same);
    ck_assert_uint_eq(same, tensors);
    ck_assert_uint_le(after, nodes - 38);
    count_updates(g, LS_OP_RUNNING_STAT, &after, &same);
    ck_assert_uint_eq(same, 40);
    ck_assert_uint_eq(after, 2);            /* 32 and 8 */
    ls_arena_free(cx.arena);
}
END_TEST

/* Weights that decay are not joined with biases that do not; large tensors are left alone. */
START_TEST(only_updates_that_are_alike_are_joined)
{
    LsCtx cx = {.arena = ls_arena_new()};
    LsGraph *g = compiled(&cx, "gpt --depth=2 --heads=2 --width=32 --context=16 --vocab=64", 2);
    ck_assert_uint_gt(ls_join_updates(&cx, g, &gpu), 0);
    for (uint32_t i = 1; i < g->nnode; i++) {
        const LsNode *n = &g->node[i];
        for (int k = 0; ls_updated(n) > 1 && k < n->nin; k++)
            if (ls_writes(n, k))
                ck_assert_int_le(ls_count(ls_in_shape(g, (LsNodeId){i}, k)), 4096);
    }
    ls_arena_free(cx.arena);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("cuda_passes");
    if (mkdtemp(dir) == NULL)
        return perror(dir), 1;
    const TTest *const test[] = {
        means_and_variances_of_batch_norms_are_joined,
        channels_that_are_no_multiple_of_four_take_two_passes,
        scores_and_their_gradients_get_whole_fours_of_columns,
        scores_in_16_bits_get_whole_eights,
        whole_fours_and_few_classes_stay_as_they_are,
        updates_of_small_tensors_are_joined,
        only_updates_that_are_alike_are_joined,
    };
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_models("cuda_passes", tc);
}
