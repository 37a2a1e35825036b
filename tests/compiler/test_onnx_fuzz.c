/* tests/compiler/test_onnx_fuzz.c -- damaged bytes load or are refused; they never crash the importer. */
#include "tests/support/onnx_make.h"
#include "tests/support/suite.h"

#include "compiler/inspect/onnx_inspect.h"

enum { ROUNDS = 300 };          /* per model: a second or two in all, also under sanitizers */

static uint64_t state;

static uint32_t roll(uint32_t below)    /* xorshift64*, the same everywhere */
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (uint32_t)((state * 2685821657736338717u) >> 33) % below;
}

static void damage(unsigned char *bytes, size_t n)
{
    static const unsigned char odd[] = {0, 1, 0x7f, 0x80, 0xff, 0xfe};
    for (uint32_t hits = 1 + roll(3); hits > 0; hits--) {
        unsigned char *p = &bytes[roll((uint32_t)n)];
        switch (roll(3)) {
        case 0: *p ^= (unsigned char)(1u << roll(8)); break;
        case 1: *p = odd[roll(sizeof odd)]; break;
        default: *p = bytes[roll((uint32_t)n)]; break;
        }
    }
}

/* A loaded graph satisfies the invariants, and a refusal has a reason. */
static void try_bytes(const char *path, int round)
{
    char *log = NULL;
    size_t log_bytes = 0;
    LsCtx cx = {.arena = ls_arena_new(), .log = open_memstream(&log, &log_bytes)};
    LsImportOptions o = {.training = round % 2 == 0, .batch = round % 3 == 0 ? 2 : 0};
    LsGraph *g = ls_onnx_import(&cx, path, &o);
    fflush(cx.log);
    ck_assert_msg(g != NULL || cx.nerror > 0, "refused without a word in round %d", round);
    ck_assert_msg(g == NULL || ls_verify(&cx, g), "round %d: %s", round, log);
    ck_assert_msg(cx.last != LS_E_VERIFY, "round %d: %s", round, log);
    fclose(cx.log);
    free(log);
    ls_arena_free(cx.arena);
}

static void fuzz(const unsigned char *bytes, size_t n, uint64_t seed)
{
    char dir[] = "/tmp/lowerset-test-XXXXXX", path[64];
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/m.onnx", dir);
    unsigned char *copy = malloc(n);
    state = seed;
    for (int round = 0; round < ROUNDS; round++) {
        memcpy(copy, bytes, n);
        damage(copy, n);
        FILE *f = fopen(path, "wb");
        ck_assert_ptr_nonnull(f);
        fwrite(copy, 1, roll(10) == 0 ? roll((uint32_t)n) + 1 : n, f);
        fclose(f);
        try_bytes(path, round);
    }
    free(copy);
    unlink(path);
    rmdir(dir);
}

START_TEST(a_small_model_survives_damage)
{
    Make mk;
    make_small(&mk);
    unsigned char *bytes;
    size_t n = make_pack(&mk, &bytes);
    fuzz(bytes, n, 20250101);
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
    fuzz(bytes, n, 7 + (uint64_t)_i);
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
