/* tests/whole/test_private_runs.c -- private training through the command line: which samples
 * updates draw, in how many micro-batches, the noise, the ledger, and what is refused.
 *
 * The nets are perceptrons under an absolute error whose targets lie far above their outputs, so
 * that every sample has the same slope. With a rate of 0 the parameters stay; moment/PARAM.grad of
 * a dump is the gradient of the last update. */
#include "runtime/data/npz.h"
#include "tests/support/command_line.h"
#include "tests/support/npz_util.h"
#include "tests/support/suite.h"

#include <unistd.h>

enum { FEATURES = 16, OUTPUTS = 10, HIDDEN = 32, SAMPLES = 64, MOST = 1 << 12 };

#define COMPILE                                                                                    \
    LS_BUILD                                                                                       \
        "/lowerset compile net.onnx -q -O0 --plan-effort=2 --loss=l1 --optimizer=sgd:momentum=0 "
#define QUIET " --progress none "

/* A file of samples: sample i has 1 at feature i % FEATURES, or all zeros; `bad` of them from the
 * end have NaN. */
static void write_samples(const char *path, int n, bool zeros, int bad)
{
    static float x[SAMPLES * FEATURES], y[SAMPLES * OUTPUTS];
    memset(x, 0, sizeof x);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < FEATURES; k++)
            x[i * FEATURES + k] = i >= n - bad ? (k == i % 3 ? NAN : INFINITY)
                                  : zeros      ? 0
                                               : wave(i * FEATURES + k, 1) + (float)(k == i);
    for (int i = 0; i < n * OUTPUTS; i++)
        y[i] = 1000;
    write_npz(
        path, 2,
        (NpzItem[]){{"x", LS_F32, 4, {n, 1, 4, 4}, x}, {"label", LS_F32, 2, {n, OUTPUTS}, y}});
}

static void make_nets(void)
{
    MUST(LS_BUILD "/lowerset model mlp --batch=0 --width=%d --size=4 -o net.onnx", HIDDEN);
    MUST(LS_BUILD "/lowerset model mlp --batch=0 --width=8 --size=8 -o wide.onnx");
    write_samples("data.npz", SAMPLES, false, 0);
    write_samples("zeros.npz", SAMPLES, true, 0);
}

static int64_t read_member(const char *path, const char *name, double to[MOST])
{
    LsFile f;
    LsArray a;
    LsError e = {0};
    bool found = false;
    ck_assert_msg(ls_file_map(&f, path, &e), "%s", e.text);
    ck_assert(ls_npz_find(&f, name, &a, &found, &e));
    ck_assert_msg(found && a.count <= MOST, "%s: no %s", path, name);
    for (int64_t i = 0; i < a.count; i++)
        to[i] = ls_array_real(&a, i);
    const int64_t n = a.count;
    ls_file_unmap(&f);
    return n;
}

static bool near(const char *a, const char *b, double tolerance, const char *prefix)
{
    return sh(LS_BUILD "/tests/npz_near %s %s %g %s", a, b, tolerance, prefix) == 0;
}

/* |all a - factor b|: 0 if they are the same bits. */
static double difference(const char *a, const char *b, const char *name, double factor)
{
    static double of[2][MOST];
    const int64_t n = read_member(a, name, of[0]);
    double most = 0;
    ck_assert_int_eq(n, read_member(b, name, of[1]));
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs(of[0][i] - factor * of[1][i]));
    return most;
}

/* ---- ways to a clipped sum ---- */

#define DIGITS " digits.onnx -q --plan-effort=2 --loss=l1 --optimizer=sgd:momentum=0 --batch=6 " \
    "--dp=clip=0.01,noise=0,delta=1e-5,expected-batch=6,sums="

/* Compiles both programs of a way, without a budget and with the least one, and runs them. Returns
 * the least arena. */
