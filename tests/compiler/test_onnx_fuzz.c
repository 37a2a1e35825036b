/* tests/compiler/test_onnx_fuzz.c -- damaged bytes load or are refused; they never crash the importer. */
#include "tests/support/fuzz.h"
#include "tests/support/onnx_make.h"
#include "tests/support/suite.h"

#include "compiler/inspect/onnx_inspect.h"

enum { ROUNDS = 300 };          /* per model: a second or two in all, also under sanitizers */

/* A loaded graph satisfies the invariants, and a refusal has a reason. */
static void try_bytes(const unsigned char *bytes, size_t n, uint64_t round, Dice *d)
{
    static const char path[] = "m.onnx";
    char *log = NULL;
    size_t log_bytes = 0;
    LsCtx cx = {.arena = ls_arena_new(), .log = open_memstream(&log, &log_bytes)};
    LsImportOptions o = {.training = roll(d, 2) == 0, .batch = roll(d, 3) == 0 ? 2 : 0};
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    fwrite(bytes, 1, n, f);
    fclose(f);
    LsGraph *g = ls_onnx_import(&cx, path, &o);
    fflush(cx.log);
    ck_assert_msg(g != NULL || cx.nerror > 0, "refused without a word in round %d", (int)round);
    ck_assert_msg(g == NULL || ls_verify(&cx, g), "round %d: %s", (int)round, log);
    ck_assert_msg(cx.last != LS_E_VERIFY, "round %d: %s", (int)round, log);
    fclose(cx.log);
    free(log);
    ls_arena_free(cx.arena);
}

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
    LS_SHARED "/inputs/models/opmix.onnx",
    LS_SHARED "/inputs/models/opsets/tinycnn_op13_train.onnx",
    LS_SHARED "/inputs/models/mlp_mse_loss_in_graph.onnx",
    LS_SHARED "/inputs/thirdparty/light/light_squeezenet.onnx",
    LS_SOURCE "/tests/export/fixtures/scripted/ts.onnx",        /* a loop, and a branch in it */
    LS_SOURCE "/tests/export/fixtures/rnn_packed/ts.onnx",
};

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
    tcase_add_loop_test(tc, real_models_survive_damage, 0, (int)(sizeof file / sizeof *file));
    return run_tests("fuzz", tc);
}
