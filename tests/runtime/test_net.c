/* tests/runtime/test_net.c -- an instance of a library (runtime/library/net.h): its updates
 * are those of a trainer, and what it gives besides is what an update shows. Also on a simulated
 * GPU. */
#include "runtime/base/file.h"
#include "runtime/library/net_state.h"
#include "tests/support/tiny_net.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* The samples from `from` on. */
static void batch_from(int from, const void *batch[2])
{
    batch[0] = features + from * TF;
    batch[1] = labels + from;
}

/* As many updates as an epoch has, over `batches` batches each. */
static void train_net(LsNet *n, int batches)
{
    const void *batch[2];
    for (int at = 0; at < SAMPLES; at += batches * TB) {
        batch_from(at, batch);
        step(n, batch, SAMPLES - at < batches * TB ? SAMPLES - at : batches * TB);
    }
}

START_TEST(updates_are_those_of_a_trainer)
{
    const LsProgram p = tiny_program(1);
    float own[STATES][TM * TF], trainer[STATES][TM * TF];
    make_data(SAMPLES);
    MUST(0, "--data data.npz --lr 0.25 --no-shuffle --epochs 1 --save saved --seed 3");
    LsNet *n = opened(&p, 2);
    train_net(n, 1);
    values(n, own);
    ck_assert_int_eq(ls_net_updates(n), 3);
    ck_assert_int_eq(system("cp saved/*.safetensors one.safetensors"), 0);
    OK(ls_net_begin(n, 3, &e));
    ck_assert_int_eq(ls_net_updates(n), 0);
    OK(ls_net_load(n, "one.safetensors", &e));
    ck_assert_int_eq(ls_net_updates(n), 3);
    values(n, trainer);
    ck_assert_mem_eq(own, trainer, sizeof own);
    ls_net_close(n);
}
END_TEST

START_TEST(losses_need_not_be_waited_for)
{
    const LsProgram p = tiny_program(1);
    float was[STATES][TM * TF], is[STATES][TM * TF];
    double loss, last = 0;
    int64_t bytes;
    setenv("LS_FAKE_CUDART", "lazy", 1);
    tiny_data(SAMPLES, features, labels);
    LsNet *n = opened(&p, 1);
    for (int k = 0; k < 5; k++)
        last = step(n, all, TB);
    values(n, was);
    OK(ls_net_begin(n, 3, &e));
    for (int k = 0; k < 5; k++)
        OK(ls_net_step(n, all, TB, rate, NULL, &e));
    OK(ls_net_wait(n, &loss, &e));
    ck_assert_double_eq(loss, last);
    values(n, is);
    ck_assert_mem_eq(was, is, sizeof is);
    ck_assert_int_eq(ls_net_updates(n), 5);
    features[0] = (float)NAN;
    LsError e = {0};
    if (ls_net_step(n, all, TB, rate, NULL, &e))        /* the host waits in any case */
        REFUSED(ls_net_save_to(n, NULL, 0, &bytes, &e), "not finite");
    else
        TOLD(e.text, "not finite");
    OK(ls_net_begin(n, 3, &e));
    tiny_data(SAMPLES, features, labels);
    for (int k = 0; k < 5; k++)
        ck_assert(isfinite(step(n, all, TB)));
    ls_net_close(n);
}
END_TEST

START_TEST(predicts_all_samples)
{
    const LsProgram p = tiny_program(1);
    LsNet *n = opened(&p, 1);
    const void *unlabelled[2] = {features, NULL};
    float y[SAMPLES + 1][TM], w[TM * TF], b[TM];
    void *output[1] = {y}, *nothing[1] = {NULL};
    tiny_data(SAMPLES, features, labels);
    y[SAMPLES][0] = 77;
    OK(ls_net_read(n, 0, w, &e));
    OK(ls_net_read(n, 1, b, &e));
    OK(ls_net_predict(n, unlabelled, SAMPLES, output, &e));
    for (int s = 0; s < SAMPLES; s++)
        for (int m = 0; m < TM; m++) {
            float sum = b[m];           /* x is given in logical order, as w is read */
            for (int f = 0; f < TF; f++)
                sum += features[s * TF + f] * w[m * TF + f];
            ck_assert_float_eq_tol(y[s][m], sum, 1e-5f);
        }
    ck_assert_float_eq(y[SAMPLES][0], 77);
    OK(ls_net_predict(n, unlabelled, SAMPLES, nothing, &e));
    ck_assert_ptr_nonnull(ls_net_output(&p, 0));
    ck_assert_str_eq(ls_net_output(&p, 0)->name, "y");
    ck_assert_ptr_null(ls_net_output(&p, 1));
    double loss;
    REFUSED(ls_net_evaluate(n, unlabelled, SAMPLES, &loss, &e), "there is no array for 'label'");
    REFUSED(ls_net_predict(n, (const void *const[]){NULL, NULL}, 1, output, &e),
            "there is no array for 'x'");
    ls_net_close(n);
}
END_TEST

