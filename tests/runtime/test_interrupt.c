/* tests/runtime/test_interrupt.c -- the effect of a signal on a run: at a step's end, in the middle
 * of a step, in a step that never ends. The test's own time limit ends a run that takes too
 * long. */
#include "tests/support/tiny_run.h"

#include <fcntl.h>
#include <signal.h>
#include <time.h>

static int at_update, first, second;
static double step_s;

/* The step in which the signals come takes step_s seconds; < 0: it never ends. */
static void disturb(const LsRun *run)
{
    if (run->update != at_update)
        return;
    raise(first);
    if (second)
        raise(second);
    struct timespec left = {(time_t)step_s, (long)(1e9 * (step_s - floor(step_s)))};
    while (step_s < 0)
        pause();
    while (nanosleep(&left, &left) != 0)
        continue;
}

/* Returns waitpid's status of a run that gets these signals. */
static int disturbed(const char *command, int update, int signal, int another, double seconds)
{
    LsProgram p = tiny_program(1);
    at_update = update, first = signal, second = another, step_s = seconds;
    tiny_spy = disturb;
    int status = tiny_child_status(train, &p, command);
    tiny_spy = NULL;
    return status;
}

static void check_resumes(const char *from)
{
    char command[200];
    LsFile a, b;
    LsError e = {0};
    MUST(0, "--data data.npz --epochs 5 --dump whole.npz");
    snprintf(command, sizeof command, "--data data.npz --epochs 5 --dump rest.npz --resume %s",
             from);
    MUST(0, command);
    ck_assert(ls_file_map(&a, "whole.npz", &e) && ls_file_map(&b, "rest.npz", &e));
    ck_assert(a.size == b.size && memcmp(a.data, b.data, a.size) == 0);
    ls_file_unmap(&a);
    ls_file_unmap(&b);
}

START_TEST(every_signal_that_asks_for_an_end_saves)
{
    static const int signal_of[] = {SIGINT, SIGTERM, SIGHUP};
    make_data(SAMPLES);
    signal(SIGHUP, SIG_DFL);        /* nohup ignores it, and trainers then do, too */
    for (int k = 0; k < 3; k++) {
        int status =
            disturbed("--data data.npz --epochs 5 --save ck --overwrite", 5, signal_of[k], 0, 0);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 128 + signal_of[k],
                      "signal %d: %x", signal_of[k], (unsigned)status);
        TOLD(err_text, "--resume=ck/step-000000005.safetensors");
        check_resumes("ck/step-000000005.safetensors");
        ck_assert_int_eq(unlink("ck/step-000000005.safetensors"), 0);
    }
}
END_TEST

START_TEST(a_hang_up_that_is_ignored_stays_ignored)
{
    make_data(SAMPLES);
    signal(SIGHUP, SIG_IGN);
    int status = disturbed("--data data.npz --epochs 5", 5, SIGHUP, 0, 0);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    TOLD(out_text, "epoch 5  step 15");
}
END_TEST

START_TEST(a_step_that_never_ends_is_broken_off)
{
    make_data(SAMPLES);
    int status = disturbed("--data data.npz --epochs 5 --save ck --overwrite", 1, SIGTERM, 0, -1);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    TOLD(err_text, "nothing was saved");
    ck_assert_ptr_null(strstr(err_text, "waiting for the step"));
    status = disturbed("--data data.npz --epochs 5 --save ck --overwrite", 2, SIGTERM, 0, -1);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    TOLD(err_text, "waiting for the step");
    TOLD(err_text, "nothing was saved");
    ck_assert_int_ne(access("ck/step-000000002.safetensors", F_OK), 0);
}
END_TEST

START_TEST(a_long_step_with_updates_to_lose_is_waited_for)
{
    make_data(SAMPLES);
    int status = disturbed("--data data.npz --epochs 5 --save ck --save-every 3 --overwrite", 5,
                           SIGINT, 0, 1.2);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 130, "%x\n%s", (unsigned)status,
                  err_text);
    TOLD(err_text, "waiting for the step");
    check_resumes("ck/step-000000005.safetensors");
}
END_TEST

START_TEST(a_second_signal_of_any_kind_ends_the_run_at_once)
{
    make_data(SAMPLES);
    int status =
        disturbed("--data data.npz --epochs 5 --save ck --overwrite", 5, SIGINT, SIGTERM, -1);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    status = disturbed("--data data.npz --epochs 5 --save ck --overwrite", 5, SIGINT, SIGINT, -1);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
}
END_TEST

int main(void)
{
    const TTest *test[] = {
        every_signal_that_asks_for_an_end_saves,
        a_hang_up_that_is_ignored_stays_ignored,
        a_step_that_never_ends_is_broken_off,
        a_long_step_with_updates_to_lose_is_waited_for,
        a_second_signal_of_any_kind_ends_the_run_at_once,
    };
    return run_in_folder("interrupt", sizeof test / sizeof test[0], test);
}
