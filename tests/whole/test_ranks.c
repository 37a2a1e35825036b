/* tests/whole/test_ranks.c -- training over ranks, through the command line: the result is that of one process that runs all
 * parts, bit for bit, whatever recomputes, slices or is gathered; runs go on with another number of ranks, and after ranks
 * were killed; what has no meaning over ranks is refused. */
#include "tests/support/command_line.h"
#include "tests/support/less.h"
#include "tests/support/suite.h"

#include <signal.h>
#include <sys/wait.h>

#define COMPILE LS_BUILD "/lowerset compile -q -O0 --plan-effort=2 "
#define RUN " --progress none --seed 3 --lr 0.01 --epochs 1000 "

static void make_nets(void)
{
    MUST(LS_BUILD "/lowerset model gpt --depth=1 --heads=2 --width=16 --context=8 --vocab=17 --dropout=0.2 -o gpt.onnx");
    MUST(LS_BUILD "/lowerset model unet --depth=1 --size=4 --width=2 -o unet.onnx");
    MUST(LS_BUILD "/lowerset model mlp --batch=0 --width=8 --size=4 -o mlp.onnx");
    for (int n = 1; n <= 4; n *= 2)
        MUST(COMPILE "unet.onnx --batch=8 --microbatches=4 --ranks=%d --optimizer=adam -o r%d", n, n);
}

/* ---- bits ---- */

static const struct { const char *net; int steps; bool statistics; const char *ways[5]; } bits[] = {
    {"unet.onnx --batch=8 --microbatches=4 --optimizer=adam", 20, true,
     {"", "--ranks=2 --checkpoint=except-last", "--ranks=4 --budget=min"}},
    {"mlp.onnx --batch=3 --microbatches=3 --optimizer=rmsprop:momentum=0.9", 200, false, {"", "--ranks=3"}},
    {"gpt.onnx --batch=4 --microbatches=2 --precision=f16 --loss-scale=torch:init=1e9,period=3 --accumulate=2", 12, false,
     {"", "--ranks=2"}},
    {"unet.onnx --batch=8 --microbatches=4 --optimizer=sgd:momentum=0.9", 200, true, {"", "--ranks=2", "--ranks=4"}},
    {"unet.onnx --batch=6 --microbatches=6 --optimizer=sgd:momentum=0.9 --clip-norm=1", 20, true,
     {"", "--ranks=3 --checkpoint=always", "--ranks=6"}},
    {"gpt.onnx --batch=8 --microbatches=4 --optimizer=adamw --ignore-index=3 --store-gradients", 12, false,
     {"", "--ranks=2 --checkpoint=never", "--ranks=4"}},
    {"gpt.onnx --batch=4 --microbatches=2 --optimizer=lamb --ema=0.9", 12, false, {"", "--ranks=2"}},
    {"gpt.onnx --batch=4 --microbatches=2 --optimizer=muon", 12, false, {"", "--ranks=2"}},
    {"gpt.onnx --batch=4 --microbatches=2 --optimizer=nadam --precision=bf16", 12, false, {"", "--ranks=2"}},
    {"mlp.onnx --batch=5 --microbatches=5 --optimizer=adafactor --precision=f64", 12, false, {"", "--ranks=5"}},
};
enum { NBITS = sizeof bits / sizeof *bits, FEW = 3 };

/* 19 samples: the last batch has parts that are half full and parts, and ranks, without samples. The last checkpoint has
 * what the dump has not, and is that of one process but for the plan's name: it goes on there. */
