/* tests/runtime/test_skipped_updates.c -- a trainer whose loss is scaled: bad steps change nothing
 * but the scale, they are told and logged, and too many in a row end the run. */
#include "tests/support/tiny_run.h"

static void trains(int code, int accumulate, const char *command)
{
    LsProgram p = tiny_scaled(accumulate);
    int got = run_program(&p, command);
    ck_assert_msg(got == code, "%s: exit %d, not %d:\n%s%s", command, got, code, out_text,
                  err_text);
}

static double value(const char *path, const char *name, int64_t k)
{
    LsFile f;
    LsArray a;
    LsError e = {0};
    bool found = false;
    ck_assert_msg(ls_file_map(&f, path, &e) && ls_npz_find(&f, name, &a, &found, &e) && found,
                  "%s: no %s: %s", path, name, e.text);
    double v = ls_array_real(&a, k);
    ls_file_unmap(&f);
    return v;
}

/* Parameters, moments and (rows: 5) statistics have the same bits in both dumps. */
static void check_kept(const char *a, const char *b, size_t rows)
{
    static const struct { const char *name; int n;
    } row[] = {{"param/w", TM * TF},
               {"param/b", TM},
               {"moment/w.m", TM * TF},
               {"moment/b.m", TM},
               {"stat/mean", 1}};
    for (size_t r = 0; r < rows; r++)
        for (int k = 0; k < row[r].n; k++)
            ck_assert_msg(value(a, row[r].name, k) == value(b, row[r].name, k),
                          "%s[%d]: %.9g, not %.9g", row[r].name, k, value(b, row[r].name, k),
                          value(a, row[r].name, k));
}

static const char *text_of(const char *path)
{
    static char text[1 << 14];
    tiny_read(path, text, sizeof text);
    return text;
}

START_TEST(a_bad_step_moves_only_the_scale)
{
    make_data(8);
    tiny_bad_steps = 1u << 1;
    trains(0, 1, "--data data.npz --steps 1 --dump one.npz --progress none");
    ck_assert_str_eq(err_text, "");
    trains(0, 1, "--data data.npz --steps 2 --dump two.npz --log log --progress none");
    check_kept("one.npz", "two.npz", 5);
    ck_assert_str_eq(err_text, "step 2: scale 8 -> 4, update skipped\n");
    TOLD(text_of("log"), "\"scale_before\":8,\"scale\":4,\"skipped\":true}");
    ck_assert_double_eq(value("one.npz", "moment/loss_scale", 0), 8);
    ck_assert_double_eq(value("two.npz", "moment/loss_scale", 0), 4);
    ck_assert_double_eq(value("two.npz", "moment/loss_scale.skips", 0), 1);
    trains(0, 1, "--data data.npz --steps 3 --epochs 9 --dump three.npz");
    ck_assert_double_ne(value("two.npz", "param/w", 0), value("three.npz", "param/w", 0));
}
END_TEST

START_TEST(a_bad_batch_voids_all_batches_of_its_update)
{
    make_data(SAMPLES);
    for (int k = 0; k < 3; k++) {
        tiny_bad_steps = 1u << (3 + k);
        trains(0, 3, "--data data.npz --steps 1 --epochs 9 --dump one.npz");
        trains(0, 3, "--data data.npz --steps 2 --epochs 9 --dump two.npz");
        TOLD(err_text, "step 2: scale 8 -> 4, update skipped");
        check_kept("one.npz", "two.npz", 4);       /* statistics move with every batch here */
    }
}
END_TEST

typedef struct Seen { int64_t n, update[8]; double lr[8]; } Seen;
static Seen seen;

static void note(const LsRun *run)
{
    seen.update[seen.n % 8] = run->update;
    seen.lr[seen.n % 8] = run->lr;
    seen.n++;
    write_bytes("seen", &seen, sizeof seen);
}

START_TEST(neither_the_count_of_updates_nor_the_schedule_moves)
{
    static const int64_t want[] = {1, 2, 2, 2, 3, 4};
    make_data(SAMPLES);
    tiny_bad_steps = 1u << 1 | 1u << 2;
    LsProgram p = tiny_scaled(1);
    tiny_spy = note;
    ck_assert_int_eq(
        run_program(&p, "--data data.npz --epochs 2 --lr 1 --schedule step:every=1,gamma=0.5"), 0);
    TOLD(out_text, "epoch 2  step 6  ");
    tiny_spy = NULL;
    FILE *f = fopen("seen", "rb");
    ck_assert(f != NULL && fread(&seen, sizeof seen, 1, f) == 1);
    fclose(f);
    ck_assert_int_eq(seen.n, 6);
    for (int k = 0; k < 6; k++) {
        ck_assert_int_eq(seen.update[k], want[k]);
        ck_assert_double_eq(seen.lr[k], ldexp(1, 1 - (int)want[k]));
    }
}
END_TEST

