/* tests/runtime/test_trainer.c -- whole runs of ls_trainer_main over a hand-written program. */
#include "tests/support/same_file.h"
#include "tests/support/tiny_run.h"

#include <fcntl.h>
#include <signal.h>

static LsArray member(LsFile *f, const char *path, const char *name)
{
    LsError e = {0};
    LsArray a;
    bool found;
    ck_assert_msg(ls_file_map(f, path, &e), "%s", e.text);
    ck_assert_msg(ls_npz_find(f, name, &a, &found, &e) && found, "%s: %s", name, e.text);
    return a;
}

static double value(const char *path, const char *name, int64_t i)
{
    LsFile f;
    LsArray a = member(&f, path, name);
    double v = ls_array_real(&a, i);
    ls_file_unmap(&f);
    return v;
}

/* ---- a reference in plain doubles ---- */

typedef struct Model { double w[TM][TF], b[TM], vw[TM][TF], vb[TM]; } Model;

static Model initial(void)
{
    Model m = {.b = {0.5, -0.5}};
    for (int k = 0; k < TM * TF; k++)
        m.w[k / TF][k % TF] = (double)(0.1f * (float)(k - 5));
    return m;
}

/* Loss and one SGD step with momentum 0.9 over the samples index[0..n). */
static double step(Model *m, const int *index, int n, double lr)
{
    double loss = 0, dw[TM][TF] = {{0}}, db[TM] = {0};
    for (int i = 0; i < n; i++) {
        const float *x = features + index[i] * TF;
        double y[TM], z = 0;
        for (int k = 0; k < TM; k++) {
            y[k] = m->b[k];
            for (int f = 0; f < TF; f++)
                y[k] += m->w[k][f] * (double)x[f];
            z += exp(y[k]);
        }
        loss += log(z) - y[labels[index[i]]];
        for (int k = 0; k < TM; k++) {
            double d = (exp(y[k]) / z - (double)(labels[index[i]] == k)) / n;
            db[k] += d;
            for (int f = 0; f < TF; f++)
                dw[k][f] += d * (double)x[f];
        }
    }
    for (int k = 0; k < TM; k++) {
        m->vb[k] = 0.9 * m->vb[k] + db[k];
        m->b[k] -= lr * m->vb[k];
        for (int f = 0; f < TF; f++) {
            m->vw[k][f] = 0.9 * m->vw[k][f] + dw[k][f];
            m->w[k][f] -= lr * m->vw[k][f];
        }
    }
    return loss / n;
}

START_TEST(training_follows_a_reference_through_a_partial_batch)
{
    static const int batch[3][4] = {{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}};
    Model m = initial();
    double loss = 0;
    make_data(SAMPLES);
    for (int epoch = 0; epoch < 2; epoch++)
        for (int k = 0; k < 3; k++)
            loss = step(&m, batch[k], k == 2 ? 2 : 4, 0.2);
    MUST(0, "--data data.npz --no-shuffle --epochs 2 --lr 0.2 --dump d.npz");
    ck_assert_double_eq_tol(value("d.npz", "loss", 0), loss, 1e-5);
    for (int k = 0; k < TM * TF; k++)
        ck_assert_double_eq_tol(value("d.npz", "param/w", k), m.w[k / TF][k % TF], 1e-5);
    for (int k = 0; k < TM; k++)
        ck_assert_double_eq_tol(value("d.npz", "param/b", k), m.b[k], 1e-5);
    TOLD(out_text, "epoch 2  step 6  loss ");
}
END_TEST

