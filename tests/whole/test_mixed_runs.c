/* tests/whole/test_mixed_runs.c -- whole runs in 16 bits, through the command line: budgets, evaluation in another type
 * than training, weights that leave in 16 bits and come in again, and what plan says of both types. */
#include "runtime/data/npz.h"
#include "tests/support/command_line.h"
#include "tests/support/suite.h"

#include <unistd.h>

#define COMPILE LS_BUILD "/lowerset compile -q -O0 --plan-effort=2 --batch=4 "
#define RUN " --data synthetic --seed 3 --progress none "

static const char *const types[] = {"bf16", "f16"};

static void make_nets(void)
{
    MUST(LS_BUILD "/lowerset model gpt --depth=1 --heads=2 --width=16 --context=16 --vocab=33 --dropout=0.1 -o gpt.onnx");
    MUST(LS_BUILD "/lowerset model resnet18 --stem=cifar --width=2 --classes=4 --size=8 -o res.onnx");
    MUST(LS_BUILD "/lowerset model mlp --batch=0 --width=8 --size=4 -o mlp.onnx");
}

static bool near(const char *a, const char *b, const char *tolerance, const char *prefix)
{
    return sh(LS_BUILD "/tests/npz_near %s %s %s %s", a, b, tolerance, prefix) == 0;
}

/* Batch norms in bf16, dropout and attention in f16; all pairs in the setup `whole`. A budget that is too small becomes the
 * least. */
START_TEST(every_budget_gives_the_same_bits)
{
    static const char *const budget[] = {"70%", "50%", "30%"};
    static const char *const net[] = {"gpt.onnx --accumulate=2 --optimizer=adam", "res.onnx --optimizer=sgd:momentum=0.9"};
    if (_i > 1 && getenv("LS_WHOLE") == NULL)
        return;
    const char *type = types[(_i % 2 == 0) ^ (_i / 2)];
    MUST(COMPILE "%s --precision=%s -o t0", net[_i % 2], type);
    MUST("./t0" RUN "--steps 4 --dump t0.npz");
    for (int k = 0; k < 3; k++) {
        int code = sh(COMPILE "%s --precision=%s --budget=%s -o t1", net[_i % 2], type, budget[k]);
        if (code == 4)
            code = sh(COMPILE "%s --precision=%s --budget=min -o t1", net[_i % 2], type);
        ck_assert_msg(code == 0, "%s: %s", budget[k], text);
        MUST("./t1" RUN "--steps 4 --dump t1.npz");
        ck_assert_msg(sh("cmp t0.npz t1.npz") == 0, "%s of %s in %s: %s", budget[k], net[_i % 2], type, text);
    }
}
END_TEST

START_TEST(evaluation_has_a_type_of_its_own)
{
    for (int k = 0; k < 2; k++) {
        MUST(COMPILE "mlp.onnx --precision=%s -o own", types[k]);
        MUST(COMPILE "mlp.onnx --precision=%s --eval-precision=f32 -o wide", types[k]);
        MUST(COMPILE "mlp.onnx --eval-precision=%s -o narrow", types[k]);
        MUST(COMPILE "mlp.onnx -o f32");
        MUST("./own" RUN "--eval --dump own.npz && ./narrow" RUN "--eval --dump narrow.npz");
        MUST("./wide" RUN "--eval --dump wide.npz && ./f32" RUN "--eval --dump f32.npz");
        ck_assert_msg(near("own.npz", "narrow.npz", "0", "out/") && near("wide.npz", "f32.npz", "0", "out/"), "%s", text);
        ck_assert(near("own.npz", "wide.npz", "0.1", "out/") && !near("own.npz", "wide.npz", "1e-6", "out/"));
        MUST("./own" RUN "--steps 2 --dump own.npz && ./wide" RUN "--steps 2 --dump wide.npz");
        MUST("cmp own.npz wide.npz");
    }
}
END_TEST

START_TEST(exported_weights_of_16_bits_are_a_model)
{
    MUST(COMPILE "mlp.onnx -o t");
    MUST("./t" RUN "--steps 2 --save ck --export wide.onnx");
    MUST("./t" RUN "--eval --resume auto --save ck --dump t.npz");
    for (int k = 0; k < 2; k++) {
        MUST("./t" RUN "--eval --resume auto --save ck --export %s.onnx --export-precision=%s", types[k], types[k]);
        MUST("test $(stat -c %%s %s.onnx) -lt $(stat -c %%s wide.onnx)", types[k]);
        MUST(COMPILE "%s.onnx -o again", types[k]);
        MUST("./again" RUN "--eval --dump again.npz");
        ck_assert_msg(near("t.npz", "again.npz", "0.03", "out/"), "%s: %s", types[k], text);
        MUST("./again" RUN "--steps 2");
    }
}
END_TEST

START_TEST(a_plan_has_both_types_side_by_side)
{
    for (int k = 0; k < 2; k++) {
        MUST(LS_BUILD "/lowerset plan gpt.onnx --batch=4 --plan-effort=2 --machine=cpu --json --precision=%s | tr -d '\\n\\t'",
             types[k]);
        char want[200], *at = strstr(text, "\"precisions\":{\"plans\":[");
        snprintf(want, sizeof want, "{\"type\":\"%s\",\"feasible\":true,\"arena_bytes\":%.0f,\"step_ns\":", types[k],
                 told("\"arena_bytes\":"));
        ck_assert_msg(at != NULL && strstr(at, want) != NULL, "no %s in %s", want, text);
        double pays = atof(strstr(at, "step_ns\":") + 9);
        ck_assert_double_eq(pays, told("\"step_ns\":"));
        ck_assert_ptr_nonnull(strstr(at, "{\"type\":\"f32\",\"feasible\":true,"));
        ck_assert_ptr_nonnull(strstr(at, "\"pays\":\""));
    }
    MUST(LS_BUILD "/lowerset plan gpt.onnx --batch=4 --plan-effort=2 --machine=cpu --json");
    ck_assert_ptr_null(strstr(text, "precisions"));
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("mixed_runs");
    char dir[] = "/tmp/lowerset-mixed-XXXXXX";
    if (mkdtemp(dir) == NULL || chdir(dir) != 0)
        return 99;
    tcase_set_timeout(t, 120);
    tcase_add_unchecked_fixture(t, make_nets, NULL);
    tcase_add_loop_test(t, every_budget_gives_the_same_bits, 0, 4);
    tcase_add_test(t, evaluation_has_a_type_of_its_own);
    tcase_add_test(t, exported_weights_of_16_bits_are_a_model);
    tcase_add_test(t, a_plan_has_both_types_side_by_side);
    int code = run_tests("mixed_runs", t);
    char remove[64];
    snprintf(remove, sizeof remove, "rm -rf %s", dir);
    return system(remove) != 0 || code != 0;
}
