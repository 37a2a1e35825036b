/* tests/compiler/test_onnx_fuzz.c -- damaged bytes load or are refused; they never crash the
 * compiler, from the importer to the program's text. */
#include "codegen/program/lowering.h"
#include "codegen/program/program_text.h"
#include "compiler/pipeline.h"
#include "scheduler/plan/plan_audit.h"
#include "scheduler/plan/planner.h"
#include "tests/support/fuzz_target.h"
#include "tests/support/onnx_make.h"
#include "tests/support/suite.h"

#include "compiler/inspect/onnx_inspect.h"

enum { ROUNDS = 300 };          /* per model: a second or two in all, also under sanitizers */

/* The rest of a compilation: a plan, its audit, the program's text. Constants of the size of a real
 * network are left out. */
static void try_plan(LsCtx *cx, LsGraph *g, Dice *d, uint64_t round)
{
    static const char *const strategy[] = {"none", "chen", "approx"};
    const LsTarget target = ls_target_cpu(roll(d, 2) ? 4 : 8);
    char why[300];
    LsLowering l = {.target = &target, .name = "fuzz", .train = g, .eval = ls_graph_new(cx)};
    LsPlanOptions o = {.strategy = strategy[roll(d, 3)],
                       .effort = 1,
                       .unproven = true,
                       .budget.percent = 60,
                       .max_lower_sets = 50};
    LsPlan plan;
    LsPlanReport report;
    if (g->nnode > 600 || !ls_lower(cx, &l))
        return;
    if (!ls_plan(cx->arena, &l.train_problem->dag, &o, &plan, &report))
        ck_assert(ls_plan_none(cx->arena, &l.train_problem->dag, &plan));
    ck_assert_msg(ls_audit(&l.train_problem->dag, &plan, why, sizeof why), "round %d: %s",
                  (int)round, why);
    LsCode code = {.model = "fuzz",
                   .plan_hash = "",
                   .strategy = "",
                   .loss = "",
                   .optimizer = "",
                   .target = &target,
                   .accumulate = 1,
                   .train = {.problem = l.train_problem, .plan = &plan}};
    for (uint32_t i = 1; i < g->nvalue; i++)
        if (ls_is_const(g, (LsValueId){i}) && ls_count(ls_shape(g, (LsValueId){i})) > 1 << 16)
            return;
    code.addresses = ls_addresses_new(cx, l.train, target.real_bytes, NULL, false);
    FILE *nowhere = fopen("/dev/null", "w");
    ck_assert(nowhere != NULL && (ls_program_print(cx, &code, nowhere, NULL) || cx->nerror > 0));
    fclose(nowhere);
}

/* A loaded graph satisfies the invariants, and a refusal has a reason. */
static void try_bytes(const unsigned char *bytes, size_t n, uint64_t round, Dice *d)
{
    static const char path[] = "m.onnx";
    char *log = NULL;
    size_t log_bytes = 0;
    LsCtx cx = {.arena = ls_arena_new(), .log = open_memstream(&log, &log_bytes)};
    LsPipelineOptions o = {
        .import = {.training = roll(d, 4) != 0, .batch = roll(d, 3) == 0 ? 2 : 0},
        .loss = {.kind = (LsLossKind)roll(d, LS_LOSS_TRIPLET)},
        .optimizer = {.kind = (LsOptimizerKind)roll(d, 3),
                      .hyper.momentum = 0.9,
                      .hyper.beta1 = 0.9,
                      .hyper.beta2 = 0.99}};
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    fwrite(bytes, 1, n, f);
    fclose(f);
    LsGraph *g = ls_pipeline(&cx, path, &o);
    if (g != NULL && cx.nerror == 0)
        try_plan(&cx, g, d, round);
    fflush(cx.log);
    ck_assert_msg(g != NULL || cx.nerror > 0, "refused without a word in round %d", (int)round);
    ck_assert_msg(g == NULL || ls_verify(&cx, g), "round %d: %s", (int)round, log);
    ck_assert_msg(cx.last != LS_E_VERIFY, "round %d: %s", (int)round, log);
    fclose(cx.log);
    free(log);
    ls_arena_free(cx.arena);
}

static void write_small(void)
{
    Make mk;
    unsigned char *bytes;
    make_small(&mk);
    const size_t n = make_pack(&mk, &bytes);
    FILE *f = fopen("small.onnx", "wb");
    ck_assert(f != NULL && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
    make_end(&mk);
}

const FuzzTarget fuzz_target[] = {
    {"onnx",
     try_bytes,
     write_small,
     {"small.onnx", LS_SOURCE "/tests/data/inputs/models/opmix.onnx",
      LS_SOURCE "/tests/data/inputs/models/opsets/tinycnn_op13_train.onnx",
      LS_SOURCE "/tests/data/inputs/models/mlp_mse_loss_in_graph.onnx",
      LS_SOURCE "/tests/export/fixtures/scripted/ts.onnx",
      LS_SOURCE "/tests/export/fixtures/rnn_packed/ts.onnx"}},
    {.name = NULL}};

#ifndef LS_LIBFUZZER
static void fuzz_model(const unsigned char *bytes, size_t n)
{
    char dir[] = "/tmp/lowerset-test-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(chdir(dir), 0);
    fuzz(bytes, n, ROUNDS, try_bytes);
    unlink("m.onnx");
    ck_assert(chdir("/") == 0 && rmdir(dir) == 0);
}

START_TEST(a_small_model_survives_damage)
{
    Make mk;
    make_small(&mk);
    unsigned char *bytes;
    size_t n = make_pack(&mk, &bytes);
    fuzz_model(bytes, n);
    make_end(&mk);
}
END_TEST

static const char *const file[] = {
    LS_SOURCE "/tests/data/inputs/models/opmix.onnx",
    LS_SOURCE "/tests/data/inputs/models/opsets/tinycnn_op13_train.onnx",
    LS_SOURCE "/tests/data/inputs/models/mlp_mse_loss_in_graph.onnx",
    LS_SHARED "/inputs/thirdparty/light/light_squeezenet.onnx",
    LS_SOURCE "/tests/export/fixtures/scripted/ts.onnx",        /* a loop, and a branch in it */
    LS_SOURCE "/tests/export/fixtures/rnn_packed/ts.onnx",
};

START_TEST(models_that_broke_the_compiler_once)
{
    char dir[] = "/tmp/lowerset-test-XXXXXX";
    ck_assert(mkdtemp(dir) != NULL && chdir(dir) == 0);
    fuzz_replay(&fuzz_target[0]);
    unlink("m.onnx");
    ck_assert(chdir("/") == 0 && rmdir(dir) == 0);
}
END_TEST

START_TEST(real_models_survive_damage)
{
    FILE *f = fopen(file[_i], "rb");
    if (f == NULL) {
        printf("skipped: %s is not there\n", file[_i]);
        return;
    }
    static unsigned char bytes[1 << 16];
    size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    fuzz_model(bytes, n);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("fuzz");
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, a_small_model_survives_damage);
    tcase_add_test(tc, models_that_broke_the_compiler_once);
    tcase_add_loop_test(tc, real_models_survive_damage, 0, (int)(sizeof file / sizeof *file));
    return run_tests("fuzz", tc);
}
#endif