static double run_way(const char *sums)
{
    for (int tight = 0; tight < 2; tight++) {
        MUST(LS_BUILD "/lowerset compile" DIGITS "%s%s -O0 -o %s", sums,
             tight ? " --budget=min" : "", sums);
        MUST("./%s --data images.npz --lr 0 --noise-seed 5 --steps 1 --threads 1 --dump "
             "%s%d.npz" QUIET,
             sums, sums, tight);
    }
    MUST(LS_BUILD "/lowerset plan" DIGITS "%s --budget=min --json", sums);
    return told("\t\"arena_bytes\":");
}

/* Sums from the gradients of samples and sums made by a second run over weighed operands differ by
 * rounding alone. Within one way no bit depends on the budget. The planner takes the second way
 * where memory is scarce. */
START_TEST(ways_to_a_clipped_sum_agree)
{
    enum { N = 64, IMAGE = 14 * 14 };
    static float x[N * IMAGE], y[N * OUTPUTS];
    for (int i = 0; i < N * IMAGE; i++)
        x[i] = wave(i, 2);
    for (int i = 0; i < N * OUTPUTS; i++)
        y[i] = wave(i, 3);
    write_npz(
        "images.npz", 2,
        (NpzItem[]){{"x", LS_F32, 4, {N, 1, 14, 14}, x}, {"label", LS_F32, 2, {N, OUTPUTS}, y}});
    MUST(LS_BUILD "/lowerset model digits --size=14 --width=8 -o digits.onnx");
    const double terms = run_way("terms"), again = run_way("again"), any = run_way("auto");
    ck_assert_double_eq(difference("terms0.npz", "terms1.npz", "moment/conv2.weight.grad", 1), 0);
    ck_assert_double_eq(difference("again0.npz", "again1.npz", "moment/conv2.weight.grad", 1), 0);
    ck_assert_double_gt(difference("terms0.npz", "again0.npz", "moment/conv2.weight.grad", 1), 0);
    ck_assert(near("terms0.npz", "again0.npz", 1e-6, "moment/"));
    ck_assert(near("terms0.npz", "auto0.npz", 1e-6, "moment/"));
    ck_assert(near("terms0.npz", "auto1.npz", 1e-6, "moment/"));
    printf("least arena: %g from terms, %g by second runs, %g as the planner likes it\n", terms,
           again, any);
    ck_assert_double_lt(any, terms);
}
END_TEST

/* An update of one micro-batch leaves its sum out of the accumulator, unless a dump shows it: the
 * bits are the same. */
START_TEST(updates_of_one_step_need_no_accumulator)
{
    MUST(COMPILE "--batch=64 --dp=clip=0.01,noise=1,delta=1e-5,expected-batch=16 -o sums");
    MUST("./sums --data data.npz --lr 1 --noise-seed 5 --steps 3 --dump with.npz" QUIET);
    MUST("./sums --data data.npz --lr 1 --noise-seed 5 --steps 3 --save without" QUIET);
    MUST("./sums --data data.npz --lr 1 --noise-seed 5 --steps 3 --save saved --dump "
         "saved.npz" QUIET);
    MUST("./sums --data data.npz --lr 0 --noise-seed 6 --steps 4 --resume "
         "without/step-000000003.safetensors --dump a.npz" QUIET);
    MUST("./sums --data data.npz --lr 0 --noise-seed 6 --steps 4 --resume "
         "saved/step-000000003.safetensors --dump b.npz" QUIET);
    MUST(LS_BUILD "/tests/npz_near a.npz b.npz 0");
    MUST(LS_BUILD "/tests/npz_near with.npz a.npz 0 param/");
}
END_TEST

/* ---- samples ---- */

/* Inputs with a 1 at feature i of sample i: the columns of the weight's gradient tell which samples
 * were drawn. */
