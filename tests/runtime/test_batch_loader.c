/* tests/runtime/test_batch_loader.c -- the ring delivers every sample once per epoch, in an order
 * fixed by seed and epoch. */
#include "tests/support/npz_util.h"
#include "runtime/data/batch_loader.h"

#include <string.h>

enum { BATCH = 4, MOST = 64 };

/* x [4]: sample k has the value k; t is one table for every batch. */
static const LsInput input[] = {
    {{.name = "x", .type = LS_DT_I32, .rank = 1, .dim = {BATCH}, .at = {LS_AT_INPUT, 0}},
     false,
     0,
     0,
     LS_USUAL_NONE},
    {{.name = "t", .rank = 1, .dim = {3}, .at = {LS_AT_INPUT, 1}}, false, 0, 0, LS_USUAL_NONE},
    {{.name = "label", .type = LS_DT_I64, .rank = 1, .dim = {BATCH}, .at = {LS_AT_INPUT, 2}},
     true,
     0,
     0,
     LS_USUAL_NONE},
};
static const LsProgram p = {.about.model = "m",
                            .real_bytes = 4,
                            .division.samples = BATCH,
                            .input = input,
                            .ninput = 3,
                            .target.classes = 100};
static LsDataset d;
static LsLoader l;
static LsError e;

static void open_all(int samples, int bad, int workers)
{
    int32_t x[MOST];
    int64_t label[MOST];
    float t[3] = {1, 2, 3};
    for (int k = 0; k < samples; k++) {
        x[k] = k;
        label[k] = k == bad ? 100 : k;
    }
    e = (LsError){0};
    write_npz("a.npz", 3, (NpzItem[]){{"x", LS_I32, 1, {samples}, x}, {"t", LS_F32, 1, {3}, t},
                                      {"label", LS_I64, 1, {samples}, label}});
    ck_assert_msg(ls_dataset_open(&d, &p, &(LsDataOptions){.data = "a.npz"}, &e), "%s", e.text);
    ck_assert(ls_loader_open(&l, &p, workers, &e));
}

static void close_all(void)
{
    ls_loader_close(&l);
    ls_dataset_close(&d);
}

static const int32_t *xs(const LsBatch *b) { return (const int32_t *)(const void *)b->input; }

START_TEST(shuffling_is_a_permutation_for_every_length)
{
    for (int64_t n = 1; n <= 300; n += n < 70 ? 1 : 23) {
        char seen[300] = {0};
        for (int64_t i = 0; i < n; i++) {
            int64_t at = ls_shuffled(9, 4, n, i);
            ck_assert(at >= 0 && at < n && !seen[at]);
            seen[at] = 1;
        }
    }
}
END_TEST

START_TEST(orders_differ_by_epoch_and_seed_and_leave_few_in_place)
{
    int same_epoch = 0, same_seed = 0, in_place = 0, neighbours = 0;
    for (int64_t i = 0; i < 1000; i++) {
        int64_t at = ls_shuffled(1, 0, 1000, i);
        same_epoch += at == ls_shuffled(1, 1, 1000, i);
        same_seed += at == ls_shuffled(2, 0, 1000, i);
        in_place += at == i;
        neighbours += i > 0 && at == ls_shuffled(1, 0, 1000, i - 1) + 1;
    }
    ck_assert(same_epoch < 10 && same_seed < 10 && in_place < 10 && neighbours < 10);
}
END_TEST

START_TEST(every_epoch_has_every_sample_once_and_masks_the_rest)
{
    for (int workers = 0; workers <= 5; workers++) {
        open_all(11, -1, workers);
        LsPass pass = {.data = &d, .seed = 5, .shuffle = true, .end = 3 * 4};
        ck_assert_int_eq(ls_batches_per_epoch(&pass), 3);
        ls_loader_begin(&l, &pass);
        for (int epoch = 0; epoch < 4; epoch++) {
            int seen[11] = {0};
            for (int k = 0; k < 3; k++) {
                const LsBatch *b = ls_loader_next(&l, &e);
                ck_assert_msg(b != NULL, "%s", e.text);
                ck_assert_int_eq(b->number, 3 * epoch + k);
                ck_assert_int_eq(b->valid, k == 2 ? 3 : 4);
                for (int i = 0; i < b->valid; i++)
                    seen[xs(b)[i]]++;
                ck_assert(k < 2 || xs(b)[3] == xs(b)[0]);
                ck_assert_int_eq(memcmp(b->input + l.offset[1], (float[]){1, 2, 3}, 12), 0);
                ls_loader_release(&l);
            }
            for (int i = 0; i < 11; i++)
                ck_assert_int_eq(seen[i], 1);
        }
        ck_assert_ptr_null(ls_loader_next(&l, &e));
        ck_assert_int_eq(e.code, LS_EXIT_DONE);
        close_all();
    }
}
END_TEST