START_TEST(ranks_change_no_bit)
{
    for (int k = 0; bits[_i].ways[k] != NULL; k++) {
        const char *name = k == 0 ? "first" : "other";
        MUST(COMPILE "%s %s -o %s", bits[_i].net, bits[_i].ways[k], name);
        MUST("rm -rf s%s && ./%s --data synthetic:19" RUN "--steps %d --save s%s --save-every 1000 --val synthetic:9 "
             "--dump %s.npz", name, name, bits[_i].steps, name, name);
        MUST("mv out %s.txt; ./first --data synthetic:19" RUN "--steps %d --resume s%s/$(ls s%s) --dump %s-on.npz", name,
             bits[_i].steps + 3, name, name, name);
        if (k == 0)
            continue;
        ck_assert_msg(same_arrays("first.npz", "other.npz", "param/") && same_arrays("first.npz", "other.npz", "loss")
                      && (!bits[_i].statistics || same_arrays("first.npz", "other.npz", "stat/"))
                      && same_arrays("first-on.npz", "other-on.npz", "param/"), "%s %s: %s", bits[_i].net, bits[_i].ways[k], text);
        MUST("cmp first.txt other.txt");
    }
}
END_TEST

START_TEST(one_rank_is_no_option)
{
    MUST(COMPILE "gpt.onnx --optimizer=adam --batch=4 --microbatches=2 -S -o plain.c");
    MUST(COMPILE "gpt.onnx --optimizer=adam --batch=4 --microbatches=2 --ranks=1 -S -o one.c");
    MUST("cmp plain.c one.c");
    MUST(COMPILE "gpt.onnx --optimizer=adam --batch=4 --ranks=2 -S -o ranks.c");    /* a part for each */
    MUST(COMPILE "gpt.onnx --optimizer=adam --batch=4 --ranks=2 --microbatches=2 -S -o more.c");
    MUST("cmp ranks.c more.c; ! cmp -s plain.c more.c");
}
END_TEST

START_TEST(buckets_change_no_bit)
{
    static const char *const bucket[] = {"1", "700", "1000000000"};
    MUST(COMPILE "gpt.onnx --batch=8 --ranks=4 --optimizer=adam -o t");
    for (int k = 0; k < 3; k++) {
        MUST("./t --data synthetic:19" RUN "--steps 20 --bucket %s --dump %s.npz", bucket[k], k == 0 ? "first" : "other");
        ck_assert(k == 0 || same_arrays("first.npz", "other.npz", "param/"));
    }
}
END_TEST

/* ---- runs ---- */

#define GO "--data synthetic:21 --lr 0.01 --seed 5 --progress none --epochs 1000"

START_TEST(a_run_goes_on_with_other_ranks)
{
    static const int n[] = {4, 2, 1, 4, 2};
    MUST("rm -rf saved; ./r1 " GO " --steps 20 --dump first.npz");
    for (int k = 0; k < 5; k++)
        MUST("./r%d " GO " --steps %d --save saved --save-every 3 --keep-last 2 --resume auto --dump other.npz", n[k], 4 * k + 4);
    ck_assert(same_arrays("first.npz", "other.npz", "param/") && same_arrays("first.npz", "other.npz", "stat/"));
    ck_assert_int_eq(sh("./r2 --data synthetic:21 --seed 6 --save saved --resume auto"), 2);
    ck_assert_msg(strstr(text, "--seed=6, but") != NULL, "%s", text);
}
END_TEST

/* The first child of a process, or 0. */
static int child_of(int pid, int which)
{
    char path[64];
    int found = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
    FILE *f = fopen(path, "r");
    for (int k = 0; f != NULL && k <= which; k++)
        if (fscanf(f, "%d", &found) != 1)
            found = 0;
    if (f != NULL)
        fclose(f);
    return found;
}

/* A run of 4 ranks that is to be ended; returns its process. Its messages are in the file `ended`. */
static int start_run(int update)
{
    const int pid = fork();
    if (pid == 0) {
        if (freopen("ended", "w", stdout) == NULL || freopen("ended", "w", stderr) == NULL)
            _exit(99);
        execl("./r4", "r4", "--data", "synthetic:21", "--lr", "0.01", "--seed", "5", "--epochs", "1000000", "--steps",
              "100000000", "--progress", "none", "--save", "saved", "--save-every", "1", "--keep-last", "3", "--resume", "auto",
              NULL);
        _exit(98);
    }
    usleep((unsigned)(100000 + 37000 * update));
    return pid;
}

