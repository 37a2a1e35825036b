/* tests/whole/test_mixed_runs.c -- whole runs in 16 bits, through the command line: budgets,
 * evaluation in another type than training, weights that leave in 16 bits and come in again, and
 * what plan says of both types. */
#include "runtime/data/npz.h"
#include "tests/support/command_line.h"
#include "tests/support/precision_nets.h"
#include "tests/support/suite.h"

#include <unistd.h>

#define COMPILE LS_BUILD "/lowerset compile -q -O0 --plan-effort=2 --batch=4 "
#define RUN " --data synthetic --seed 3 --progress none "

static const char *const types[] = {"bf16", "f16"};

static bool near(const char *a, const char *b, const char *tolerance, const char *prefix)
{
    return sh(LS_BUILD "/tests/npz_near %s %s %s %s", a, b, tolerance, prefix) == 0;
}

/* Batch norms in bf16, dropout and attention in f16; all pairs in the setup `whole`. A budget that
 * is too small becomes the least. */
START_TEST(every_budget_gives_the_same_bits)
{
    static const char *const budget[] = {"70%", "50%", "30%"};
    static const char *const net[] = {"gpt.onnx --accumulate=2 --optimizer=adam",
                                      "res.onnx --optimizer=sgd:momentum=0.9"};
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
        ck_assert_msg(sh("cmp t0.npz t1.npz") == 0, "%s of %s in %s: %s", budget[k], net[_i % 2],
                      type, text);
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
        ck_assert_msg(near("own.npz", "narrow.npz", "0", "out/")
                          && near("wide.npz", "f32.npz", "0", "out/"),
                      "%s", text);
        ck_assert(near("own.npz", "wide.npz", "0.1", "out/")
                  && !near("own.npz", "wide.npz", "1e-6", "out/"));
        MUST("./own" RUN "--steps 2 --dump own.npz && ./wide" RUN "--steps 2 --dump wide.npz");
        MUST("cmp own.npz wide.npz");
    }
}
END_TEST

#define SUMS LS_BUILD "/lowerset compile -q -O0 --plan-effort=2 --batch=64 "

/* The option chooses the bits; the processor that a program is compiled for does not. */
START_TEST(sums_of_bf16_have_the_order_that_is_asked_for)
{
    static const char *const order[] = {"tiles", "pairs"};
    MUST(LS_BUILD "/lowerset model mlp --batch=0 --width=64 --size=16 -o sums.onnx");
    for (int k = 0; k < 2; k++) {
        MUST(SUMS "sums.onnx --precision=bf16 --bf16-sums=%s -o here", order[k]);
        MUST("./here" RUN "--steps 2 --dump %s.npz && ./here --version | grep 'bf16 summed in %s'",
             order[k], order[k]);
#if defined __x86_64__
        MUST(SUMS "sums.onnx --precision=bf16 --bf16-sums=%s -march=x86-64 -o any", order[k]);
        MUST("./any" RUN "--steps 2 --dump any.npz && cmp any.npz %s.npz", order[k]);
#endif
    }
    ck_assert_msg(sh("cmp -s tiles.npz pairs.npz") == 1, "both orders give the same bits");
    MUST(SUMS "sums.onnx -o f32 && ! ./f32 --version | grep summed");
}
END_TEST

START_TEST(exported_weights_of_16_bits_are_a_model)
{
    MUST(COMPILE "mlp.onnx -o t");
    MUST("./t" RUN "--steps 2 --save ck --export wide.onnx");
    MUST("./t" RUN "--eval --resume auto --save ck --dump t.npz");
    for (int k = 0; k < 2; k++) {
        MUST("./t" RUN "--eval --resume auto --save ck --export %s.onnx --export-precision=%s",
             types[k], types[k]);
        MUST("test $(stat -c %%s %s.onnx) -lt $(stat -c %%s wide.onnx)", types[k]);
        MUST(COMPILE "%s.onnx -o again", types[k]);
        MUST("./again" RUN "--eval --dump again.npz");
        ck_assert_msg(near("t.npz", "again.npz", "0.03", "out/"), "%s: %s", types[k], text);
        MUST("./again" RUN "--steps 2");
    }
}
END_TEST

/* What is kept for the backward part, without recomputation; parameters and moments are f32 in both
 * types. */