START_TEST(a_pass_may_start_anywhere_and_be_left_at_any_time)
{
    open_all(20, -1, 3);
    for (int first = 0; first < 15; first++) {
        LsPass pass = {.data = &d, .first = first, .end = 1000};
        ls_loader_begin(&l, &pass);
        for (int k = 0; k < first % 3 + 1; k++) {
            const LsBatch *b = ls_loader_next(&l, &e);
            ck_assert_int_eq(xs(b)[1], (first + k) % 5 * BATCH + 1);
            if (k < first % 3)
                ls_loader_release(&l);
        }
    }
    close_all();
}
END_TEST

START_TEST(an_error_comes_with_its_batch_and_not_before)
{
    for (int workers = 0; workers <= 4; workers++) {
        open_all(32, 21, workers);      /* in batch 5 */
        LsPass pass = {.data = &d, .end = 8};
        ls_loader_begin(&l, &pass);
        for (int k = 0; k < 5; k++) {
            ck_assert_ptr_nonnull(ls_loader_next(&l, &e));
            ls_loader_release(&l);
        }
        ck_assert_ptr_null(ls_loader_next(&l, &e));
        ck_assert_int_eq(e.code, LS_EXIT_DATA);
        ck_assert_ptr_nonnull(strstr(e.text, "a.npz: sample 21: label 100"));
        close_all();
    }
}
END_TEST

/* Batches 5 and 6 of a program whose samples take a while to read; `bad`: samples with bad
 * labels. */
static void open_slow(LsProgram *slow, LsInput *in, int nbad, const int *bad)
{
    enum { SAMPLES = 28, EACH = 1 << 18 };
    static unsigned char x[SAMPLES * (size_t)EACH];
    int64_t label[SAMPLES] = {0};
    memcpy(in, input, sizeof input);
    in[0].t = (LsTensor){.name = "x", .rank = 2, .dim = {BATCH, EACH}, .at = {LS_AT_INPUT, 0}};
    *slow = p;
    slow->input = in;
    for (int k = 0; k < nbad; k++)
        label[bad[k]] = 100;
    e = (LsError){0};
    write_npz("slow.npz", 3, (NpzItem[]){{"x", LS_U8, 2, {SAMPLES, EACH}, x},
                                         {"t", LS_F32, 1, {3}, (float[3]){0}},
                                         {"label", LS_I64, 1, {SAMPLES}, label}});
    ck_assert_msg(ls_dataset_open(&d, slow, &(LsDataOptions){.data = "slow.npz", .mean = "1"}, &e),
                  "%s", e.text);
    ck_assert(ls_loader_open(&l, slow, 2, &e));
    ls_loader_begin(&l, &(LsPass){.data = &d, .first = 5, .end = 7});
}

/* Waits until a worker has met an error; `all`: until all workers have ended. */
static void await_error(bool all)
{
    pthread_mutex_lock(&l.lock);
    while (l.error.code == LS_EXIT_DONE || (all && l.busy > 0))
        pthread_cond_wait(&l.filled, &l.lock);
    pthread_mutex_unlock(&l.lock);
}

/* The error is the same, whichever worker meets it first: batch 5 has samples 20 to 23. */
START_TEST(the_error_of_the_first_sample_is_told)
{
    static const int bad[2][2] = {{23, 24}, {20, 27}};
    for (int k = 0; k < 2; k++) {
        LsProgram slow;
        LsInput in[3];
        char part[64];
        open_slow(&slow, in, 2, bad[k]);
        await_error(true);
        ck_assert_ptr_null(ls_loader_next(&l, &e));
        snprintf(part, sizeof part, "sample %d: label 100", bad[k][0]);
        ck_assert_msg(strstr(e.text, part) != NULL, "no '%s' in: %s", part, e.text);
        close_all();
    }
}
END_TEST