/* Waits until a run has trained: before that, a signal just ends a rank. */
static int trains(int pid)
{
    for (int wait = 0; wait < 20000 && sh("grep -q epoch ended") != 0; wait++)
        usleep(5000);
    return pid;
}

/* Sends a signal to rank k of a run; returns how the run ended. */
static int end_run(int pid, int k, int signal)
{
    int status, rank = 0;
    for (int wait = 0; wait < 5000 && (rank = child_of(pid, k)) == 0; wait++)
        usleep(1000);
    ck_assert_int_gt(rank, 0);
    kill(rank, signal);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status), "ended by %d", status);
    return WEXITSTATUS(status);
}

/* The checkpoint is that of the unbroken run. */
static void check_saved(void)
{
    MUST("ls saved/* | tail -1");
    const int done = (int)told("step-");
    ck_assert_int_gt(done, 0);
    MUST("./r2 " GO "000 --steps %d --save saved --save-every 1000000 --resume auto --dump other.npz", done + 20);
    MUST("./r1 " GO "000 --steps %d --dump first.npz", done + 20);
    ck_assert(same_arrays("first.npz", "other.npz", "param/") && same_arrays("first.npz", "other.npz", "stat/"));
}

/* Whatever rank is killed, whenever: the run ends, and the next one goes on. */
START_TEST(a_killed_rank_costs_no_more_than_its_last_steps)
{
    MUST("rm -rf saved");
    for (int k = 0; k < 4; k++) {
        ck_assert_int_eq(end_run(start_run(k), k, SIGKILL), 9);
        MUST("grep -q 'was killed by signal 9' ended");
    }
    check_saved();
}
END_TEST

/* All ranks end after the same step, and save it, also if only one of them hears of it. */
START_TEST(ranks_agree_on_the_end_of_an_interrupted_run)
{
    MUST("rm -rf saved");
    for (int k = 0; k < 3; k++) {
        ck_assert_int_eq(end_run(trains(start_run(k)), k, SIGINT), 130);
        MUST("grep -q 'interrupted after step' ended");
    }
    check_saved();
}
END_TEST

/* One rank tells what went wrong, and all end with its exit code. */
START_TEST(one_rank_tells)
{
    static const struct { const char *command; int code; const char *why; } fails[] = {
        {"./r4 --data none.npz", 8, "none.npz: No such file"},
        {"./r4 --data synthetic --lr 1e30 --steps 50", 7, "training has diverged"},
        {"./r4 --data synthetic --lr 1e30 --steps 50 --check-numerics", 7, "is the first to give an infinity"},
        {"./r4 --data synthetic --check-gradients", 2, "--check-gradients is for one process"},
        {"./r1 --data synthetic --bucket 5", 2, "--bucket: this program is for one process"},
    };
    for (int k = 0; k < 5; k++) {
        const int code = sh("%s --progress none 2>&1 >/dev/null", fails[k].command);
        ck_assert_msg(code == fails[k].code && strstr(text, fails[k].why) != NULL, "%s: %d: %s", fails[k].command, code, text);
        ck_assert_msg(strstr(strstr(text, ": error: ") + 1, ": error: ") == NULL, "%s", text);
    }
}
END_TEST

/* ---- plans ---- */