static void write_marks(void)
{
    static float x[SAMPLES * SAMPLES], y[SAMPLES * OUTPUTS];
    for (int i = 0; i < SAMPLES; i++)
        x[i * SAMPLES + i] = 1;
    for (int i = 0; i < SAMPLES * OUTPUTS; i++)
        y[i] = 1000;
    write_npz("marks.npz", 2,
              (NpzItem[]){{"x", LS_F32, 4, {SAMPLES, 1, 8, 8}, x},
                          {"label", LS_F32, 2, {SAMPLES, OUTPUTS}, y}});
}

/* The samples of update k. Returns their number, which the output's bias counts as well. */
static int drawn(int k, bool in[SAMPLES])
{
    static double w[MOST];
    int n = 0;
    MUST("./marks --data marks.npz --lr 0 --noise-seed 11 --steps %d --epochs 999 --dump "
         "marks_out.npz" QUIET,
         k);
    const int64_t all = read_member("marks_out.npz", "moment/fc1.weight.grad", w);
    for (int i = 0; i < SAMPLES; i++) {
        in[i] = false;
        for (int64_t h = i; h < all; h += SAMPLES)
            in[i] |= w[h] != 0;
        n += in[i];
    }
    read_member("marks_out.npz", "moment/fc2.bias.grad", w);
    ck_assert_double_eq_tol(w[0], -0.1 * n / 8, 1e-6);
    return n;
}

START_TEST(updates_take_every_sample_with_the_same_chance)
{
    enum { UPDATES = 80 };
    int of[SAMPLES] = {0}, pairs = 0, again = 0;
    bool in[2][SAMPLES] = {{false}};
    double sum = 0, squares = 0, chi = 0;
    const double q = 8. / SAMPLES, mean = SAMPLES * q, variance = mean * (1 - q);
    write_marks();
    MUST(LS_BUILD "/lowerset compile wide.onnx -q -O0 --plan-effort=2 --loss=l1 "
                  "--optimizer=sgd:momentum=0 --batch=3 "
                  "--dp=clip=1e6,noise=0,delta=1e-5,expected-batch=8 -o marks");
    for (int k = 0; k < UPDATES; k++) {
        bool *now = in[k % 2], *before = in[1 - k % 2];
        const int n = drawn(k + 1, now);
        sum += n, squares += (n - mean) * (n - mean);
        for (int i = 0; i < SAMPLES; i++) {
            of[i] += now[i];
            pairs += now[i] && now[(i + 1) % SAMPLES];
            again += k > 0 && now[i] && before[i];
        }
    }
    for (int i = 0; i < SAMPLES; i++)
        chi += (of[i] - UPDATES * q) * (of[i] - UPDATES * q) / (UPDATES * q * (1 - q));
    ck_assert_double_eq_tol(sum / UPDATES, mean, 5 * sqrt(variance / UPDATES));
    ck_assert_double_eq_tol(squares / UPDATES, variance, 5 * variance * sqrt(2. / UPDATES));
    ck_assert_double_eq_tol(chi, SAMPLES, 5 * sqrt(2. * SAMPLES));
    ck_assert_double_eq_tol(pairs, UPDATES * SAMPLES * q * q, 5 * sqrt(UPDATES * SAMPLES) * q);
    ck_assert_double_eq_tol(again, (UPDATES - 1) * SAMPLES * q * q,
                            5 * sqrt(UPDATES * SAMPLES) * q);
}
END_TEST

/* The same samples in micro-batches of three or two, or in one batch; the same noise, once. */
START_TEST(an_update_of_many_micro_steps_is_that_of_one_large_batch)
{
    static const int batch[] = {64, 3, 2};
    for (int k = 0; k < 3; k++) {
        MUST(COMPILE "--batch=%d --dp=clip=0.5,noise=1.1,delta=1e-5,expected-batch=16 -o t",
             batch[k]);
        MUST("./t --data data.npz --lr 0.1 --noise-seed 4 --steps 12 --epochs 9 --dump "
             "many%d.npz" QUIET,
             k);
        if (k > 0)
            ck_assert_msg(near("many0.npz", k == 1 ? "many1.npz" : "many2.npz", 1e-6, "param/"),
                          "%s", text);
    }
    MUST(COMPILE
         "--batch=64 --dp=clip=0.5,noise=1.1,delta=1e-5,expected-batch=16 --accumulate=4 -o t");
    MUST(
        "./t --data data.npz --lr 0.1 --noise-seed 4 --steps 12 --epochs 9 --dump many1.npz" QUIET);
    ck_assert_msg(near("many0.npz", "many1.npz", 0, "param/"), "%s", text);
}
END_TEST

