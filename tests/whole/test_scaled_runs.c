/* tests/whole/test_scaled_runs.c -- whole runs with a scaled loss, through the command line: scales
 * that change no bit, scales that f16 needs, runs that overflow and recover, budgets, resumed and
 * killed runs, clipping. */
#include "tests/support/command_line.h"
#include "tests/support/npz_util.h"
#include "tests/support/precision_nets.h"
#include "tests/support/suite.h"

#include <unistd.h>

#define COMPILE LS_BUILD "/lowerset compile -q -O0 --plan-effort=2 --batch=4 "
#define RUN " --data synthetic --seed 3 --progress none "

static bool read_member(const char *path, const char *name, double *to, int64_t most, int64_t *n)
{
    LsFile f;
    LsArray a;
    LsError e = {0};
    bool found = false;
    ck_assert_msg(ls_file_map(&f, path, &e), "%s", e.text);
    ck_assert(ls_npz_find(&f, name, &a, &found, &e));
    *n = found ? a.count : 0;
    for (int64_t i = 0; i < *n && i < most; i++)
        to[i] = ls_array_real(&a, i);
    ls_file_unmap(&f);
    return found;
}

static double scalar(const char *path, const char *name)
{
    double v[8];
    int64_t n;
    ck_assert_msg(read_member(path, name, v, 8, &n), "%s: no %s", path, name);
    return v[0];
}

START_TEST(a_static_power_of_two_changes_no_bit_in_bf16)
{
    MUST(COMPILE "gpt.onnx --precision=bf16 -o t0");
    MUST(COMPILE "gpt.onnx --precision=bf16 --loss-scale=65536 -o t1");
    MUST("./t0" RUN "--steps 6 --dump t0.npz");
    MUST("./t1" RUN "--steps 6 --dump t1.npz");
    ck_assert_msg(same_arrays("t0.npz", "t1.npz", "param/"), "%s", text);
    ck_assert_msg(same_arrays("t0.npz", "t1.npz", "grad/"), "%s", text);
}
END_TEST

/* The loss times 1e-7: in f16 the gradients of the activations are below the smallest number. */
START_TEST(small_gradients_live_with_a_scale_and_die_without)
{
    double of[3][64];
    int64_t n;
    static const char *const options[] = {"--precision=f32", "--precision=f16 --loss-scale=none",
                                          "--precision=f16"};
    for (int k = 0; k < 3; k++) {
        MUST(COMPILE "mlp.onnx --loss=mse@1e-7 %s -o t", options[k]);
        MUST("./t" RUN "--steps 1 --dump t.npz");
        ck_assert(read_member("t.npz", "grad/fc2.bias", of[k], 64, &n) && n == 10);
    }
    for (int i = 0; i < 10; i++) {
        ck_assert_double_eq(of[1][i], 0);
        ck_assert_double_eq_tol(of[2][i], of[0][i], 2e-10);
    }
    ck_assert_double_gt(fabs(of[0][0]), 1e-9);
}
END_TEST

/* Too large at first: it shrinks, and grows again after every second good step. */
START_TEST(every_budget_gives_the_same_bits_while_the_scale_moves)
{
    const char *compile =
        COMPILE "gpt.onnx --precision=f16 --loss-scale=dynamic:init=1e7,period=2 --optimizer=adam";
    MUST("%s -o t0", compile);
    MUST("./t0" RUN "--steps 16 --dump t0.npz");
    ck_assert_msg(strstr(text, "-> 5000000, update skipped") != NULL, "%s", text);
    for (int k = 0; k < 2; k++) {
        MUST("%s --budget=%s -o t1", compile, k == 0 ? "70%" : "min");
        MUST("./t1" RUN "--steps 16 --dump t1.npz");
        ck_assert_msg(sh("cmp t0.npz t1.npz") == 0, "%s", text);
    }
    double skipped = scalar("t0.npz", "moment/loss_scale.skips");
    ck_assert_msg(skipped >= 1 && skipped <= 13, "%g updates were skipped", skipped);
}
END_TEST