START_TEST(two_accumulated_batches_equal_one_large_batch)
{
    static const int all[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    Model m = initial();
    LsProgram p = tiny_program(2);
    make_data(8);
    step(&m, all, 8, 0.1);
    step(&m, all, 8, 0.1);
    ck_assert_int_eq(run_program(&p, "--data data.npz --no-shuffle --epochs 2 --dump d.npz"), 0);
    for (int k = 0; k < TM * TF; k++)
        ck_assert_double_eq_tol(value("d.npz", "param/w", k), m.w[k / TF][k % TF], 1e-5);
}
END_TEST

/* 4 + 2 samples in each update; the second batch counts half as much. */
START_TEST(an_update_that_ends_with_a_partial_batch_is_one_large_batch)
{
    static const int all[6] = {0, 1, 2, 3, 4, 5};
    Model m = initial();
    LsProgram p = tiny_program(2);
    make_data(6);
    step(&m, all, 6, 0.1);
    double loss = step(&m, all, 6, 0.1);
    ck_assert_int_eq(run_program(&p, "--data data.npz --no-shuffle --epochs 2 --dump d.npz"), 0);
    for (int k = 0; k < TM * TF; k++)
        ck_assert_double_eq_tol(value("d.npz", "param/w", k), m.w[k / TF][k % TF], 1e-5);
    ck_assert_double_eq_tol(value("d.npz", "loss", 0), loss, 1e-6);
}
END_TEST

/* 3 batches to an epoch, 2 to an update: the second update has the last batch of an epoch, of two
 * samples, and the first one of the next. */
START_TEST(an_update_may_lie_in_two_epochs)
{
    static const int update[3][8] = {
        {0, 1, 2, 3, 4, 5, 6, 7}, {8, 9, 0, 1, 2, 3}, {4, 5, 6, 7, 8, 9}};
    static const int samples[3] = {8, 6, 6};
    Model m = initial();
    LsProgram p = tiny_program(2);
    double loss[3];
    make_data(SAMPLES);
    for (int k = 0; k < 3; k++)
        loss[k] = step(&m, update[k], samples[k], 0.1);
    ck_assert_int_eq(run_program(&p, "--data data.npz --no-shuffle --epochs 2 --dump d.npz"), 0);
    for (int k = 0; k < TM * TF; k++)
        ck_assert_double_eq_tol(value("d.npz", "param/w", k), m.w[k / TF][k % TF], 1e-5);
    ck_assert_double_eq_tol(atof(strstr(out_text, "loss ") + 5),
                            (8 * loss[0] + 6 * loss[1]) / 14, 1e-6);
    TOLD(out_text, "epoch 1  step 2  loss");
    ck_assert_double_eq_tol(atof(strstr(out_text, "epoch 2  step 3  loss ") + 21), loss[2], 1e-6);
    ck_assert_int_eq(run_program(&p, "--data data.npz --no-shuffle --epochs 1"), 0);
    TOLD(out_text, "step 1 ");
    TOLD(err_text,
         "the last 1 of 3 batches make no update: an update takes 2 batches (--accumulate)");
}
END_TEST

/* Of 10 labels, 1, 4 and 2 count in the batches. */
START_TEST(losses_are_means_over_the_labels_that_count)
{
    static const int counted[7] = {1, 4, 5, 6, 7, 8, 9};
    LsProgram p = tiny_weighed(1);
    Model m = initial();
    make_data(SAMPLES);
    labels[0] = labels[2] = labels[3] = -1;
    write_npz("some.npz", 2, (NpzItem[]){{"x", LS_F32, 3, {SAMPLES, TC, TS}, features},
                                         {"label", LS_I64, 1, {SAMPLES}, labels}});
    double loss = step(&m, counted, 7, 0);
    ck_assert_int_eq(run_program(&p, "--data some.npz --eval"), 0);
    ck_assert_double_eq_tol(atof(strstr(out_text, "val_loss ") + 9), loss, 1e-6);
    TOLD(out_text, "/7)");
    ck_assert_int_eq(run_program(&p, "--data some.npz --lr 0 --val some.npz --log log.jsonl"), 0);
    ck_assert_double_eq_tol(atof(strstr(out_text, "  loss ") + 7), loss, 1e-6);
    ck_assert_double_eq_tol(atof(strstr(out_text, "val_loss ") + 9), loss, 1e-6);
    p = tiny_weighed(3);
    ck_assert_int_eq(run_program(&p, "--data some.npz --lr 0 --no-shuffle --dump d.npz"), 0);
    ck_assert_double_eq_tol(value("d.npz", "loss", 0), loss, 1e-6);
    ck_assert_ptr_null(strstr(err_text, "no label counts"));
}
END_TEST

START_TEST(a_mean_over_no_label_is_0_and_told)
{
    LsProgram p = tiny_weighed(2);
    make_data(SAMPLES);
    for (int k = 0; k < 8; k++)
        labels[k] = -1;
    write_npz("few.npz", 2, (NpzItem[]){{"x", LS_F32, 3, {8, TC, TS}, features},
                                        {"label", LS_I64, 1, {8}, labels}});
    ck_assert_int_eq(run_program(&p, "--data few.npz --epochs 3 --val few.npz"), 0);
    TOLD(out_text, "step 1  loss 0  val_loss 0\n");
    TOLD(err_text, "step 1: no label counts");
    ck_assert_ptr_null(strstr(err_text, "step 2: no label counts"));
}
END_TEST

START_TEST(a_loss_that_is_a_sum_is_added_up)
{
    LsProgram p = tiny_program(3);
    make_data(SAMPLES);
    Model m = initial();
    double sum = 0;
    for (int from = 0; from < SAMPLES; from += 4)       /* means of the program's losses */
        sum += step(&m, (const int[]){from, from + 1, from + 2, from + 3}, from < 8 ? 4 : 2, 0);
    p.target.sums = true;
    ck_assert_int_eq(run_program(&p, "--data data.npz --eval"), 0);
    ck_assert_double_eq_tol(atof(strstr(out_text, "val_loss ") + 9), sum, 1e-5);
    ck_assert_int_eq(run_program(&p, "--data data.npz --lr 0 --no-shuffle"), 0);
    ck_assert_double_eq_tol(atof(strstr(out_text, "  loss ") + 7), sum, 1e-5);
}
END_TEST

/* 10 samples, batches of 4. */
START_TEST(a_last_batch_that_copies_would_change_is_refused)
{
    LsProgram p = tiny_program(1);
    p.mixing.train = "node 3 'm' (Sub) reads a statistic of all samples";
    make_data(SAMPLES);
    ck_assert_int_ne(run_program(&p, "--data data.npz"), 0);
    TOLD(err_text, "10 samples fill no whole number of batches of 4");
    TOLD(err_text, "node 3 'm' (Sub) reads a statistic of all samples. Leave it out (--drop-last)");
    ck_assert_int_eq(run_program(&p, "--data data.npz --drop-last"), 0);
    ck_assert_int_eq(run_program(&p, "--data data.npz --steps 2"),
                     0); /* the run does not come to it */
    ck_assert_int_ne(run_program(&p, "--data data.npz --steps 3"), 0);
    ck_assert_int_eq(run_program(&p, "--data data.npz --val data.npz --drop-last"), 0);
    make_data(8);
    ck_assert_int_eq(run_program(&p, "--data data.npz"), 0);
}
END_TEST

START_TEST(data_that_copies_would_change_are_not_evaluated)
{
    LsProgram p = tiny_program(1);
    p.mixing.eval = "node 3 'm' (Sub) reads a statistic of all samples";
    make_data(SAMPLES);
    ck_assert_int_ne(run_program(&p, "--data data.npz --eval"), 0);
    TOLD(err_text, "batches of 4, which do not divide 10 samples");
    ck_assert_int_ne(run_program(&p, "--data data.npz --val data.npz"), 0);
    ck_assert_int_eq(run_program(&p, "--data data.npz"), 0);
    make_data(8);
    ck_assert_int_eq(run_program(&p, "--data data.npz --eval"), 0);
}
END_TEST

START_TEST(a_norm_of_one_value_is_refused)
{
    LsProgram p = tiny_program(1);
    p.mixing.norm = "bn";
    p.mixing.each = 1;
    make_data(9);
    ck_assert_int_ne(run_program(&p, "--data data.npz"), 0);
    TOLD(err_text, "expected more than 1 value per channel when training: batch norm 'bn'");
    ck_assert_int_eq(run_program(&p, "--data data.npz --drop-last"), 0);
    ck_assert_int_eq(run_program(&p, "--data data.npz --steps 2"), 0);
    ck_assert_int_eq(run_program(&p, "--data data.npz --eval"), 0);
    p.mixing.each = 2;
    ck_assert_int_eq(run_program(&p, "--data data.npz"), 0);
    p.mixing.each = 1;
    make_data(SAMPLES);
    ck_assert_int_eq(run_program(&p, "--data data.npz"), 0);
}
END_TEST

START_TEST(a_dump_has_gradients_before_and_parameters_after_the_update)
{
    LsFile f;
    make_data(4);
    MUST(0, "--data data.npz --no-shuffle --steps 1 --dump d.npz --lr 0.5");
    for (int k = 0; k < TM * TF; k++) {
        double before = (double)(0.1f * (float)(k - 5)), g = value("d.npz", "grad/w", k);
        ck_assert_double_eq_tol(value("d.npz", "param/w", k), before - 0.5 * g, 1e-6);
    }
    ck_assert_double_eq_tol(value("d.npz", "stat/mean", 0), 0.9 * 2 + 0.1 * features[0], 1e-6);
    LsArray w = member(&f, "d.npz", "param/w");
    ck_assert_int_eq(w.rank, 3);
    ck_assert(w.dim[0] == TM && w.dim[1] == TC && w.dim[2] == TS && w.type == LS_F32);
    ls_file_unmap(&f);
}
END_TEST

START_TEST(a_dump_has_the_values_of_a_result_that_is_an_input)
{
    static const LsWatch watch[] = {
        {TENSOR("x", true, 3, TB, TC, TS), .at = {LS_AT_INPUT, 0}}, "out/x", 0, false, 0}};
    LsProgram p = tiny_program(1);
    make_data(8);
    p.phase.train.watch = watch;
    p.phase.train.nwatch = 1;
    ck_assert_int_eq(run_program(&p, "--data data.npz --no-shuffle --steps 2 --dump d.npz"), 0);
    for (int k = 0; k < TB * TF; k++)
        ck_assert_double_eq(value("d.npz", "out/x", k), (double)features[TB * TF + k]);
}
END_TEST