/* Losses of all kinds: two samples in a batch of two, or of five. */
START_TEST(what_fills_up_a_batch_adds_nothing_to_any_loss)
{
    static const char *const loss[] = {"ce", "kl", "bce", "cosine", "huber"};
    const int64_t label[] = {3, 7};
    float x[2 * FEATURES], y[2 * OUTPUTS];
    for (int i = 0; i < 2 * FEATURES; i++)
        x[i] = wave(i, 2);
    for (int i = 0; i < 2 * OUTPUTS; i++)
        y[i] = 0.1f + 0.1f * (float)(i % 3);
    for (int k = 0; k < (int)(sizeof loss / sizeof *loss); k++) {
        const NpzItem target = k == 0 ? (NpzItem){"label", LS_I64, 1, {2}, label}
                                      : (NpzItem){"label", LS_F32, 2, {2, OUTPUTS}, y};
        write_npz("two.npz", 2, (NpzItem[]){{"x", LS_F32, 4, {2, 1, 4, 4}, x}, target});
        for (int size = 2; size <= 5; size += 3) {
            MUST(LS_BUILD "/lowerset compile net.onnx -q -O0 --plan-effort=2 --loss=%s --batch=%d "
                 "--dp=clip=1e-3,noise=0,delta=1e-5,expected-batch=2 -o t", loss[k], size);
            MUST("./t --data two.npz --lr 0 --steps 1 --dump of%d.npz" QUIET, size);
        }
        ck_assert_msg(near("of2.npz", "of5.npz", 1e-6, "moment/"), "%s: %s", loss[k], text);
        ck_assert_msg(near("of2.npz", "of5.npz", 1e-6, "loss"), "%s: %s", loss[k], text);
    }
}
END_TEST

/* All samples of the data are drawn. The batch has four of them and four that repeat these, or no
 * others; or four that are not finite. */
START_TEST(what_fills_up_a_batch_adds_nothing)
{
    write_samples("four.npz", 4, false, 0);
    write_samples("eight.npz", 8, false, 4);
    MUST(COMPILE "--batch=4 --dp=clip=100,noise=0,delta=1e-5 -o t");
    MUST("./t --data four.npz --lr 0 --steps 1 --dump four_of_four.npz" QUIET);
    MUST(COMPILE "--batch=8 --dp=clip=100,noise=0,delta=1e-5,expected-batch=4 -o t");
    MUST("./t --data four.npz --lr 0 --steps 1 --dump four_of_eight.npz" QUIET);
    ck_assert_msg(near("four_of_four.npz", "four_of_eight.npz", 1e-6, "moment/"), "%s", text);
    ck_assert_msg(near("four_of_four.npz", "four_of_eight.npz", 1e-6, "loss"), "%s", text);
    MUST(COMPILE "--batch=8 --dp=clip=100,noise=0,delta=1e-5,expected-batch=8 -o t");
    MUST("./t --data eight.npz --lr 0 --steps 3 --epochs 3 --dump bad.npz --log bad.json" QUIET);
    ck_assert_ptr_nonnull(strstr(
        text,
        "note: step 1: the loss is not finite; samples whose gradients are not finite count"));
    ck_assert_double_eq(difference("four_of_eight.npz", "bad.npz", "moment/fc1.weight.grad", 2), 0);
    ck_assert_double_eq(difference("four_of_eight.npz", "bad.npz", "moment/fc2.weight.grad", 2), 0);
    ck_assert_double_eq(difference("four_of_eight.npz", "bad.npz", "moment/fc2.bias.grad", 2), 0);
    static double norm[MOST];
    read_member("bad.npz", "moment/fc2.bias.grad", norm);
    ck_assert_double_eq_tol(norm[0], -0.1 * 4 / 8, 1e-6);
}
END_TEST