START_TEST(plan_says_what_a_rank_holds_and_sends)
{
    MUST(LS_BUILD "/lowerset plan -q --plan-effort=2 mlp.onnx --batch=8 --microbatches=4 --ranks=2 --optimizer=adam");
    ck_assert_msg(strstr(text, "over 2 ranks: each runs 2 of 4 parts of an update") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "each rank updates a slice of every parameter, and has 1.12 KiB of 1.77 KiB") != NULL, "%s", text);
    MUST(LS_BUILD "/lowerset plan -q --plan-effort=2 mlp.onnx --batch=8 --ranks=2 --optimizer=adam --clip-norm=1");
    ck_assert_msg(strstr(text, "every rank makes all of them, with 1.77 KiB of the optimizer's state, as the norm is that of all")
                  != NULL, "%s", text);
    MUST(LS_BUILD "/lowerset plan -q --plan-effort=2 mlp.onnx --batch=8 --microbatches=4 --ranks=4 --json");
    ck_assert_msg(strstr(text, "{\"ranks\":4,\"parts\":4,\"own_parts\":1,\"sliced\":true,") != NULL, "%s", text);
}
END_TEST

/* The trainer takes what the plan says: its state, buffers and arena. */
START_TEST(plan_and_program_agree_on_bytes)
{
    MUST(LS_BUILD "/lowerset plan -q --plan-effort=2 unet.onnx --batch=8 --microbatches=4 --ranks=2 --optimizer=adam --json "
         ">p.json; true");
    MUST(COMPILE "unet.onnx --batch=8 --microbatches=4 --ranks=2 --optimizer=adam -o t");
    MUST("./t --print-plan | head -2 | tail -1");
    const double state = told("state "), arena = told("arena "), constants = told("constants "), ring = told("ring "),
                 total = told("total ");
    MUST("cat p.json");
    ck_assert_msg(total == state + arena + constants + ring + told("\"exchange_bytes\":"), "%s", text);
}
END_TEST

static const struct { const char *command; int code; const char *why; } refused[] = {
    {"mlp.onnx --batch=12 --microbatches=6 --ranks=2", 2, "--ranks 2: an update of 6 parts does not divide into blocks"},
    {"mlp.onnx --batch=12 --microbatches=6 --ranks=4", 2, "--ranks: each rank runs equally many parts"},
    {"mlp.onnx --batch=8 --microbatches=1 --ranks=2", 2, "--ranks: each rank runs equally many parts"},
    {"mlp.onnx --batch=8 --ranks=3", 2, "a batch of 8 samples does not divide"},
    {"mlp.onnx --batch=8 --ranks=2 --dp=clip=1,noise=1,delta=1e-5", 2, "--microbatches: with --dp"},
    {"mlp.onnx --batch=8 --ranks=2 --grads=per-sample", 2, "--grads shows the samples of a whole batch"},
    {"mlp.onnx --batch=8 --ranks=2 --ensemble=2", 2, "--ensemble: members run whole batches"},
    {"mlp.onnx --batch=8 --ranks=2 --target=cuda", 2, "--ranks is for --target=cpu so far"},
    {"mlp.onnx --batch=8 --ranks=0", 2, "--ranks needs a whole number"},
};
enum { NREFUSED = sizeof refused / sizeof *refused };

START_TEST(what_has_no_ranks_is_refused)
{
    const int code = sh(COMPILE "%s -o t", refused[_i].command);
    ck_assert_msg(code == refused[_i].code && strstr(text, refused[_i].why) != NULL, "%s: %d: %s", refused[_i].command, code,
                  text);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("ranks");
    tcase_add_loop_test(t, ranks_change_no_bit, 0, tests_do_all() ? NBITS : FEW);
    tcase_add_test(t, one_rank_is_no_option);
    tcase_add_test(t, buckets_change_no_bit);
    tcase_add_test(t, a_run_goes_on_with_other_ranks);
    tcase_add_test(t, a_killed_rank_costs_no_more_than_its_last_steps);
    tcase_add_test(t, ranks_agree_on_the_end_of_an_interrupted_run);
    tcase_add_test(t, one_rank_tells);
    tcase_add_test(t, plan_says_what_a_rank_holds_and_sends);
    tcase_add_test(t, plan_and_program_agree_on_bytes);
    tcase_add_loop_test(t, what_has_no_ranks_is_refused, 0, NREFUSED);
    return run_command_lines("ranks", t, make_nets);
}
