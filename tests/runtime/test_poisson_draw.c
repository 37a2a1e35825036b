/* tests/runtime/test_poisson_draw.c -- the samples of private updates: every one with the same
 * chance, independently; the batches that hold them. */
#include "runtime/data/batch_loader.h"
#include "tests/support/npz_util.h"

#include <math.h>

enum { BATCH = 4, SAMPLES = 40 };

static const LsSecretKey *key(uint64_t seed)
{
    static LsSecretKey k;
    k = ls_key_of_seed(seed, 0);
    return &k;
}

/* All samples of the next update, by calls for `most` at a time. */
static int64_t update(LsDraw *d, int64_t most, int64_t *sample)
{
    int64_t n = 0;
    for (bool last = false; !last;) {
        const int64_t more = ls_draw_take(d, most, sample + n, &last);
        ck_assert(more == most || last);
        n += more;
    }
    return n;
}

/* Counts of the samples of an update, of each sample, and of what goes together, against their
 * expectations. */
START_TEST(the_number_of_samples_is_binomial_and_pairs_are_independent)
{
    enum { N = 50, UPDATES = 20000 };
    static const double rates[] = {0.02, 0.3, 0.5, 0.97};
    static int together[N][N];
    const double q = rates[_i], mean = N * q, variance = N * q * (1 - q);
    double sum = 0, squares = 0, one = 0, two = 0;
    bool before[N] = {false};
    int again[N] = {0};
    LsDraw d;
    memset(together, 0, sizeof together);
    ls_draw_begin(&d, key(77), q, N, 1);
    for (int u = 0; u < UPDATES; u++) {
        int64_t sample[N];
        bool in[N] = {false};
        const int64_t n = update(&d, 7, sample);
        for (int64_t i = 0; i < n; i++) {
            ck_assert(sample[i] >= 0 && sample[i] < N && (i == 0 || sample[i] > sample[i - 1]));
            in[sample[i]] = true;
            for (int64_t j = 0; j <= i; j++)
                together[sample[i]][sample[j]]++;
        }
        for (int i = 0; i < N; i++) {
            again[i] += in[i] && before[i];
            before[i] = in[i];
        }
        sum += (double)n, squares += ((double)n - mean) * ((double)n - mean);
    }
    ck_assert_double_eq_tol(sum / UPDATES, mean, 5 * sqrt(variance / UPDATES));
    ck_assert_double_eq_tol(squares / UPDATES, variance,
                            5 * (variance + sqrt(variance)) * sqrt(2. / UPDATES));
    for (int i = 0; i < N; i++) {
        one += pow(together[i][i] - UPDATES * q, 2) / (UPDATES * q * (1 - q));
        ck_assert_double_eq_tol(again[i], UPDATES * q * q, 6 * sqrt(UPDATES * q * q));
        for (int j = 0; j < i; j++)
            two += pow(together[i][j] - UPDATES * q * q, 2) / (UPDATES * q * q * (1 - q * q));
    }
    ck_assert_double_eq_tol(one, N, 5 * sqrt(2. * N));
    ck_assert_double_eq_tol(two, N * (N - 1) / 2, 5 * sqrt(N * (N - 1)) * (1 + 2 * sqrt(N) * q));
}
END_TEST

START_TEST(updates_are_functions_of_secret_and_number)
{
    int64_t a[SAMPLES], b[SAMPLES], n;
    LsDraw d, from;
    int other = 0;
    ls_draw_begin(&d, key(5), 0.5, SAMPLES, 1);
    for (int u = 1; u <= 9; u++) {
        n = update(&d, SAMPLES, a);
        ls_draw_begin(&from, key(5), 0.5, SAMPLES, u);
        ck_assert_int_eq(n, update(&from, 3, b));
        ck_assert_int_eq(memcmp(a, b, (size_t)n * sizeof *a), 0);
        ls_draw_begin(&from, key(6), 0.5, SAMPLES, u);
        other += n != update(&from, 3, b) || memcmp(a, b, (size_t)n * sizeof *a) != 0;
    }
    ck_assert_int_eq(other, 9);
    ls_draw_begin(&d, key(5), 1, SAMPLES, 1);
    ck_assert_int_eq(update(&d, 3, a), SAMPLES);
    ls_draw_begin(&d, key(5), 1e-15, SAMPLES, 1);
    ck_assert_int_eq(update(&d, 3, a), 0);
    ls_draw_begin(&d, key(5), 1e-12, INT64_C(1) << 60, 1);
    ck_assert_int_eq(ls_draw_take(&d, 2, a, &(bool){false}), 2);
    ck_assert(a[0] >= 0 && a[0] < a[1]);
}
END_TEST

static const LsInput input[] = {
    {{.name = "x", .type = LS_DT_I32, .rank = 1, .dim = {BATCH}, .at = {LS_AT_INPUT, 0}},
     .is_label = false}};
static const LsProgram p = {.about.model = "m",
                            .real_bytes = 4,
                            .division.samples = BATCH,
                            .input = input,
                            .ninput = 1,
                            .privacy = {.expected = 6}};

/* The batches of updates 3 to 8 have the samples that were drawn, in order; a pass may be left and
 * begun anew. */
START_TEST(batches_hold_what_was_drawn)
{
    int32_t x[SAMPLES];
    LsDataset data;
    LsError e = {0};
    for (int i = 0; i < SAMPLES; i++)
        x[i] = i;
    write_npz("a.npz", 1, (NpzItem[]){{"x", LS_I32, 1, {SAMPLES}, x}});
    ck_assert_msg(ls_dataset_open(&data, &p, &(LsDataOptions){.data = "a.npz"}, &e), "%s", e.text);
    for (int workers = 0; workers <= 3; workers++) {
        LsLoader l;
        ck_assert(ls_loader_open(&l, &p, workers, &e));
        for (int start = 3; start <= 4; start++) {
            const LsPass pass = {
                .data = &data, .first = 7, .drawn = {6. / SAMPLES, *key(9), start, 8}};
            ls_loader_begin(&l, &pass);
            LsDraw d;
            ls_draw_begin(&d, key(9), 6. / SAMPLES, SAMPLES, start);
            for (int u = start; u <= (start == 3 ? 5 : 8); u++) {
                int64_t want[SAMPLES];
                const int64_t n = update(&d, SAMPLES, want);
                for (int64_t at = 0; at == 0 || at < n; at += BATCH) {
                    const LsBatch *b = ls_loader_next(&l, &e);
                    ck_assert_msg(b != NULL, "%s", e.text);
                    ck_assert_int_eq(b->valid, n - at < BATCH ? n - at : BATCH);
                    ck_assert_int_eq(b->last, at + BATCH >= n);
                    for (int64_t i = 0; i < b->valid; i++)
                        ck_assert_int_eq(((const int32_t *)(const void *)b->input)[i],
                                         want[at + i]);
                    ls_loader_release(&l);
                }
            }
        }
        if (workers == 0)
            ck_assert_ptr_null(ls_loader_next(&l, &e));
        ls_loader_close(&l);
    }
    ls_dataset_close(&data);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("poisson_draw");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, enter_new_folder, leave_folder);
    tcase_add_loop_test(t, the_number_of_samples_is_binomial_and_pairs_are_independent, 0, 4);
    tcase_add_test(t, updates_are_functions_of_secret_and_number);
    tcase_add_test(t, batches_hold_what_was_drawn);
    return run_tests("poisson_draw", t);
}