/* Its first update of plain momentum is rate times the gradient. */
static void gradients(int accumulate, int64_t samples)
{
    const LsProgram p = tiny_program(accumulate);
    LsNet *n = opened(&p, 1);
    float w[TM * TF], b[TM], was[STATES][TM * TF], is[STATES][TM * TF];
    void *gradient[STATES] = {w, b};
    double loss;
    tiny_data(SAMPLES, features, labels);
    values(n, was);
    OK(ls_net_gradients(n, all, samples, gradient, &loss, &e));
    values(n, is);
    ck_assert_mem_eq(was, is, sizeof is);
    ck_assert_int_eq(ls_net_updates(n), 0);
    ck_assert_double_eq(step(n, all, samples), loss);
    values(n, is);
    for (int k = 0; k < TM * TF; k++)
        ck_assert_float_eq_tol(was[0][k] - is[0][k], (float)rate * w[k], 1e-6f);
    for (int k = 0; k < TM; k++)
        ck_assert_float_eq_tol(was[1][k] - is[1][k], (float)rate * b[k], 1e-6f);
    gradient[2] = w;
    REFUSED(ls_net_gradients(n, all, samples, gradient, &loss, &e), "'w.m' is no parameter");
    ls_net_close(n);
}

START_TEST(gradients_are_those_of_an_update)
{
    gradients(1, TB);
    gradients(1, TB - 1);
    gradients(2, 2 * TB);
    gradients(2, 2 * TB - 3);
}
END_TEST

START_TEST(a_gradient_that_no_step_stores_is_refused)
{
    LsProgram p = tiny_program(1);
    float w[TM * TF];
    void *gradient[STATES] = {w};
    double loss;
    tiny_data(SAMPLES, features, labels);
    p.phase.train.nwatch = 1;           /* the output alone */
    LsNet *n = opened(&p, 1);
    REFUSED(ls_net_gradients(n, all, TB, gradient, &loss, &e), "--store-gradients");
    ls_net_close(n);
}
END_TEST

START_TEST(checkpoints_in_memory_are_those_of_files)
{
    const LsProgram p = tiny_program(1);
    LsNet *n = opened(&p, 1);
    float was[STATES][TM * TF], is[STATES][TM * TF];
    char saved[4096];
    int64_t bytes, again;
    LsFile f;
    make_data(SAMPLES);
    step(n, all, TB);
    values(n, was);
    OK(ls_net_save_to(n, NULL, 0, &bytes, &e));
    ck_assert_int_lt(bytes, (int64_t)sizeof saved);
    saved[bytes - 1] = saved[bytes] = 'x';
    REFUSED(ls_net_save_to(n, saved, (size_t)bytes - 1, &again, &e), "there is room for");
    ck_assert_int_eq(saved[bytes - 1], 'x');
    OK(ls_net_save_to(n, saved, (size_t)bytes, &again, &e));
    ck_assert_int_eq(again, bytes);
    ck_assert_int_eq(saved[bytes], 'x');
    OK(ls_net_save(n, "file.safetensors", &e));
    OK(ls_file_map(&f, "file.safetensors", &e));
    ck_assert_uint_eq(f.size, (size_t)bytes);
    ck_assert_mem_eq(f.data, saved, f.size);
    ls_file_unmap(&f);
    step(n, all, TB);
    OK(ls_net_load_from(n, saved, (size_t)bytes, &e));
    values(n, is);
    ck_assert_mem_eq(was, is, sizeof is);
    ck_assert_int_eq(ls_net_updates(n), 1);
    saved[bytes - 1] ^= 1;
    step(n, all, TB);
    values(n, was);
    REFUSED(ls_net_load_from(n, saved, (size_t)bytes, &e), "the checkpoint: damaged");
    REFUSED(ls_net_load_from(n, saved, (size_t)bytes - 4, &e), "the checkpoint: ");
    values(n, is);
    ck_assert_mem_eq(was, is, sizeof is);
    ck_assert_int_eq(ls_net_updates(n), 2);
    ls_net_close(n);
}
END_TEST

