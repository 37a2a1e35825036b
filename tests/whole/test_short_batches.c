/* tests/whole/test_short_batches.c -- a last batch that is not full, and parts of a batch, where
 * samples depend on each other: batch norms take the samples that count, as PyTorch does; other
 * models are refused before the first step. The right values are those of PyTorch, or of formulas
 * in doubles, on the samples alone. */
#include "runtime/data/npz.h"
#include "tests/support/command_line.h"

#define COMPILE                                                                                    \
    LS_BUILD "/lowerset compile -q -O0 --plan-effort=2 --optimizer=sgd:momentum=0 --lr=1 -o t "
#define DATA LS_SOURCE "/tests/data/faults/"
#define NORM DATA "last-batch-norm/model.onnx "
#define RUN "./t --progress none --no-shuffle --steps 1 "
#define RUN_NORM RUN "--data " DATA "last-batch-norm/data.npz "

static void make_nets(void)
{
    MUST(LS_BUILD "/lowerset model densenet121 --size=32 --width=2 --classes=4 -o dense.onnx");
    MUST(LS_BUILD "/lowerset model unet --depth=1 --size=8 --width=2 -o unet.onnx");
}

static void expect(const char *path, const char *name, int64_t i, double right, double off)
{
    LsFile f;
    LsArray a;
    bool found;
    LsError e = {0};
    ck_assert(ls_file_map(&f, path, &e));
    ck_assert_msg(ls_npz_find(&f, name, &a, &found, &e) && found, "%s: %s", name, e.text);
    const double is = ls_array_real(&a, i);
    ck_assert_msg(fabs(is - right) <= off, "%s[%d] is %.9g, not %.9g", name, (int)i, is, right);
    ls_file_unmap(&f);
}

static void expect_pair(const char *name, double a, double b, double off)
{
    expect("d.npz", name, 0, a, off);
    expect("d.npz", name, 1, b, off);
}

/* ---- batch norms ---- */

/* 5 samples in a batch of 8. */
START_TEST(a_batch_norm_takes_the_samples_that_count)
{
    static const char *const way[] = {"",
                                      "--budget=min",
                                      "--precision=f64",
                                      "--precision=bf16",
                                      "--bn-var=torch",
                                      "--precision=f16 --loss-scale=8"};
    const double near[] = {2e-6, 2e-6, 2e-6, 2e-2, 2e-6, 2e-2};
    const bool unbiased = strstr(way[_i], "torch") != NULL;
    MUST(COMPILE NORM "--batch=5 %s", way[_i]);
    MUST(RUN_NORM "--dump five.npz");
    MUST(COMPILE NORM "--batch=8 %s", way[_i]);
    MUST(RUN_NORM "--dump d.npz");
    expect("d.npz", "loss", 0, 1.115378, near[_i]);
    expect_pair("param/w", -0.200650, 1.348725, near[_i]);
    expect_pair("stat/rm", 0.075225, -0.028784, near[_i]);
    expect_pair("stat/rv", unbiased ? 0.979284 : 0.963428, unbiased ? 1.198021 : 1.138417,
                near[_i]);
    MUST(LS_BUILD "/tests/npz_near five.npz d.npz 1e-6 param");
    MUST(LS_BUILD "/tests/npz_near five.npz d.npz 1e-6 stat");
}
END_TEST

/* 3 samples and 2. Some with sample variances: those of parts differ in their factor. */
static const char *const parts[] = {
    "--batch=6 --microbatches=2",
    "--batch=6 --microbatches=2 --budget=min",
    "--batch=6 --ranks=2",
    "--batch=6 --microbatches=2 --stages=2",
    "--batch=6 --microbatches=2 --stages=2 --order=gpipe",
    "--batch=3 --accumulate=2",
    "--batch=3 --accumulate=2 --budget=min",
};
enum { NPARTS = sizeof parts / sizeof *parts };

START_TEST(a_part_that_is_short_has_its_own_statistics)
{
    const bool torch = _i % 2 == 0;
    MUST(COMPILE NORM "--batch=6 --microbatches=2 %s", torch ? "--bn-var=torch" : "");
    MUST(RUN_NORM "--dump one.npz");
    MUST(COMPILE NORM "%s %s", parts[_i], torch ? "--bn-var=torch" : "");
    MUST(RUN_NORM "--dump d.npz");
    expect("d.npz", "loss", 0, 1.078922, 2e-6);
    expect_pair("param/w", 3.408031, 1.357501, 1e-4);
    expect_pair("stat/rm", 0.156436, -0.038834, 2e-6);
    expect_pair("stat/rv", torch ? 0.935609 : 0.893739, torch ? 1.327593 : 1.153631, 2e-6);
    ck_assert_msg(same_arrays("one.npz", "d.npz", "param")
                      && same_arrays("one.npz", "d.npz", "stat"),
                  "%s", text);
}
END_TEST