START_TEST(a_batch_before_the_error_is_waited_for)
{
    LsProgram slow;
    LsInput in[3];
    open_slow(&slow, in, 1, (int[]){24});
    await_error(false);
    ck_assert_msg(ls_loader_next(&l, &e) != NULL, "%s", e.text);
    ls_loader_release(&l);
    ck_assert_ptr_null(ls_loader_next(&l, &e));
    ck_assert_ptr_nonnull(strstr(e.text, "sample 24: label 100"));
    close_all();
}
END_TEST

/* The samples that count, in order. */
START_TEST(what_a_short_batch_lacks_repeats_it)
{
    for (int samples = 5; samples <= 7; samples++)
        for (int shuffle = 0; shuffle < 2; shuffle++) {
            open_all(samples, -1, 0);
            LsPass pass = {.data = &d, .seed = 3, .shuffle = shuffle, .end = 3};
            ls_loader_begin(&l, &pass);
            for (int k = 0; k < 3; k++) {
                const LsBatch *b = ls_loader_next(&l, &e);
                const int64_t *label = (const int64_t *)(const void *)(b->input + l.offset[2]);
                for (int i = 0; i < BATCH; i++) {
                    ck_assert_int_eq(xs(b)[i], xs(b)[i % b->valid]);
                    ck_assert_int_eq(label[i], xs(b)[i]);
                }
                ls_loader_release(&l);
            }
            close_all();
        }
}
END_TEST

START_TEST(drop_last_leaves_out_what_does_not_fill_a_batch)
{
    open_all(11, -1, 1);
    LsPass pass = {.data = &d, .drop_last = true, .end = 4};
    ck_assert_int_eq(ls_batches_per_epoch(&pass), 2);
    ls_loader_begin(&l, &pass);
    for (int k = 0; k < 4; k++) {
        const LsBatch *b = ls_loader_next(&l, &e);
        ck_assert(b->valid == 4 && xs(b)[0] == k % 2 * 4);
        ls_loader_release(&l);
    }
    close_all();
}
END_TEST

/* Threads read all batches of a pass; each holds some at a time. */
enum { READERS = 3, READ = 40 };
typedef struct Reader { int64_t holds; bool ok; } Reader;

static void *read_all(void *arg)
{
    Reader *r = arg;
    LsError mine = {0};
    r->ok = true;
    for (int64_t k = 0; k < READ + r->holds - 1; k++) {
        const LsBatch *b = k < READ ? ls_loader_at(&l, k, &mine) : NULL;
        r->ok &= k >= READ || (b != NULL && b->number == k && xs(b)[0] == k % 5 * BATCH);
        if (k + 1 >= r->holds)
            ls_loader_done(&l, k + 1 - r->holds);
    }
    return NULL;
}

START_TEST(several_readers_share_the_ring)
{
    for (int workers = 0; workers < 3; workers++) {
        Reader reader[READERS];
        pthread_t thread[READERS];
        open_all(20, -1, workers);
        ls_loader_begin(&l, &(LsPass){.data = &d, .first = 0, .end = READ, .readers = READERS});
        for (int k = 0; k < READERS; k++) {
            reader[k].holds = 1 + k;
            ck_assert_int_eq(pthread_create(&thread[k], NULL, read_all, &reader[k]), 0);
        }
        for (int k = 0; k < READERS; k++) {
            pthread_join(thread[k], NULL);
            ck_assert(reader[k].ok);
        }
        ck_assert_int_eq(l.taken, READ);
        close_all();
    }
}
END_TEST

int main(void)
{
    const TTest *test[] = {
        shuffling_is_a_permutation_for_every_length,
        orders_differ_by_epoch_and_seed_and_leave_few_in_place,
        every_epoch_has_every_sample_once_and_masks_the_rest,
        a_pass_may_start_anywhere_and_be_left_at_any_time,
        an_error_comes_with_its_batch_and_not_before,
        the_error_of_the_first_sample_is_told,
        a_batch_before_the_error_is_waited_for,
        what_a_short_batch_lacks_repeats_it,
        drop_last_leaves_out_what_does_not_fill_a_batch,
        several_readers_share_the_ring,
    };
    return run_in_folder("loader", sizeof test / sizeof test[0], test);
}