START_TEST(a_dump_says_which_gradients_it_lacks)
{
    LsProgram p = tiny_program(1);
    make_data(4);
    MUST(0, "--data data.npz --steps 1 --dump d.npz");
    ck_assert_ptr_null(strstr(err_text, "will lack"));
    p.napplied = 2;
    ck_assert_int_eq(run_program(&p, "--data data.npz --steps 1 --dump d.npz"), 0);
    TOLD(err_text, "d.npz will lack 2 gradients");
    TOLD(err_text, "--store-gradients");
}
END_TEST

START_TEST(a_resumed_run_equals_an_unbroken_one_bit_for_bit)
{
    make_data(SAMPLES);
    MUST(0, "--data data.npz --epochs 5 --schedule=cosine:warmup=3 --dump whole.npz --seed 7");
    /* steps 7 of 15, in the middle of the third epoch */
    MUST(0,
         "--data data.npz --epochs 5 --schedule=cosine:warmup=3 --save ck --save-every 1 --seed 7");
    MUST(0, "--data data.npz --epochs 5 --schedule=cosine:warmup=3 --dump rest.npz "
            "--resume ck/step-000000007.safetensors");
    check_same_file("whole.npz", "rest.npz");
    TOLD(err_text, "step 7, epoch 3");
}
END_TEST