/* 5 samples: 4 and 1; or parts of one sample each. */
START_TEST(one_value_per_channel_is_refused)
{
    static const char *const way[] = {"--batch=8 --microbatches=2",
                                      "--batch=8 --ranks=2",
                                      "--batch=8 --microbatches=2 --stages=2",
                                      "--batch=4 --accumulate=2",
                                      "--batch=1",
                                      "--batch=4 --ranks=4"};
    MUST(COMPILE NORM "%s", way[_i]);
    ck_assert_int_ne(sh(RUN_NORM), 0);
    ck_assert_msg(
        strstr(text, "expected more than 1 value per channel when training: batch norm 'y'")
            != NULL,
        "%s", text);
    ck_assert_ptr_null(strstr(text, "epoch"));
}
END_TEST

/* Images: statistics are over pixels, too; dense blocks share them. */
START_TEST(images_of_short_batches)
{
    static const struct {
        const char *net;
        int batch, samples;
    } cases[] = {{"unet", 4, 1}, {"unet", 4, 3}, {"dense", 5, 3}};
    const char *net = cases[_i].net, *how = _i == 0 ? "" : "--precision=f64";
    MUST(COMPILE "%s.onnx --strategy=none --loss=ce %s --batch=%d", net, how, cases[_i].samples);
    MUST(RUN "--lr 0.1 --data synthetic:%d --dump few.npz", cases[_i].samples);
    MUST(COMPILE "%s.onnx --strategy=none --loss=ce %s --batch=%d", net, how, cases[_i].batch);
    MUST(RUN "--lr 0.1 --data synthetic:%d --dump d.npz", cases[_i].samples);
    MUST(LS_BUILD "/tests/npz_near few.npz d.npz %s grad", _i == 0 ? "2e-4" : "1e-10");
    MUST(LS_BUILD "/tests/npz_near few.npz d.npz %s stat", _i == 0 ? "1e-5" : "1e-10");
    if (_i == 2)
        return;
    MUST(COMPILE "%s.onnx --loss=ce %s --batch=%d --budget=min", net, how, cases[_i].batch);
    MUST(RUN "--lr 0.1 --data synthetic:%d --dump min.npz", cases[_i].samples);
    ck_assert_msg(same_arrays("d.npz", "min.npz", "param")
                      && same_arrays("d.npz", "min.npz", "stat"),
                  "%s", text);
}
END_TEST

/* ---- the file's own loss ---- */

START_TEST(a_mean_of_the_file_is_of_the_samples_that_count)
{
    static const char *const way[] = {"--batch=5",
                                      "--batch=8",
                                      "--batch=8 --budget=min",
                                      "--batch=6 --microbatches=2",
                                      "--batch=3 --accumulate=2",
                                      "--batch=8 --microbatches=2 --stages=2"};
    MUST(COMPILE DATA "last-batch-loss/mean.onnx --loss=graph %s", way[_i]);
    MUST(RUN "--data " DATA "last-batch-loss/data.npz --dump d.npz");
    expect("d.npz", "loss", 0, 1.007954, 2e-6);
    expect_pair("param/w", -0.525545, 0.337741, 2e-6);
    MUST("./t --data " DATA "last-batch-loss/data.npz --eval");
    ck_assert_double_eq_tol(told("val_loss "), 1.007954, 2e-6);
}
END_TEST

START_TEST(a_sum_of_the_file_is_refused)
{
    static const char *const run[] = {"--epochs 1", "--eval"};
    MUST(COMPILE DATA "last-batch-loss/sum.onnx --loss=graph --batch=4");
    for (int k = 0; k < 2; k++) {
        ck_assert_int_ne(sh("./t --data " DATA "last-batch-loss/data.npz %s", run[k]), 0);
        ck_assert_msg(strstr(text, "the model computes its own loss") != NULL, "%s", text);
    }
    MUST("./t --data " DATA "last-batch-loss/data.npz --drop-last");
}
END_TEST

/* ---- other nodes ---- */

static const struct { const char *net, *node; double loss, w[2]; } mixing[] = {
    {"last-batch-statistics/centre", "node 2 'y' (Sub)", 1.121257, {0.233658, 1.160282}},
    {"last-batch-statistics/reverse", "node 1 'r' (Slice)", 1.981088, {0.539238, 0.854702}},
};

