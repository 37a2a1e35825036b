/* tests/runtime/test_gradient_check.c -- --check-gradients over a hand-written program whose
 * gradients are right, or wrong in one of several ways. */
#include "tests/support/tiny_run.h"

#include "runtime/engine/thread_pool.h"
#include "runtime/watch/gradient_check.h"

static void start(void)
{
    make_data(8);
    tiny_wrong = TINY_RIGHT;
}

START_TEST(right_gradients_pass_and_are_told)
{
    start();
    MUST(0, "--data data.npz --check-gradients --log log");
    TOLD(out_text, "gradients of 4 elements of 2 parameters");
    ck_assert_str_eq(err_text, "");
    char log[4096];
    tiny_read("log", log, sizeof log);
    TOLD(log, "{\"elements\":4,\"parameters\":2,\"median\":");
    MUST(0, "--data data.npz --check-gradients=14 --seed 5");
    TOLD(out_text, "gradients of 14 elements of 2 parameters");
    MUST(0, "--data synthetic --check-gradients=1");
    TOLD(out_text, "gradients of 1 elements of 2 parameters");
}
END_TEST

START_TEST(a_wrong_gradient_is_caught_and_named)
{
    start();
    tiny_wrong = TINY_DOUBLES_B;
    MUST(6, "--data data.npz --check-gradients");
    TOLD(err_text, "the gradient of b[");
    TOLD(out_text, "  b[");
    ck_assert_ptr_null(strstr(out_text, "  w["));
    tiny_wrong = TINY_SKIPS_LAST_SAMPLE;
    MUST(6, "--data data.npz --check-gradients");
    TOLD(out_text, "  w[");
    tiny_wrong = TINY_NOT_FINITE;
    MUST(6, "--data data.npz --check-gradients");
    TOLD(out_text, "gradient nan");
    TOLD(err_text, "is off by inf");
}
END_TEST

START_TEST(an_accumulated_update_and_a_partial_batch_change_nothing)
{
    start();
    make_data(3);               /* of a batch of four */
    LsProgram p = tiny_program(3);
    ck_assert_int_eq(run_program(&p, "--data data.npz --epochs 9 --check-gradients=14"), 0);
    p = tiny_program(1);
    ck_assert_int_eq(run_program(&p, "--data data.npz --check-gradients=14"), 0);
}
END_TEST

START_TEST(gradients_that_are_not_stored_cannot_be_checked)
{
    start();
    LsProgram p = tiny_program(1);
    p.phase.train.nwatch = 2;         /* without that of b */
    p.napplied = 1;
    ck_assert_int_eq(run_program(&p, "--data data.npz --check-gradients"), 0);
    TOLD(out_text, "1 gradients are applied as they are computed and were not seen");
    p.phase.train.nwatch = 1;
    ck_assert_int_eq(run_program(&p, "--data data.npz --check-gradients"), 2);
    TOLD(err_text, "compile it with --store-gradients");
}
END_TEST

START_TEST(a_loss_that_is_not_finite_tells_nothing)
{
    start();
    features[5] = INFINITY;
    write_npz("inf.npz", 2, (NpzItem[]){{"x", LS_F32, 3, {4, TC, TS}, features},
                                        {"label", LS_I64, 1, {4}, labels}});
    MUST(7, "--data inf.npz --no-shuffle --check-gradients");
    TOLD(err_text, "its gradients cannot be checked");
    MUST(8, "--data nowhere.npz --check-gradients");
    MUST(2, "--data data.npz --check-gradients=0");
    MUST(2, "--data data.npz --check-gradients --eval");
}
END_TEST

/* The parts of a run, without a trainer. */
typedef struct Rig {
    LsProgram p;
    LsMemory m;
    LsEngine g;
    LsLoader l;
    LsDataset d;
    LsProgress progress;
} Rig;