START_TEST(a_resumed_run_has_the_scale_and_the_skipped_updates)
{
    make_data(SAMPLES);
    tiny_bad_steps = 1u << 1 | 1u << 5;
    trains(
        0, 1,
        "--data data.npz --epochs 4 --save ck --save-every 1 --schedule linear --dump whole.npz");
    trains(0, 1,
           "--data data.npz --epochs 4 --resume ck/step-000000003.safetensors --schedule linear "
           "--dump rest.npz");
    check_kept("whole.npz", "rest.npz", 5);
    ck_assert_double_eq(value("rest.npz", "moment/loss_scale", 0),
                        value("whole.npz", "moment/loss_scale", 0));
    ck_assert_double_eq(value("rest.npz", "moment/loss_scale.skips", 0), 2);
}
END_TEST

START_TEST(growth_is_logged_and_not_told)
{
    make_data(SAMPLES);
    tiny_bad_steps = 0;
    trains(0, 1, "--data data.npz --epochs 2 --log log --progress none");
    ck_assert_str_eq(err_text, "");
    TOLD(text_of("log"), "{\"step\":4,");
    TOLD(text_of("log"), "\"scale_before\":8,\"scale\":16,\"skipped\":false}");
}
END_TEST

START_TEST(dumped_gradients_are_those_of_the_loss)
{
    make_data(4);
    trains(0, 1, "--data data.npz --steps 1 --dump scaled.npz");
    MUST(0, "--data data.npz --steps 1 --dump plain.npz");
    for (int k = 0; k < TM * TF; k++)
        ck_assert_double_eq(value("scaled.npz", "grad/w", k), value("plain.npz", "grad/w", k));
    trains(0, 1, "--data data.npz --check-gradients=5");
}
END_TEST

START_TEST(too_many_in_a_row_end_the_run_and_the_node_is_named)
{
    make_data(SAMPLES);
    tiny_wrong = TINY_NOT_FINITE;
    trains(7, 1, "--data data.npz --epochs 9 --max-skipped 4");
    TOLD(err_text, "step 4: 4 updates in a row were skipped");
    TOLD(err_text, "'fc dw' (Gemm) is the first to give a value that is not finite: nan");
    trains(7, 1, "--data data.npz --epochs 999");
    TOLD(err_text, "step 100: 100 updates in a row were skipped");
    tiny_wrong = TINY_RIGHT;
    tiny_bad_steps = 0x77777777;        /* never four in a row */
    trains(0, 1, "--data data.npz --epochs 9 --max-skipped 4 --check-numerics");
    TOLD(err_text, "step 1: scale 8 -> 4, update skipped; node 'fc dw' (Gemm) is the first");
    tiny_bad_steps = 0;
}
END_TEST

#ifndef LS_TINY_CUDA            /* a step of the host's own */
static LsStep step[5];

static void infinite_loss(LsRun *run, void *const arg[])
{
    tiny_loss(run, arg);
    *(float *)arg[2] = INFINITY;
}

START_TEST(an_update_with_an_infinite_loss_is_an_error)
{
    make_data(SAMPLES);
    LsProgram p = tiny_scaled(1);
    memcpy(step, p.phase.train.step, sizeof step);
    step[1].run = infinite_loss;
    p.phase.train.step = step;
    ck_assert_int_eq(run_program(&p, "--data data.npz"), 7);
    TOLD(err_text, "step 1: the loss is inf; training has diverged");
}
END_TEST
#endif

START_TEST(a_loss_that_is_not_finite_is_no_error_if_the_update_is_skipped)
{
    make_data(SAMPLES);
    features[5 * TF] = NAN;             /* the second batch of an epoch */
    write_npz("nan.npz", 2, (NpzItem[]){{"x", LS_F32, 3, {SAMPLES, TC, TS}, features},
                                        {"label", LS_I64, 1, {SAMPLES}, labels}});
    trains(0, 1, "--data nan.npz --no-shuffle --epochs 2");
    TOLD(err_text, "step 2: scale 8 -> 4, update skipped\nstep 5: scale 4 -> 2, update skipped\n");
    ck_assert_ptr_null(
        strstr(out_text, "nan")); /* the loss of an epoch is that of its other batches */
    trains(7, 1, "--data nan.npz --no-shuffle --max-skipped 1");
    TOLD(err_text, "because the data are not finite: nan.npz: sample 5");
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        a_bad_step_moves_only_the_scale,
        a_bad_batch_voids_all_batches_of_its_update,
        neither_the_count_of_updates_nor_the_schedule_moves,
        a_resumed_run_has_the_scale_and_the_skipped_updates,
        growth_is_logged_and_not_told,
        dumped_gradients_are_those_of_the_loss,
        too_many_in_a_row_end_the_run_and_the_node_is_named,
        a_loss_that_is_not_finite_is_no_error_if_the_update_is_skipped,
#ifndef LS_TINY_CUDA
        an_update_with_an_infinite_loss_is_an_error,
#endif
    };
    return run_in_folder("skipped_updates", sizeof tests / sizeof *tests, tests);
}