START_TEST(what_would_count_copies_is_refused)
{
    char data[512];
    snprintf(data, sizeof data, DATA "last-batch-statistics/data.npz");
    MUST(COMPILE DATA "%s.onnx --batch=5", mixing[_i].net);
    MUST(RUN "--data %s --dump d.npz", data);
    expect("d.npz", "loss", 0, mixing[_i].loss, 2e-6);
    expect_pair("param/w", mixing[_i].w[0], mixing[_i].w[1], 2e-6);
    MUST(RUN "--data %s --eval", data);
    MUST(COMPILE DATA "%s.onnx --batch=4", mixing[_i].net);
    MUST(RUN "--data %s --drop-last", data);
    MUST(RUN "--data %s", data);        /* one step, which is full */
    static const char *const more[] = {"--epochs 1 --steps 2", "--drop-last --eval",
                                       "--drop-last --val"};
    for (int k = 0; k < 3; k++) {
        ck_assert_int_ne(
            sh("./t --progress none --data %s %s %s", data, more[k], k == 2 ? data : ""), 0);
        ck_assert_msg(strstr(text, mixing[_i].node) != NULL
                          && strstr(text, "cannot be filled up") != NULL,
                      "%s", text);
        ck_assert_ptr_null(strstr(text, "loss"));
    }
}
END_TEST

/* loss, w: of two parts that each have their own; from the formula on halves of the batch. */
static const struct { const char *net, *node; double whole[3], own[3];
} cut[] = {
    {"statistics-parts/covariance",
     "node 3 'y' (MatMul)",
     {10.044430, 4.436537, -1.647522},
     {3.325584, 4.064508, -0.408532}},
    {"statistics-parts/centre",
     "node 2 'y' (Sub)",
     {0.786430, 0.859698, 1.728380},
     {0.768472, 0.856197, 1.731881}},
};

static void expect_three(const double right[3])
{
    expect("d.npz", "loss", 0, right[0], 3e-6);
    expect_pair("param/w", right[1], right[2], 3e-6);
}

START_TEST(parts_of_what_mixes_are_refused_or_own)
{
    static const char *const way[] = {"--microbatches=2", "--ranks=2",
                                      "--microbatches=2 --stages=2", "--ranks=8"};
    MUST(COMPILE DATA "%s.onnx --batch=8", cut[_i].net);
    MUST(RUN "--data " DATA "statistics-parts/data.npz --dump d.npz");
    expect_three(cut[_i].whole);
    for (int k = 0; k < 4; k++) {
        ck_assert_int_eq(sh(COMPILE DATA "%s.onnx --batch=8 %s", cut[_i].net, way[k]), 2);
        ck_assert_msg(strstr(text, cut[_i].node) != NULL
                          && strstr(text, "--mixed-parts=own") != NULL,
                      "%s", text);
    }
    for (int k = 0; k < 3; k++) {
        MUST(LS_BUILD "/lowerset compile -O0 --plan-effort=2 --optimizer=sgd:momentum=0 --lr=1 -o "
                      "t --mixed-parts=own " DATA "%s.onnx --batch=8 %s",
             cut[_i].net, way[k]);
        ck_assert_msg(strstr(text, "warning") != NULL
                          && strstr(text, "sees only its own samples") != NULL,
                      "%s", text);
        MUST(RUN "--data " DATA "statistics-parts/data.npz --dump d.npz");
        expect_three(cut[_i].own);
    }
    MUST(LS_BUILD "/lowerset compile -O0 --plan-effort=2 -o t " DATA
                  "%s.onnx --batch=4 --accumulate=2",
         cut[_i].net);
    ck_assert_msg(strstr(text, "--accumulate") != NULL
                      && strstr(text, "sees only its own samples") != NULL,
                  "%s", text);
    ck_assert_int_eq(sh(COMPILE DATA "%s.onnx --batch=8 --mixed-parts=own", cut[_i].net), 2);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("short_batches");
    tcase_add_loop_test(tc, a_batch_norm_takes_the_samples_that_count, 0, 6);
    tcase_add_loop_test(tc, a_part_that_is_short_has_its_own_statistics, 0, NPARTS);
    tcase_add_loop_test(tc, one_value_per_channel_is_refused, 0, 6);
    tcase_add_loop_test(tc, images_of_short_batches, 0, 3);
    tcase_add_loop_test(tc, a_mean_of_the_file_is_of_the_samples_that_count, 0, 6);
    tcase_add_test(tc, a_sum_of_the_file_is_refused);
    tcase_add_loop_test(tc, what_would_count_copies_is_refused, 0, 2);
    tcase_add_loop_test(tc, parts_of_what_mixes_are_refused_or_own, 0, 2);
    return run_command_lines("short_batches", tc, make_nets);
}