/* An export whose layer norm overflows at the usual scale. */
START_TEST(an_overflowing_net_recovers)
{
    MUST(LS_BUILD "/lowerset compile " LS_SOURCE
                  "/tests/export/fixtures/layernorm/ts.onnx -q -O0 --plan-effort=2 --batch=2 "
                  "--precision=f16 -o t");
    MUST("./t --data " LS_SOURCE
         "/tests/export/fixtures/layernorm/data.npz --epochs 6 --progress none --dump t.npz "
         "--check-numerics");
    ck_assert_msg(strstr(text, "step 2: scale 32768 -> 16384, update skipped; node '") != NULL,
                  "%s", text);
    ck_assert_double_lt(told("epoch 6  step 24  loss "), 0.6 * told("epoch 1  step 4  loss "));
    ck_assert_double_le(scalar("t.npz", "moment/loss_scale.skips"), 3);
}
END_TEST

/* Updates of three batches; the process is killed somewhere, mostly within one, and goes on from
 * its last checkpoint. */
START_TEST(a_killed_run_goes_on_bit_for_bit)
{
    const bool half = _i == 0;          /* bf16 does not overflow: there the scale only grows */
    MUST("rm -rf ck");
    MUST(COMPILE "res.onnx --precision=%s --loss-scale=torch:init=1e7,period=3 --accumulate=3 -o t",
         half ? "f16" : "bf16");
    MUST("./t" RUN "--steps 60 --epochs 99 --schedule cosine --dump whole.npz");
    ck_assert_int_eq(strstr(text, "update skipped") != NULL, half);
    ck_assert_double_ne(scalar("whole.npz", "moment/loss_scale"), 1e7);
    MUST("./t" RUN "--steps 60 --epochs 99 --schedule cosine --save ck --save-every 1 >killed 2>&1 "
                   "& p=$! i=0; "
         "while [ ! -e ck/step-000000012.safetensors ] && [ $i -lt 3000 ]; do sleep 0.01; i=$((i + "
         "1)); done; "
         "kill -9 $p; wait $p || :");
    MUST("rm -f ck/step-000000060.safetensors");
    MUST("./t" RUN
         "--steps 60 --epochs 99 --schedule cosine --save ck --resume=auto --dump rest.npz");
    ck_assert_ptr_nonnull(strstr(text, "continuing from"));
    ck_assert_msg(sh("cmp whole.npz rest.npz") == 0, "%s", text);
}
END_TEST

/* Without a scale, or with a static one on both sides, the states are alike. Else the reason to
 * refuse is told. */
START_TEST(a_run_says_that_its_checkpoint_is_of_another_precision)
{
    static const char *const type[] = {"f16 --loss-scale=1024", "bf16 --loss-scale=1024", "bf16"};
    for (int k = 0; k < 3; k++)
        MUST(COMPILE "gpt.onnx --precision=%s -o t%d", type[k], k);
    MUST("rm -rf ck && ./t0" RUN "--steps 1 --save ck");
    MUST("./t0" RUN "--steps 2 --resume ck/step-000000001.safetensors");
    ck_assert_msg(strstr(text, "computes in") == NULL, "%s", text);
    MUST("./t1" RUN "--steps 2 --resume ck/step-000000001.safetensors");
    ck_assert_msg(strstr(text, "note: ck/step-000000001.safetensors was written by a program that "
                               "computes in f16; this one "
                               "computes in bf16\n")
                      != NULL,
                  "%s", text);
    ck_assert_int_ne(sh("./t2" RUN "--steps 2 --resume ck/step-000000001.safetensors"), 0);
    ck_assert_msg(strstr(text, "holds 'loss_scale', which this program does not have (it was "
                               "written by a program that computes "
                               "in f16)")
                      != NULL,
                  "%s", text);
}
END_TEST

/* |change of all parameters| of a plain gradient step with rate 1: the norm of what the update
 * applied. */