static void open_rig(Rig *r, LsError *e)
{
    const LsDataOptions data = {.data = "data.npz"};
    *r = (Rig){.p = tiny_program(1)};
    ck_assert_msg(ls_dataset_open(&r->d, &r->p, &data, e) && ls_memory_open(&r->m, &r->p, e)
                  && ls_engine_open(&r->g, &r->p, &r->m, e)
                  && ls_loader_open(&r->l, &r->p, 0, e), "%s", e->text);
    r->g.run.pool = ls_pool_create(1);
    ls_progress_open(&r->progress, "none", 0, 0);
    ls_loader_begin(&r->l, &(LsPass){.data = &r->d, .end = 1});
    const LsBatch *b = ls_loader_next(&r->l, e);
    ck_assert_ptr_nonnull(b);
    ls_engine_feed(&r->g, &r->l, b);
    ck_assert(ls_engine_fed(&r->g, e));
}

static void close_rig(Rig *r)
{
    ls_loader_close(&r->l);
    ls_pool_destroy(r->g.run.pool);
    ls_engine_close(&r->g);
    ls_dataset_close(&r->d);
    ls_memory_close(&r->m);
}

#ifndef LS_TINY_CUDA
static const float *moment;     /* of b[0] */
static float most;
static void look_at_moment(const LsRun *run) { (void)run, most = fmaxf(most, fabsf(*moment)); }

START_TEST(every_run_begins_with_the_same_state)
{
    Rig r;
    LsError e = {0};
    LsGradCheck c;
    static volatile sig_atomic_t stop;
    start();
    open_rig(&r, &e);
    moment = ls_memory_at(&r.m, (LsAddress){LS_AT_STATE, ST_BV});
    tiny_spy = look_at_moment;
    ck_assert_msg(ls_gradcheck_run(&c, &r.g, NULL, 14, &r.progress, &stop, &e), "%s", e.text);
    ck_assert_float_gt(most, 0);        /* 0.9 of the momentum would stay from run to run */
    for (int64_t k = 0; k < c.nsample; k++)
        if (c.sample[k].of->t.at.offset == ST_B && c.sample[k].element == 0)
            ck_assert_float_lt(most, 1.2f * (float)fabs(c.sample[k].gradient));
    ls_gradcheck_close(&c);
    close_rig(&r);
}
END_TEST
#endif

START_TEST(the_state_is_as_it_was)
{
    Rig r;
    LsError e = {0};
    LsGradCheck c;
    static volatile sig_atomic_t stop;
    char before[ST_END];
    start();
    open_rig(&r, &e);
    memcpy(before, ls_memory_view(&r.m, (LsAddress){LS_AT_STATE, 0}, ST_END), ST_END);
    ck_assert_msg(ls_gradcheck_run(&c, &r.g, NULL, 14, &r.progress, &stop, &e), "%s", e.text);
    ck_assert_mem_eq(before, ls_memory_view(&r.m, (LsAddress){LS_AT_STATE, 0}, ST_END), ST_END);
    ck_assert_int_eq(c.nsample, 14);
    for (int64_t k = 1; k < c.nsample; k++)
        ck_assert(c.sample[k].error <= c.sample[k - 1].error);
    ls_gradcheck_close(&c);
    stop = 15;
    ck_assert_msg(ls_gradcheck_run(&c, &r.g, NULL, 14, &r.progress, &stop, &e), "%s", e.text);
    ck_assert_int_eq(c.nsample, 0);
    ls_gradcheck_close(&c);
    close_rig(&r);
}
END_TEST

int main(void)
{
    static const TTest *test[8];
    int n = 0;
    test[n++] = right_gradients_pass_and_are_told;
    test[n++] = a_wrong_gradient_is_caught_and_named;
    test[n++] = an_accumulated_update_and_a_partial_batch_change_nothing;
    test[n++] = gradients_that_are_not_stored_cannot_be_checked;
    test[n++] = a_loss_that_is_not_finite_tells_nothing;
#ifndef LS_TINY_CUDA
    test[n++] = every_run_begins_with_the_same_state;
#endif
    test[n++] = the_state_is_as_it_was;
    return run_in_folder("gradcheck", n, test);
}