START_TEST(tensors_are_written)
{
    const LsProgram p = tiny_program(1);
    LsNet *n = opened(&p, 1);
    float w[TM * TF], back[TM * TF];
    for (int k = 0; k < TM * TF; k++)
        w[k] = (float)k;
    OK(ls_net_write(n, 0, w, &e));
    OK(ls_net_read(n, 0, back, &e));
    ck_assert_mem_eq(w, back, sizeof w);
    REFUSED(ls_net_write(n, STATES, w, &e), "no tensor 7");
    REFUSED(ls_net_read(n, STATES, w, &e), "no tensor 7");
    ls_net_close(n);
}
END_TEST

START_TEST(wrong_calls_are_refused)
{
    const LsProgram p = tiny_program(2);
    LsNet *n = opened(&p, 1);
    double loss;
    tiny_data(SAMPLES, features, labels);
    REFUSED(ls_net_step(n, all, 0, rate, &loss, &e), "at least one sample");
    REFUSED(ls_net_step(n, all, TB, rate, &loss, &e), "an update takes 5 to 8 samples");
    REFUSED(ls_net_step(n, all, 2 * TB + 1, rate, &loss, &e), "an update takes 5 to 8 samples");
    double first;
    OK(ls_net_step(n, all, 2 * TB, rate, &first, &e));
    OK(ls_net_begin(n, 3, &e));
    labels[TB + 1] = TM;                /* in the second micro-batch */
    REFUSED(ls_net_step(n, all, 2 * TB, rate, &loss, &e), "label 2 is not one of");
    tiny_data(SAMPLES, features, labels);
    ck_assert_double_eq(step(n, all, 2 * TB), first);
    double epsilon, delta;
    REFUSED(ls_net_spent(n, &epsilon, &delta, &e), "not private");
    REFUSED(ls_net_seed_noise(n, 1, &e), "not private");
    ls_net_close(n);
    ls_net_close(NULL);
}
END_TEST

START_TEST(a_short_batch_that_would_be_wrong_is_refused)
{
    LsProgram p = tiny_program(1);
    double loss;
    void *output[1] = {NULL};
    tiny_data(SAMPLES, features, labels);
    p.mixing.train = p.mixing.eval = "node 'm' combines all samples";
    LsNet *n = opened(&p, 1);
    step(n, all, TB);
    REFUSED(ls_net_step(n, all, TB - 1, rate, &loss, &e), "node 'm' combines all samples");
    REFUSED(ls_net_gradients(n, all, TB - 1, (void *[STATES]){NULL}, &loss, &e),
            "node 'm' combines all samples");
    REFUSED(ls_net_evaluate(n, all, TB + 1, &loss, &e), "node 'm' combines all samples");
    REFUSED(ls_net_predict(n, all, TB + 1, output, &e), "node 'm' combines all samples");
    OK(ls_net_evaluate(n, all, 2 * TB, &loss, &e));
    ls_net_close(n);
}
END_TEST

#ifndef LS_TINY_CUDA
START_TEST(the_host_has_no_stream)
{
    const LsProgram p = tiny_program(1);
    const void *at = NULL;
    LsNet *n = opened(&p, 1);
    REFUSED(ls_net_set_stream(n, NULL, &e), "computes on the host and has no stream");
    REFUSED(ls_net_loss_there(n, &at, &e), "its losses are there");
    ls_net_close(n);
}
END_TEST

START_TEST(an_update_that_diverged_leaves_the_next_one_alone)
{
    const LsProgram p = tiny_program(2);
    LsNet *n = opened(&p, 1);
    float was[STATES][TM * TF], is[STATES][TM * TF];
    double loss;
    tiny_data(SAMPLES, features, labels);
    step(n, all, 2 * TB);
    values(n, was);
    OK(ls_net_begin(n, 3, &e));
    features[0] = (float)NAN;           /* in the first micro-batch */
    REFUSED(ls_net_step(n, all, 2 * TB, rate, &loss, &e), "not finite");
    tiny_data(SAMPLES, features, labels);
    step(n, all, 2 * TB);
    values(n, is);
    ck_assert_mem_eq(was, is, (STATES - 1) * sizeof is[0]);     /* the statistic has seen it */
    ck_assert_int_eq(n->t.place.cursor, 2);     /* from where a trainer would go on */
    ls_net_close(n);
}
END_TEST