START_TEST(shuffling_depends_on_the_seed_and_nothing_else)
{
    make_data(SAMPLES);
    MUST(0, "--data data.npz --epochs 3 --seed 1 --dump a.npz --workers 0 --threads 1");
    MUST(0, "--data data.npz --epochs 3 --seed 1 --dump b.npz --workers 3 --threads 2");
    check_same_file("a.npz", "b.npz");
    MUST(0, "--data data.npz --epochs 3 --seed 2 --dump c.npz");
    ck_assert_double_ne(value("a.npz", "param/w", 0), value("c.npz", "param/w", 0));
}
END_TEST

START_TEST(resume_auto_passes_over_a_damaged_checkpoint)
{
    make_data(SAMPLES);
    MUST(0, "--data data.npz --epochs 4 --save ck --keep-last 2 --dump whole.npz");
    ck_assert_int_ne(access("ck/step-000000003.safetensors", F_OK), 0);
    ck_assert_int_eq(access("ck/step-000000009.safetensors", F_OK), 0);
    ck_assert_int_eq(truncate("ck/step-000000012.safetensors", 700), 0);
    MUST(0, "--data data.npz --epochs 4 --save ck --resume auto --dump rest.npz");
    TOLD(err_text, "step-000000012.safetensors");
    TOLD(err_text, "truncated");
    check_same_file("whole.npz", "rest.npz");
}
END_TEST

START_TEST(exporting_patches_the_weights_and_nothing_else)
{
    LsFile f;
    LsError e = {0};
    float w[TM * TF];
    make_data(4);
    MUST(0, "--data data.npz --steps 3 --dump d.npz --export trained.onnx --no-export-notes");
    ck_assert(ls_file_map(&f, "trained.onnx", &e));
    ck_assert_uint_eq(f.size, TINY_ONNX);
    memcpy(w, f.data + TINY_W, sizeof w);
    for (int k = 0; k < TM * TF; k++)
        ck_assert_double_eq((double)w[k], value("d.npz", "param/w", k));
    for (size_t k = 0; k < f.size; k++)
        if (k < TINY_W || k >= TINY_MEAN + 4 || (k >= TINY_W + sizeof w && k < TINY_B))
            ck_assert_int_eq(f.data[k], '#');
    ls_file_unmap(&f);
}
END_TEST