static double applied_norm(void)
{
    static const char *const name[] = {"param/fc1.weight", "param/fc1.bias", "param/fc2.weight",
                                       "param/fc2.bias"};
    static double a[4096], b[4096];
    double sum = 0;
    int64_t n;
    MUST("./t" RUN "--eval --dump start.npz");
    MUST("./t" RUN "--steps 1 --no-shuffle --lr 1 --dump end.npz");
    for (int k = 0; k < 4; k++) {
        ck_assert(read_member("start.npz", name[k], a, 4096, &n) && n <= 4096);
        read_member("end.npz", name[k], b, 4096, &n);
        for (int64_t i = 0; i < n; i++)
            sum += (a[i] - b[i]) * (a[i] - b[i]);
    }
    return sqrt(sum);
}

/* The same 16 samples in one batch or in four. The limit lies above the norm (but below the scaled
 * one), and below it. */
START_TEST(clipping_sees_unscaled_gradients)
{
    double norm = 0;
    for (int limit = 0; limit < 2; limit++) {
        double want = 0;
        for (int k = 0; k < 3; k++) {
            double clip = limit == 0 ? 4 : norm / 2;
            MUST(LS_BUILD "/lowerset compile mlp.onnx -q -O0 --plan-effort=2 "
                          "--optimizer=sgd:momentum=0 --clip-norm=%.9g %s -o t",
                 clip,
                 k == 0   ? "--batch=16"
                 : k == 1 ? "--batch=16 --precision=f16"
                          : "--batch=4 --accumulate=4 --precision=f16");
            double got = applied_norm();
            want = k == 0 ? got : want;
            norm = norm == 0 ? got : norm;
            ck_assert_msg(fabs(got - want) <= 1e-3 * want, "limit %g, program %d: norm %g, not %g",
                          clip, k, got, want);
        }
        const double most = limit == 0 ? norm : norm / 2;
        ck_assert_double_eq_tol(want, most, 1e-4 * norm);
    }
}
END_TEST

/* Ten batches of four samples; those of the bits of `bad` hold a NaN. */
static void make_batches(unsigned bad)
{
    static float x[40 * 16];
    static int64_t label[40];
    for (int i = 0; i < 40 * 16; i++)
        x[i] = i % 64 == 5 && bad >> i / 64 & 1 ? NAN : (float)(i * 7 % 11) / 11;
    for (int i = 0; i < 40; i++)
        label[i] = i % 10;
    write_npz("bad.npz", 2,
              (NpzItem[]){{"x", LS_F32, 4, {40, 1, 4, 4}, x}, {"label", LS_I64, 1, {40}, label}});
}

/* Skipped updates count in a row: a good one between them begins anew. On ranks, too. */
START_TEST(good_updates_end_a_row_of_skipped_ones)
{
    static const char *const way[] = {"", "--accumulate=1 --microbatches=2", "--ranks=2"};
    const char *run =
        "./t --data bad.npz --no-shuffle --progress none --max-skipped 2 --dump t.npz";
    MUST(COMPILE "mlp.onnx --precision=f16 --loss-scale=dynamic:init=64 %s -o t", way[_i]);
    make_batches(0x2aa);
    MUST("%s", run);
    double skips[2];
    int64_t n;
    ck_assert(read_member("t.npz", "moment/loss_scale.skips", skips, 2, &n) && n == 2);
    ck_assert_double_eq(skips[0], 5);
    ck_assert_double_eq(skips[1], 1);
    make_batches(0x2ca);        /* 2, 4, 7 and 8 */
    ck_assert_int_ne(sh("%s", run), 0);
    ck_assert_msg(strstr(text, "step 8: 2 updates in a row were skipped") != NULL, "%s", text);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("scaled_runs");
    tcase_add_test(t, a_static_power_of_two_changes_no_bit_in_bf16);
    tcase_add_test(t, small_gradients_live_with_a_scale_and_die_without);
    tcase_add_test(t, every_budget_gives_the_same_bits_while_the_scale_moves);
    tcase_add_test(t, an_overflowing_net_recovers);
    tcase_add_loop_test(t, a_killed_run_goes_on_bit_for_bit, 0, 2);
    tcase_add_test(t, clipping_sees_unscaled_gradients);
    tcase_add_loop_test(t, good_updates_end_a_row_of_skipped_ones, 0, 3);
    tcase_add_test(t, a_run_says_that_its_checkpoint_is_of_another_precision);
    return run_command_lines("scaled_runs", t, make_nets);
}