START_TEST(activations_take_half_of_the_bytes)
{
    static const char *const net[] = {
        "cnn --size=32",
        "unet --width=8 --depth=2 --size=32",
        "resnet18 --stem=cifar --width=8 --size=32",
        "gpt --depth=1 --heads=2 --width=64 --context=64 --vocab=65",
    };
    for (int k = 0; k < 4; k++) {
        double kept[3], state[3];
        MUST(LS_BUILD "/lowerset model %s -o net.onnx", net[k]);
        for (int t = 0; t < 3; t++) {
            MUST(LS_BUILD "/lowerset plan net.onnx --batch=8 --strategy=none --machine=cpu --json "
                          "--precision=%s",
                 t == 2 ? "f32" : types[t]);
            kept[t] = told("\"kept_bytes\":");
            state[t] = told("\"state_bytes\":");
        }
        for (int t = 0; t < 2; t++) {
            ck_assert_msg(kept[t] <= 0.52 * kept[2], "%s in %s: %g of %g bytes", net[k], types[t],
                          kept[t], kept[2]);
            ck_assert_msg(state[t] - state[2] >= 0 && state[t] - state[2] <= 256, "%s: %g, %g",
                          net[k], state[t], state[2]);
        }
    }
}
END_TEST

/* The loss of the last of 62 epochs, 496 steps: in doubles, in f32 in five orders of the data, and
 * in 16 bits. */
START_TEST(losses_in_16_bits_lie_among_those_in_f32)
{
    enum { SAMPLES = 32, ORDERS = 5 };
    float x[SAMPLES * 16];
    int64_t label[SAMPLES];
    double least = INFINITY, most = 0, of;
    for (int i = 0; i < SAMPLES * 16; i++)
        x[i] = wave(i, 1);
    for (int i = 0; i < SAMPLES; i++)
        label[i] = i * 7 % 10;
    write_npy("x.npy", "<f4", "32, 1, 4, 4", x, sizeof x);
    write_npy("label.npy", "<i8", "32", label, sizeof label);
    static const char *const program[] = {"f64", "f32", "bf16", "f16"};
    for (int k = 0; k < 4; k++) {
        MUST(COMPILE "mlp.onnx --precision=%s --optimizer=adam --lr=2e-3 -o t", program[k]);
        for (int order = 0; order < (k == 1 ? ORDERS : 1); order++) {
            MUST("./t --data x.npy,label.npy --seed %d --epochs 62 --progress none", order);
            of = told("epoch 62  step 496  loss ");
            if (k < 2) {
                least = fmin(least, of);
                most = fmax(most, of);
            }
        }
        const double spread = most - least;
        ck_assert_msg(k < 2 || (of >= least - spread && of <= most + spread),
                      "%s: %g, f32 from %g to %g", program[k], of, least, most);
    }
    ck_assert_msg(most < 1.5 && most > least, "from %g to %g", least, most); /* it began at 2.3 */
}
END_TEST

/* A profile tells the types of results, so that it does not price a program in another type. */
START_TEST(a_profile_prices_programs_of_its_type)
{
    MUST(COMPILE "gpt.onnx --precision=bf16 -o t");
    MUST("./t" RUN "--steps 4 --profile p.json");
    MUST("grep -c '\"types\":\\[\"bf16\"\\]' p.json");
    ck_assert_int_eq(
        sh(LS_BUILD
           "/lowerset plan gpt.onnx --batch=4 --plan-effort=2 --precision=bf16 --costs p.json"),
        0);
    ck_assert_msg(strstr(text, "measured in p.json") != NULL, "%s", text);
    const char *of = strstr(text, "measured in p.json (");
    int found, all;
    ck_assert_int_eq(sscanf(of, "measured in p.json (%d of %d nodes", &found, &all), 2);
    ck_assert_int_eq(found, all);
    ck_assert_int_ne(
        sh(LS_BUILD
           "/lowerset plan gpt.onnx --batch=4 --plan-effort=2 --precision=f16 --costs p.json"),
        0);
    ck_assert_msg(strstr(text, "its types differ") != NULL, "%s", text);
}
END_TEST