START_TEST(evaluation_counts_every_sample_once)
{
    Model m = initial();
    int right = 0;
    double loss = 0;
    make_data(SAMPLES);
    for (int n = 0; n < SAMPLES; n++) {
        Model copy = m;
        double y[TM] = {m.b[0], m.b[1]};
        for (int k = 0; k < TM * TF; k++)
            y[k / TF] += m.w[k / TF][k % TF] * (double)features[n * TF + k % TF];
        right += (y[1] > y[0]) == labels[n];
        loss += step(&copy, &n, 1, 0);
    }
    MUST(0, "--data data.npz --eval --log log.jsonl");
    char want[64], *told = strstr(out_text, "val_loss ");
    snprintf(want, sizeof want, "(%d/%d)", right, SAMPLES);
    TOLD(out_text, want);
    ck_assert_ptr_nonnull(told);
    ck_assert_double_eq_tol(atof(told + 9), loss / SAMPLES, 1e-5);
}
END_TEST

START_TEST(an_evaluation_can_be_dumped)
{
    make_data(4);
    MUST(0, "--data data.npz --eval --dump d.npz");
    for (int n = 0; n < 4; n++)
        for (int m = 0; m < TM; m++) {
            double y = m ? -0.5 : 0.5;
            for (int f = 0; f < TF; f++)
                y += (double)(0.1f * (float)(m * TF + f - 5)) * (double)features[n * TF + f];
            ck_assert_double_eq_tol(value("d.npz", "out/y", n * TM + m), y, 1e-6);
        }
}
END_TEST

START_TEST(the_log_has_a_line_for_every_step_and_evaluation)
{
    char text[65536];
    int lines = 0;
    make_data(8);
    MUST(0,
         "--data data.npz --val data.npz --epochs 2 --log log.jsonl --lr 0.25 --schedule linear");
    tiny_read("log.jsonl", text, sizeof text);
    for (char *p = text; *p; p++)
        lines += *p == '\n';
    ck_assert_int_eq(lines, 1 + 4 + 2);
    TOLD(text, "\"plan\":\"0123abcd\"");
    TOLD(text, "\"step\":4,\"epoch\":2");
    TOLD(text, "\"lr\":0.0625}");
    TOLD(text, "\"val_accuracy\":");
}
END_TEST

/* ---- signals ---- */

static void interrupt_at_5(const LsRun *run)
{
    if (run->update == 5)
        raise(SIGINT);
}

START_TEST(an_interrupt_finishes_the_step_saves_and_exits_130)
{
    make_data(SAMPLES);
    MUST(0, "--data data.npz --epochs 5 --dump whole.npz");
    tiny_spy = interrupt_at_5;
    MUST(130, "--data data.npz --epochs 5 --save ck");
    TOLD(err_text, "--resume=ck/step-000000005.safetensors");
    MUST(130, "--data data.npz --epochs 5 --export out.onnx");
    TOLD(err_text, "--resume=out.onnx.interrupted.safetensors");
    tiny_spy = NULL;
    MUST(0, "--data data.npz --epochs 5 --resume ck/step-000000005.safetensors --dump rest.npz");
    check_same_file("whole.npz", "rest.npz");
    MUST(0,
         "--data data.npz --epochs 5 --resume out.onnx.interrupted.safetensors --dump rest.npz");
    check_same_file("whole.npz", "rest.npz");
}
END_TEST

/* ---- values that are not finite ---- */

START_TEST(a_loss_that_is_not_finite_ends_the_run_with_7)
{
    make_data(4);
    MUST(7, "--data data.npz --epochs 100 --lr 1e38");
    TOLD(err_text, "--check-numerics");
}
END_TEST

START_TEST(check_numerics_names_the_first_node)
{
    make_data(4);
    features[3] = NAN;
    write_npz("nan.npz", 2, (NpzItem[]){{"x", LS_F32, 3, {4, TC, TS}, features},
                                        {"label", LS_I64, 1, {4}, labels}});
    MUST(0, "--data data.npz --epochs 3 --check-numerics");
    MUST(7, "--data nan.npz --check-numerics");
    TOLD(err_text, "node 'fc' (Gemm) is the first");
    MUST(7, "--data data.npz --epochs 100 --lr 1e38 --check-numerics");
    TOLD(err_text, "the first to give an infinity");
}
END_TEST