/* The same for convolutions, with twice the clip over twice the samples: the same bits. */
START_TEST(samples_that_are_not_finite_add_nothing)
{
    enum { SIZE = 12 * 12, GOOD = 4, ALL = 8 };
    static float x[ALL * SIZE];
    const int64_t label[ALL] = {1, 2, 3, 4, 5, 6, 7, 8};
    MUST(LS_BUILD "/lowerset model cnn --size=12 --width=4 -o cnn.onnx");
    for (int i = 0; i < ALL * SIZE; i++)
        x[i] = i < GOOD * SIZE ? wave(i, 3) : i % 50 == 0 ? NAN : 1e30f;
    for (int k = 0; k < 2; k++) {
        const int n = k == 0 ? GOOD : ALL;
        write_npz(
            "images.npz", 2,
            (NpzItem[]){{"x", LS_F32, 4, {n, 1, 12, 12}, x}, {"label", LS_I64, 1, {n}, label}});
        MUST(LS_BUILD "/lowerset compile cnn.onnx -q -O0 --plan-effort=2 --batch=8 "
             "--dp=clip=%g,noise=0,delta=1e-5,expected-batch=%d -o t", 0.001 * (k + 1), n);
        MUST("./t --data images.npz --lr 0 --steps 1 --dump images%d.npz" QUIET, k);
    }
    ck_assert_msg(near("images0.npz", "images1.npz", 0, "moment/"), "%s", text);
}
END_TEST

/* Nearly all updates have no sample: noise alone. Their losses are 0. */
START_TEST(an_update_without_samples_adds_noise)
{
    static double w[MOST];
    MUST(COMPILE "--batch=4 --dp=clip=1,noise=2,delta=1e-5,expected-batch=0.02 -o t");
    MUST("./t --data data.npz --lr 1e-3 --steps 9 --epochs 1 --log empty.json --dump empty.npz "
         "--noise-seed 1" QUIET);
    MUST("grep -c '\"loss\":0,' empty.json");
    ck_assert_int_ge(atoi(text), 7);
    ck_assert_int_ne(sh("grep -i 'nan\\|null' empty.json"), 0);
    const int64_t n = read_member("empty.npz", "moment/fc1.weight.grad", w);
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += w[i] * w[i];
    ck_assert_double_eq_tol(sqrt(sum / (double)n) * 0.02, 2, 2 * 5 / sqrt(2. * (double)n));
}
END_TEST

/* ---- noise ---- */

/* Features of zeros: the first weight has no gradient but the noise. An update has four
 * micro-batches or so. */
START_TEST(the_noise_has_its_deviation_once_per_update)
{
    enum { UPDATES = 64 };
    static double a[MOST], b[MOST];
    double last = 0, sum = 0;
    MUST(COMPILE "--batch=4 --dp=clip=0.5,noise=1.5,delta=1e-5,expected-batch=16 -o t");
    MUST("./t --data zeros.npz --eval --dump start.npz" QUIET);
    MUST("./t --data zeros.npz --lr 1 --steps %d --epochs %d --dump end.npz" QUIET, UPDATES,
         UPDATES);
    const double deviation = 1.5 * 0.5 / 16;
    const int64_t n = read_member("end.npz", "moment/fc1.weight.grad", a);
    for (int64_t i = 0; i < n; i++)
        last += a[i] * a[i] / (double)n;
    ck_assert_double_eq_tol(sqrt(last), deviation, 5 * deviation / sqrt(2. * (double)n));
    read_member("start.npz", "param/fc1.weight", a);
    read_member("end.npz", "param/fc1.weight", b);
    for (int64_t i = 0; i < n; i++)
        sum += (b[i] - a[i]) * (b[i] - a[i]) / (double)n;
    ck_assert_double_eq_tol(sqrt(sum / UPDATES), deviation, 5 * deviation / sqrt(2. * (double)n));
}
END_TEST