START_TEST(a_plan_has_both_types_side_by_side)
{
    for (int k = 0; k < 2; k++) {
        MUST(LS_BUILD "/lowerset plan gpt.onnx --batch=4 --plan-effort=2 --machine=cpu --json "
                      "--precision=%s | tr -d '\\n\\t'",
             types[k]);
        char want[200], *at = strstr(text, "\"precisions\":{\"plans\":[");
        snprintf(want, sizeof want,
                 "{\"type\":\"%s\",\"feasible\":true,\"arena_bytes\":%.0f,\"step_ns\":", types[k],
                 told("\"arena_bytes\":"));
        ck_assert_msg(at != NULL && strstr(at, want) != NULL, "no %s in %s", want, text);
        double pays = atof(strstr(at, "step_ns\":") + 9);
        ck_assert_double_eq(pays, told("\"step_ns\":"));
        ck_assert_ptr_nonnull(strstr(at, "{\"type\":\"f32\",\"feasible\":true,"));
        ck_assert_ptr_nonnull(strstr(at, "\"pays\":\""));
        snprintf(want, sizeof want,
                 "\"type\":\"%s\",\"bytes\":", types[k]); /* of live tensors at the peak */
        ck_assert_msg(strstr(at, want) != NULL, "no %s in %s", want, text);
    }
    MUST(LS_BUILD "/lowerset plan gpt.onnx --batch=4 --plan-effort=2 --machine=cpu --json");
    ck_assert_ptr_null(strstr(text, "precisions"));
}
END_TEST

/* On machines whose kernels of bf16 are slow, or as fast as the others; and a small network whose
 * arena is small anyway. */
START_TEST(where_16_bits_do_not_pay_a_plan_says_so)
{
    static const char *const want[] = {
        "16 bits are predicted to pay in memory alone: a step takes ", "\"pays\":\"memory\"",
        "\"pays\":\"both\"", "16 bits are not predicted to pay here: a step takes "};
    for (int k = 0; k < 4; k++) {
        FILE *f = fopen("made.machine", "w");
        ck_assert_ptr_nonnull(f);
        fprintf(f, "lowerset-machine 1\nname made\nkind cpu\npeak f32=100\nmemory 10\nlanes "
                   "16\nclass other 0.5 1 1 100\n");
        for (int i = 0; i < 4 && k != 2; i++)
            fprintf(f, "class matmul%s.bf16 0.005 1 1 100\n",
                    (const char *[]){"", ".thin", ".batch", ".outer"}[i]);
        fclose(f);
        MUST(LS_BUILD "/lowerset plan %s --batch=4 --plan-effort=2 --machine=made.machine "
                      "--precision=bf16 %s",
             k == 3 ? "mlp.onnx --precision-of '*=f32'" : "gpt.onnx",
             k % 3 == 0 ? "" : "--json | tr -d '\n\t'");
        ck_assert_msg(strstr(text, want[k]) != NULL, "%s: %s", want[k], text);
        ck_assert_int_eq(strstr(text, "predicted to pay") != NULL, k % 3 == 0);
    }
}
END_TEST

/* A program knows what a step takes with 1, 2, 4 and more threads. */
START_TEST(a_program_has_the_times_that_plan_tells)
{
    MUST(LS_BUILD "/lowerset compile -q --plan-effort=2 gpt.onnx --batch=8 --emit=c -o told.c");
    for (int k = 0; k < 4; k++) {
        MUST("grep -F '.about.predicted.ns[%d] =' told.c", k);
        const double ns = told("] = ");
        MUST(LS_BUILD "/lowerset plan -q --plan-effort=2 gpt.onnx --batch=8 --threads=%d", 1 << k);
        ck_assert_double_eq_tol(told("a step takes ") * 1e6, ns, 2e-3 * ns);
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("mixed_runs");
    tcase_add_loop_test(t, every_budget_gives_the_same_bits, 0, 4);
    tcase_add_test(t, evaluation_has_a_type_of_its_own);
    tcase_add_test(t, sums_of_bf16_have_the_order_that_is_asked_for);
    tcase_add_test(t, exported_weights_of_16_bits_are_a_model);
    tcase_add_test(t, activations_take_half_of_the_bytes);
    tcase_add_test(t, losses_in_16_bits_lie_among_those_in_f32);
    tcase_add_test(t, a_profile_prices_programs_of_its_type);
    tcase_add_test(t, a_plan_has_both_types_side_by_side);
    tcase_add_test(t, where_16_bits_do_not_pay_a_plan_says_so);
    tcase_add_test(t, a_program_has_the_times_that_plan_tells);
    return run_command_lines("mixed_runs", t, make_nets);
}