/* Ten samples; element `at` of sample `sample` is v. */
static void write_bad(const char *path, int sample, int at, float v)
{
    make_data(SAMPLES);
    features[sample * TF + at] = v;
    write_npz(path, 2, (NpzItem[]){{"x", LS_F32, 3, {SAMPLES, TC, TS}, features},
                                   {"label", LS_I64, 1, {SAMPLES}, labels}});
}

START_TEST(data_that_are_not_finite_are_called_that)
{
    write_bad("nan.npz", 9, 3, NAN);
    MUST(7, "--data nan.npz --log log");
    TOLD(err_text,
         "the loss is nan, because the data are not finite: nan.npz: sample 9: 'x' has nan "
         "at element 3");
    MUST(7, "--data nan.npz --no-shuffle --workers 0");
    TOLD(err_text, "step 3: the loss is nan");
    TOLD(err_text, "nan.npz: sample 9");
    MUST(7, "--data nan.npz --check-numerics");
    TOLD(err_text, "node 'fc' (Gemm) is the first");
    TOLD(err_text, "the data are not finite: nan.npz: sample 9");
    write_bad("inf.npz", 2, 5, -INFINITY);
    MUST(7, "--data inf.npz");
    TOLD(err_text, "inf.npz: sample 2: 'x' has -inf at element 5");
    write_bad("large.npz", 2, 5, 1e38f);
    MUST(7, "--data large.npz --scale 1e10");
    TOLD(err_text, "large.npz: sample 2: 'x' has 1e+38 at element 5, which becomes inf");
    MUST(0, "--data data.npz --val nan.npz --epochs 2");
    TOLD(err_text, "note: the data to evaluate on are not finite: nan.npz: sample 9");
    ck_assert_ptr_null(strstr(strstr(err_text, "not finite") + 1, "not finite"));
    MUST(7, "--data data.npz --epochs 100 --lr 1e38");
    ck_assert_ptr_null(strstr(err_text, "the data are not finite"));
}
END_TEST

/* ---- the plan ---- */

START_TEST(measured_memory_equals_the_plan)
{
    make_data(4);
    MUST(0, "--data data.npz --steps 2 --measure");
    TOLD(out_text, "\"arena_bytes\":328,\"live_peak\":328,\"addressed\":328,\"touched\":328");
}
END_TEST

/* Once, after 20 updates; between two predictions by their ratio. */
START_TEST(a_run_tells_its_pace_beside_the_predicted_one)
{
    static const struct { int threads; const char *text;
    } row[] = {{1, "predicted were 8 ms (abacus, 1 thread)\n"},
               {2, "predicted were 4 ms (abacus, 2 threads)\n"},
               {3, "predicted were 2.667 ms (abacus, 3 threads)\n"},
               {4, "predicted were 2 ms (abacus, 4 threads)\n"},
               {64, "predicted were 2 ms (abacus, 64 threads)\n"}};
    LsProgram p = tiny_program(1);
    char line[100];
    make_data(SAMPLES);
    run_program(&p, "--data data.npz --epochs 30");
    ck_assert_ptr_null(strstr(err_text, "a step takes"));
    p.about.predicted = (LsPredicted){"abacus", 3, {8e6, 4e6, 2e6}};
    for (size_t k = 0; k < sizeof row / sizeof row[0]; k++) {
        snprintf(line, sizeof line, "--data data.npz --epochs 30 --threads %d", row[k].threads);
        ck_assert_int_eq(run_program(&p, line), 0);
        TOLD(err_text, "note: a step takes ");
        TOLD(err_text, row[k].text);
        ck_assert_ptr_null(strstr(strstr(err_text, "a step takes") + 1, "a step takes"));
    }
    p.about.predicted.n = 1;
    run_program(&p, "--data data.npz --epochs 30 --steps 20 --threads 3");
    TOLD(err_text, "predicted were 8 ms (abacus)\n");
    run_program(&p, "--data data.npz --epochs 30 --steps 19");
    ck_assert_ptr_null(strstr(err_text, "a step takes"));
    run_program(&p, "--data data.npz --epochs 30 --progress none");
    ck_assert_ptr_null(strstr(err_text, "a step takes"));
    p.division.batches = 2;
    run_program(&p, "--data data.npz --epochs 60 --steps 20");
    TOLD(err_text, "predicted were 16 ms (abacus)\n");
}
END_TEST