START_TEST(noise_is_secret_unless_it_is_seeded)
{
    MUST(COMPILE "--batch=16 --dp=clip=1,noise=1,delta=1e-5 -o t");
    MUST(COMPILE "--batch=16 --dp=clip=1,noise=1,delta=1e-5 --budget=min -o least");
    for (int k = 0; k < 2; k++)
        MUST("./t --data data.npz --epochs 2 --dump secret%d.npz" QUIET, k);
    ck_assert_ptr_null(strstr(text, "not private"));
    ck_assert_int_ne(sh("cmp secret0.npz secret1.npz"), 0);
    MUST("./t --data data.npz --epochs 2 --noise-seed 7 --dump seeded0.npz" QUIET);
    ck_assert_ptr_nonnull(
        strstr(text, "warning: --noise-seed: who knows the seed can subtract the noise"));
    MUST("./least --data data.npz --epochs 2 --noise-seed 7 --threads 2 --workers 0 --dump "
         "seeded1.npz" QUIET);
    MUST("cmp seeded0.npz seeded1.npz");
    MUST("./t --data data.npz --epochs 2 --noise-seed 8 --dump seeded1.npz" QUIET);
    ck_assert_int_ne(sh("cmp seeded0.npz seeded1.npz"), 0);
}
END_TEST

/* Micro-batches of three samples, with dropout. */
START_TEST(every_budget_gives_the_same_bits)
{
    MUST(LS_BUILD "/lowerset model gpt --depth=1 --heads=2 --width=16 --context=8 --vocab=33 "
                  "--dropout=0.1 -o gpt.onnx");
    for (int k = 0; k < 2; k++) {
        MUST(LS_BUILD
             "/lowerset compile gpt.onnx -q -O0 --plan-effort=2 --batch=3 --optimizer=adam "
             "--randomness=different "
             "--dp=clip=0.1,noise=0.5,delta=1e-5,expected-batch=8,sums=again --budget=%s -o t",
             k == 0 ? "100%" : "min");
        MUST("./t --data synthetic:50 --seed 2 --noise-seed 6 --epochs 1 --threads %d --dump "
             "budget%d.npz" QUIET,
             k + 1, k);
    }
    ck_assert_msg(near("budget0.npz", "budget1.npz", 0, "param/"), "%s", text);
    ck_assert_msg(near("budget0.npz", "budget1.npz", 0, "moment/"), "%s", text);
}
END_TEST

/* ---- the ledger ---- */

START_TEST(epsilon_is_that_of_the_accountant)
{
    MUST(COMPILE "--batch=4 --dp=clip=1,noise=1.3,delta=1e-3,expected-batch=12 -o t");
    MUST("./t --data data.npz --epochs 5 --log log.json" QUIET);
    ck_assert_ptr_nonnull(strstr(text, "epoch 5  step 30  loss "));
    const double shown = told("\nepsilon "), in_epoch = told("epoch 5  step 30  loss ");
    ck_assert_double_gt(in_epoch, 0);
    ck_assert_ptr_nonnull(strstr(text, " after 30 updates\n"));
    MUST("grep -c '\"epsilon\"' log.json");
    ck_assert_int_eq(atoi(text), 5);
    MUST("tail -n 1 log.json");
    const double logged = told("\"epsilon\":");
    MUST(LS_BUILD "/lowerset dp --samples %d --batch 12 --epochs 5 --noise 1.3 --delta 1e-3 --json",
         SAMPLES);
    ck_assert_double_eq_tol(logged, told("\"epsilon\": "), 1e-5);
    ck_assert_double_eq_tol(shown, logged, 1e-4);
    MUST(COMPILE "--batch=4 --dp=clip=1,noise=0,delta=1e-3 -o t");
    MUST("./t --data data.npz --epochs 1" QUIET);
    ck_assert_ptr_nonnull(strstr(text, "epsilon is infinite: without noise nothing is guaranteed"));
}
END_TEST