static void in_turn(void *context, int tasks, void (*task)(void *of, int k), void *of)
{
    *(int *)context += tasks;
    while (tasks-- > 0)
        task(of, tasks);
}

START_TEST(the_callers_threads_give_the_same_bits)
{
    const LsProgram p = tiny_program(1);
    float own[STATES][TM * TF], lent[STATES][TM * TF];
    int tasks = 0;
    LsNet *n = opened(&p, 3);
    tiny_data(SAMPLES, features, labels);
    step(n, all, TB);
    values(n, own);
    ls_net_close(n);
    LsError e = {0};
    n = ls_net_open(&p, (LsNetMemory){state, arena, sizeof state, sizeof arena},
                    (LsNetThreads){3, in_turn, &tasks}, 3, &e);
    ck_assert_ptr_nonnull(n);
    step(n, all, TB);
    values(n, lent);
    ls_net_close(n);
    ck_assert_mem_eq(own, lent, sizeof own);
    ck_assert_int_gt(tasks, 0);
}
END_TEST

/* The exit code of a child that makes a step: 0, or the error's number. */
static int step_in_child(LsNet *n)
{
    int status = -1;
    const pid_t child = fork();
    if (child == 0) {
        LsError e = {0};
        double loss;
        ls_net_step(n, all, TB, rate, &loss, &e);
        ls_net_close(n);
        _exit(e.code != 0 && strstr(e.text, "was forked") == NULL ? 99 : e.code);
    }
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

START_TEST(a_forked_process_has_no_threads)
{
    const LsProgram p = tiny_program(1);
    tiny_data(SAMPLES, features, labels);
    LsNet *n = opened(&p, 2);
    ck_assert_int_eq(step_in_child(n), LS_EXIT_USAGE);
    step(n, all, TB);
    ls_net_close(n);
    n = opened(&p, 1);
    ck_assert_int_eq(step_in_child(n), 0);
    ls_net_close(n);
}
END_TEST

START_TEST(memory_that_is_too_small_is_refused)
{
    const LsProgram p = tiny_program(1);
    const LsNetThreads one = {.count = 1};
    LsNetMemory m = {state, arena, ST_END, AR_END};
    m.state_bytes--;
    REFUSED(ls_net_open(&p, m, one, 1, &e) != NULL, "the state has 387 bytes");
    m = (LsNetMemory){state, arena, ST_END, AR_END - 1};
    REFUSED(ls_net_open(&p, m, one, 1, &e) != NULL, "the arena has 327 bytes");
    m = (LsNetMemory){state, arena + 4, ST_END, AR_END};
    REFUSED(ls_net_open(&p, m, one, 1, &e) != NULL, "the arena must lie at a multiple of 64");
    m = (LsNetMemory){NULL, arena, ST_END, AR_END};
    REFUSED(ls_net_open(&p, m, one, 1, &e) != NULL, "the state must lie");
}
END_TEST
#endif

int main(void)
{
    const TTest *test[20];
    int n = 0;
    test[n++] = updates_are_those_of_a_trainer;
    test[n++] = losses_need_not_be_waited_for;
    test[n++] = predicts_all_samples;
    test[n++] = gradients_are_those_of_an_update;
    test[n++] = a_gradient_that_no_step_stores_is_refused;
    test[n++] = checkpoints_in_memory_are_those_of_files;
    test[n++] = tensors_are_written;
    test[n++] = wrong_calls_are_refused;
    test[n++] = a_short_batch_that_would_be_wrong_is_refused;
#ifndef LS_TINY_CUDA
    test[n++] = the_host_has_no_stream;
    test[n++] = an_update_that_diverged_leaves_the_next_one_alone;
    test[n++] = the_callers_threads_give_the_same_bits;
    test[n++] = a_forked_process_has_no_threads;
    test[n++] = memory_that_is_too_small_is_refused;
#endif
    return run_in_folder("net", n, test);
}