START_TEST(the_plan_and_the_trace_list_every_step)
{
    char text[65536];
    make_data(4);
    MUST(0, "--print-plan");
    TOLD(out_text, "fc dw");
    MUST(0, "--data data.npz --epochs 9 --trace t.json --profile p.json");
    tiny_read("t.json", text, sizeof text);
    TOLD(text, "\"name\":\"fc dw\",\"cat\":\"Gemm\"");
    TOLD(text, "\"run\":8");
    ck_assert_ptr_null(strstr(text, "\"run\":4"));
    tiny_read("p.json", text, sizeof text);
    TOLD(text, "\"runs\":9");
    TOLD(text, "\"node\":5,\"name\":\"b\",\"op\":\"SGD\",\"elements\":[],\"types\":[],\"again\":"
               "false,\"ns\":");
}
END_TEST

/* ---- command line ---- */

START_TEST(wrong_usage_exits_2_and_says_what_is_meant)
{
    static const struct { const char *command, *part; } bad[] = {
        {"--epoch 3", "did you mean --epochs?"},
        {"--budget 2GiB --data x.npz", "lowerset compile --budget"},
        {"--batch=8", "lowerset compile --batch"},
        {"--data", "--data needs SPEC"},
        {"--data x --epochs 0", "--epochs=0: must be more than 0"},
        {"--data x --lr fast", "a number of at least 0"},
        {"data.npz", "not an option"},
        {"--qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq", "unknown option"},
        {"", "no data"},
        {"--data x --resume auto", "--save DIR"},
        {"--data x --progress=fancy", "auto, bar, plain or none"},
        {"--data synthetic --schedule=cosine:warm=3", "warmup=N"},
        {"--data synthetic:0", "synthetic:SAMPLES"},
        {"--data synthetic:9999999999999999999", "from 1 to 2^60"},
        {"--data synthetic:99999999 --epochs 999999999999", "more batches than can be counted"},
        {"--data synthetic --epochs 99999999999999999999", "more batches than can be counted"},
        {"--data x --lr inf", "a number of at least 0"},
        {"--data x --lr nan", "a number of at least 0"},
        {"--data data.npz --scale nan", "must be a number other than 0"},
        {"--data data.npz --scale inf", "must be a number other than 0"},
        {"--data data.npz --mean nan", "one number, or 3"},
        {"--data data.npz --std inf", "one number, or 3"},
        {"--data synthetic --scale 2", "--scale: no input is read as reals from a file"},
        {"--data synthetic --mean 2", "--mean: no input"},
        {"--data synthetic --schedule=constant:warmup=1e300", "warmup=N"},
        {"--data synthetic --schedule=constant:warmup=2.5", "warmup=N"},
        {"--data synthetic --schedule=step:every=1e30", "every=N"},
        {"--data synthetic --schedule=step:every=2,gamma=inf", "gamma=F"},
        {"--data synthetic --save ck --keep-last 1024", "at most 1023"},
        {"--data synthetic --eval=yes", "takes no value"},
    };
    make_data(SAMPLES);
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
        MUST(2, bad[k].command);
        TOLD(err_text, bad[k].part);
    }
}
END_TEST

START_TEST(unreadable_data_exit_8_and_name_the_file)
{
    make_data(4);
    write_bytes("empty.npz", "", 0);
    write_bytes("x.gz", "\x1f\x8b\x08\0\0\0\0\0", 8);
    write_bytes("junk.dat", "hello, world", 12);
    static const struct { const char *command, *part; } bad[] = {
        {"--data nowhere.npz", "nowhere.npz: No such file"},
        {"--data empty.npz", "empty.npz: the file is empty"},
        {"--data x.gz,x.gz", "gunzip"},
        {"--data junk.dat,junk.dat", "junk.dat: format not recognised"},
        {"--data .", "not a regular file"},
        {"--data data.npz --resume data.npz", "data.npz: damaged checkpoint"},
        {"--data synthetic:3 --drop-last", "do not fill a batch"},
    };
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
        MUST(8, bad[k].command);
        TOLD(err_text, bad[k].part);
    }
}
END_TEST