/* The ledger of a checkpoint, as it is written. */
static void ledger_of(const char *path, char to[200])
{
    MUST("head -c 3000 %s | tr ',' '\\n' | grep -a '^\"privacy\"'", path);
    snprintf(to, 200, "%.199s", text);
}

START_TEST(a_killed_run_keeps_its_ledger)
{
    char whole[200], rest[200];
    MUST(COMPILE "--batch=4 --dp=clip=1,noise=1.3,delta=1e-3,expected-batch=12 -o t");
    MUST("./t --data data.npz --steps 60 --epochs 99 --noise-seed 3 --save whole --save-every 60 "
         "--dump whole.npz" QUIET);
    MUST("./t --data data.npz --steps 60 --epochs 99 --noise-seed 3 --save ck --save-every 1 "
         ">killed 2>&1 & p=$! i=0; "
         "while [ ! -e ck/step-000000012.safetensors ] && [ $i -lt 3000 ]; do sleep 0.01; i=$((i + "
         "1)); done; "
         "kill -9 $p; wait $p || :");
    MUST("rm -f ck/step-000000060.safetensors");
    MUST("./t --data data.npz --steps 60 --epochs 99 --noise-seed 3 --save ck --save-every 60 "
         "--resume=auto --dump rest.npz" QUIET);
    ck_assert_ptr_nonnull(strstr(text, "continuing from"));
    MUST("cmp whole.npz rest.npz");
    ledger_of("whole/step-000000060.safetensors", whole);
    ledger_of("ck/step-000000060.safetensors", rest);
    ck_assert_str_eq(whole, rest);
    ck_assert_str_eq(whole, "\"privacy\":\"0.1875 1.3 60\"\n");
    MUST(COMPILE "--batch=4 --dp=clip=1,noise=2,delta=1e-3,expected-batch=12 -o other");
    MUST("./other --data data.npz --steps 70 --epochs 99 --save ck --resume=auto" QUIET);
    ck_assert_ptr_nonnull(strstr(text, "--noise-seed was given to the checkpoint's run"));
    const double both = told("\nepsilon ");
    ledger_of("ck/step-000000070.safetensors", rest);
    ck_assert_str_eq(rest, "\"privacy\":\"0.1875 1.3 60;0.1875 2 10\"\n");
    MUST(LS_BUILD "/lowerset dp --sample-rate 0.1875 --steps 60 --noise 1.3 --delta 1e-3");
    ck_assert_double_gt(both, told("epsilon "));
    MUST(LS_BUILD "/lowerset dp --sample-rate 0.1875 --steps 70 --noise 1.3 --delta 1e-3");
    ck_assert_double_lt(both, told("epsilon "));
}
END_TEST

START_TEST(no_secret_is_in_a_checkpoint)
{
    MUST(COMPILE "--batch=4 --dp=clip=1,noise=1,delta=1e-5 -o t");
    for (int k = 0; k < 2; k++)
        MUST("./t --data data.npz --steps 1 --lr 0 --save ck%d" QUIET, k);
    MUST("for k in 0 1; do tail -c +9 ck$k/step-000000001.safetensors | grep -aom1 "
         "'^.*\"checksum\"' >head$k; done; "
         "grep -q privacy head0; cmp head0 head1");
    for (int k = 0; k < 2; k++)
        MUST("./t --data data.npz --steps 2 --lr 1 --resume ck0/step-000000001.safetensors --dump "
             "on%d.npz" QUIET,
             k);
    ck_assert_msg(strstr(text, "note: draws and noise go on under new keys") != NULL, "%s", text);
    ck_assert(!near("on0.npz", "on1.npz", 1e-3, "param/"));
    for (int k = 0; k < 2; k++)
        MUST("./t --data data.npz --steps 2 --lr 1 --noise-seed 4 --resume "
             "ck0/step-000000001.safetensors --dump on%d.npz" QUIET,
             k);
    ck_assert_msg(strstr(text, "new keys") == NULL, "%s", text);
    ck_assert_msg(near("on0.npz", "on1.npz", 0, "param/"), "%s", text);
}
END_TEST