START_TEST(a_label_out_of_range_is_an_error_of_the_data)
{
    make_data(4);
    labels[2] = 2;
    write_npz("bad.npz", 2, (NpzItem[]){{"x", LS_F32, 3, {4, TC, TS}, features},
                                        {"label", LS_I64, 1, {4}, labels}});
    MUST(8, "--data bad.npz --workers 0");
    TOLD(err_text, "bad.npz: sample 2: label 2 is not one of the model's 2 classes");
    MUST(8, "--data bad.npz --workers 3 --epochs 5");
    TOLD(err_text, "label 2 is not one of");
}
END_TEST

START_TEST(a_result_that_cannot_be_written_exits_1)
{
    make_data(4);
    MUST(1, "--data data.npz --dump nowhere/d.npz");
    TOLD(err_text, "nowhere/d.npz");
    MUST(1, "--data data.npz --log nowhere/log");
}
END_TEST

START_TEST(help_comes_from_the_same_table_as_the_parser)
{
    MUST(0, "--help");
    for (char *p = out_text; (p = strstr(p, "\n  --")) != NULL; p++) {
        char name[64], command[128];
        sscanf(p, " --%63[a-z-]", name);
        snprintf(command, sizeof command, "--%s=1 --help", name);
        int code = run(command);
        ck_assert_msg(code == 0 || strstr(err_text, "takes no value") ||
                          strstr(err_text, "auto, bar"),
                      "--%s: %s", name, err_text);
        MUST(0, "--help");
    }
    MUST(0, "--version");
    TOLD(out_text, "0123abcd");
}
END_TEST

START_TEST(synthetic_data_are_learned)
{
    MUST(0, "--data synthetic:64 --epochs 1 --no-shuffle --lr 0.01");
    double first = atof(strstr(out_text, "loss ") + 5);
    MUST(0, "--data synthetic:64 --epochs 30 --lr 0.1 --val synthetic:64");
    char *last = strstr(out_text, "epoch 30");
    ck_assert_double_lt(atof(strstr(last, "loss ") + 5), 0.8 * first);
}
END_TEST

int main(void)
{
    static const TTest *test[64];
    int n = 0;
    test[n++] = training_follows_a_reference_through_a_partial_batch;
    test[n++] = two_accumulated_batches_equal_one_large_batch;
    test[n++] = an_update_that_ends_with_a_partial_batch_is_one_large_batch;
    test[n++] = an_update_may_lie_in_two_epochs;
    test[n++] = losses_are_means_over_the_labels_that_count;
    test[n++] = a_mean_over_no_label_is_0_and_told;
    test[n++] = a_loss_that_is_a_sum_is_added_up;
    test[n++] = a_last_batch_that_copies_would_change_is_refused;
    test[n++] = data_that_copies_would_change_are_not_evaluated;
    test[n++] = a_norm_of_one_value_is_refused;
    test[n++] = a_dump_has_gradients_before_and_parameters_after_the_update;
    test[n++] = a_dump_has_the_values_of_a_result_that_is_an_input;
    test[n++] = a_dump_says_which_gradients_it_lacks;
    test[n++] = a_resumed_run_equals_an_unbroken_one_bit_for_bit;
    test[n++] = shuffling_depends_on_the_seed_and_nothing_else;
    test[n++] = resume_auto_passes_over_a_damaged_checkpoint;
    test[n++] = exporting_patches_the_weights_and_nothing_else;
    test[n++] = evaluation_counts_every_sample_once;
    test[n++] = an_evaluation_can_be_dumped;
    test[n++] = the_log_has_a_line_for_every_step_and_evaluation;
    test[n++] = an_interrupt_finishes_the_step_saves_and_exits_130;
    test[n++] = a_loss_that_is_not_finite_ends_the_run_with_7;
    test[n++] = check_numerics_names_the_first_node;
    test[n++] = data_that_are_not_finite_are_called_that;
    test[n++] = measured_memory_equals_the_plan;
    test[n++] = a_run_tells_its_pace_beside_the_predicted_one;
    test[n++] = the_plan_and_the_trace_list_every_step;
    test[n++] = wrong_usage_exits_2_and_says_what_is_meant;
    test[n++] = unreadable_data_exit_8_and_name_the_file;
    test[n++] = a_label_out_of_range_is_an_error_of_the_data;
    test[n++] = a_result_that_cannot_be_written_exits_1;
    test[n++] = help_comes_from_the_same_table_as_the_parser;
    test[n++] = synthetic_data_are_learned;
    return run_in_folder("trainer", n, test);
}