/* ---- refusals ---- */

static void refuses(int code, const char *says, const char *line)
{
    ck_assert_msg(sh("%s", line) == code, "%s: %s", line, text);
    ck_assert_msg(strstr(text, says) != NULL, "%s: not '%s' but: %s", line, says, text);
}

START_TEST(what_contradicts_privacy_is_refused)
{
    MUST(COMPILE "--batch=4 --dp=clip=1,noise=1,delta=0.1,expected-batch=9 -o t");
    MUST(COMPILE "--batch=4 --accumulate=2 -o plain");
    write_samples("few.npz", 8, false, 0);
    MUST("./t --data data.npz --steps 2 --save private" QUIET);
    ck_assert_ptr_nonnull(strstr(text, "warning: delta 0.1 is large"));
    MUST("./t --data data.npz --eval --no-shuffle" QUIET);
    MUST("./plain --data data.npz --steps 2 --save plain_ck" QUIET);
    refuses(2, "more than all 8 samples", "./t --data few.npz");
    refuses(2, "draws the samples of every update at random", "./t --data data.npz --shuffle");
    refuses(2, "draws the samples of every update at random", "./t --data data.npz --no-shuffle");
    refuses(2, "draws the samples of every update at random", "./t --data data.npz --drop-last");
    refuses(2, "private gradients are clipped and noisy", "./t --data data.npz --check-gradients");
    refuses(2, "--noise-seed: this program adds no noise",
            "./plain --data data.npz --noise-seed 3");
    refuses(2, "--dp was fixed when the trainer was compiled", "./plain --data data.npz --dp x");
    refuses(8, "would void its guarantee",
            "./plain --data data.npz --resume private/step-000000002.safetensors");
    refuses(8, "its 2 updates were not private",
            "./t --data data.npz --resume plain_ck/step-000000002.safetensors");
    MUST("./plain --data data.npz --eval --resume private/step-000000002.safetensors" QUIET);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("private_runs");
    char dir[] = "/tmp/lowerset-private-XXXXXX";
    if (mkdtemp(dir) == NULL || chdir(dir) != 0)
        return 99;
    tcase_set_timeout(t, 120);
    tcase_add_unchecked_fixture(t, make_nets, NULL);
    tcase_add_test(t, updates_take_every_sample_with_the_same_chance);
    tcase_add_test(t, an_update_of_many_micro_steps_is_that_of_one_large_batch);
    tcase_add_test(t, what_fills_up_a_batch_adds_nothing);
    tcase_add_test(t, samples_that_are_not_finite_add_nothing);
    tcase_add_test(t, what_fills_up_a_batch_adds_nothing_to_any_loss);
    tcase_add_test(t, an_update_without_samples_adds_noise);
    tcase_add_test(t, the_noise_has_its_deviation_once_per_update);
    tcase_add_test(t, noise_is_secret_unless_it_is_seeded);
    tcase_add_test(t, every_budget_gives_the_same_bits);
    tcase_add_test(t, ways_to_a_clipped_sum_agree);
    tcase_add_test(t, updates_of_one_step_need_no_accumulator);
    tcase_add_test(t, epsilon_is_that_of_the_accountant);
    tcase_add_test(t, a_killed_run_keeps_its_ledger);
    tcase_add_test(t, no_secret_is_in_a_checkpoint);
    tcase_add_test(t, what_contradicts_privacy_is_refused);
    int code = run_tests("private_runs", t);
    char remove[64];
    snprintf(remove, sizeof remove, "rm -rf %s", dir);
    return system(remove) != 0 || code != 0;
}
