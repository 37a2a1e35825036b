/* tests/whole/test_ranks.c -- training over ranks, through the command line: the result is that of
 * one process that runs all parts, bit for bit, whatever recomputes, slices or is gathered, with a
 * number of ranks that was compiled in or is given at the start; runs go on with another number of
 * ranks, and after ranks were killed; what has no meaning over ranks is refused. */
#include "tests/support/command_line.h"
#include "tests/support/less.h"
#include "tests/support/suite.h"

#include <signal.h>
#include <sys/wait.h>

#define COMPILE LS_BUILD "/lowerset compile -q -O0 --plan-effort=2 "
#define RUN " --progress none --seed 3 --lr 0.01 --epochs 1000 "

static void make_nets(void)
{
    MUST(LS_BUILD "/lowerset model gpt --depth=1 --heads=2 --width=16 --context=8 --vocab=17 "
                  "--dropout=0.2 -o gpt.onnx");
    MUST(LS_BUILD "/lowerset model unet --depth=1 --size=4 --width=2 -o unet.onnx");
    MUST(LS_BUILD "/lowerset model mlp --batch=0 --width=9 --size=4 -o mlp.onnx");
    MUST(COMPILE "unet.onnx --batch=8 --microbatches=4 --optimizer=adam -o one");
    MUST(COMPILE "unet.onnx --batch=8 --microbatches=4 --ranks=any --optimizer=adam -o any");
}

/* ---- bits ---- */

/* any: the numbers of ranks of runs of a way with --ranks=any */
static const struct {
    const char *net;
    int steps;
    bool statistics;
    const char *ways[5];
    int any[4];
} bits[] = {
    {"unet.onnx --batch=8 --microbatches=4 --optimizer=adam",
     20,
     true,
     {"", "--ranks=2 --recompute=except-last", "--ranks=any --budget=min"},
     {2, 1, 4}},
    {"mlp.onnx --batch=6 --microbatches=6 --optimizer=rmsprop:momentum=0.9",
     200,
     false,
     {"", "--ranks=3", "--ranks=any"},
     {6, 1, 3}},
    {"gpt.onnx --batch=4 --microbatches=2 --precision=f16 --loss-scale=torch:init=1e6,period=3 "
     "--accumulate=2",
     12,
     false,
     {"", "--ranks=any"},
     {1, 2}},
    {"unet.onnx --batch=8 --microbatches=4 --optimizer=sgd:momentum=0.9",
     200,
     true,
     {"", "--ranks=2", "--ranks=4"},
     {0}},
    {"unet.onnx --batch=6 --microbatches=6 --optimizer=sgd:momentum=0.9 --clip-norm=1",
     20,
     true,
     {"", "--ranks=3 --recompute=all", "--ranks=6"},
     {0}},
    {"gpt.onnx --batch=8 --microbatches=4 --optimizer=adamw --ignore-index=3 --store-gradients",
     12,
     false,
     {"", "--ranks=2 --recompute=none", "--ranks=any --recompute=except-last"},
     {1, 2, 4}},
    {"gpt.onnx --batch=4 --microbatches=2 --optimizer=lamb --ema=0.9",
     12,
     false,
     {"", "--ranks=2"},
     {0}},
    {"gpt.onnx --batch=4 --microbatches=2 --optimizer=muon",
     12,
     false,
     {"", "--ranks=any"},
     {1, 2}},
    {"gpt.onnx --batch=4 --microbatches=2 --optimizer=nadam --precision=bf16",
     12,
     false,
     {"", "--ranks=2"},
     {0}},
    {"mlp.onnx --batch=5 --microbatches=5 --optimizer=adafactor --precision=f64",
     12,
     false,
     {"", "--ranks=any"},
     {5, 1}},
};
enum { NBITS = sizeof bits / sizeof *bits, FEW = 3 };

/* Runs the program of that name. ranks: 0: as compiled. */
static void run_bits(int row, const char *name, int ranks)
{
    char given[32] = "";
    if (ranks > 0)
        snprintf(given, sizeof given, "--ranks %d", ranks);
    MUST("rm -rf s%s && ./%s --data synthetic:19" RUN
         "--steps %d --save s%s --save-every 1000 --val synthetic:9 %s "
         "--dump %s.npz",
         name, name, bits[row].steps, name, given, name);
    MUST("mv out %s.txt; ./first --data synthetic:19" RUN
         "--steps %d --resume s%s/$(ls s%s) --dump %s-on.npz",
         name, bits[row].steps + 3, name, name, name);
}

static void compare_bits(int row, int way, int ranks)
{
    run_bits(row, "other", ranks);
    ck_assert_msg(same_arrays("first.npz", "other.npz", "param/")
                      && same_arrays("first.npz", "other.npz", "loss")
                      && (!bits[row].statistics || same_arrays("first.npz", "other.npz", "stat/"))
                      && same_arrays("first-on.npz", "other-on.npz", "param/"),
                  "%s %s %d: %s", bits[row].net, bits[row].ways[way], ranks, text);
    MUST("cmp first.txt other.txt");
}

/* 19 samples: the last batch has parts that are half full and parts, and ranks, without samples.
 * The last checkpoint has what the dump has not, and is that of one process but for the plan's
 * name: it goes on there. Checkpoints of one program are the same file, whatever its ranks. */
START_TEST(ranks_change_no_bit)
{
    for (int k = 0; bits[_i].ways[k] != NULL; k++) {
        MUST(COMPILE "%s %s -o %s", bits[_i].net, bits[_i].ways[k], k == 0 ? "first" : "other");
        if (k == 0)
            run_bits(_i, "first", 0);
        else if (strstr(bits[_i].ways[k], "any") == NULL)
            compare_bits(_i, k, 0);
        for (int n = 0; strstr(bits[_i].ways[k], "any") != NULL && n < 4 && bits[_i].any[n] > 0;
             n++) {
            compare_bits(_i, k, bits[_i].any[n]);
            MUST("cp sother/* any-%d; cmp any-0 any-%d", n, n);
        }
    }
}
END_TEST

START_TEST(one_rank_is_no_option)
{
    MUST(COMPILE "gpt.onnx --optimizer=adam --batch=4 --microbatches=2 --emit=c -o plain.c");
    MUST(COMPILE
         "gpt.onnx --optimizer=adam --batch=4 --microbatches=2 --ranks=1 --emit=c -o one.c");
    MUST("cmp plain.c one.c");
    MUST(COMPILE
         "gpt.onnx --optimizer=adam --batch=4 --ranks=2 --emit=c -o ranks.c"); /* a part for each */
    MUST(COMPILE
         "gpt.onnx --optimizer=adam --batch=4 --ranks=2 --microbatches=2 --emit=c -o more.c");
    MUST("cmp ranks.c more.c; ! cmp -s plain.c more.c");
}
END_TEST

/* One sum is of no parameter: that of the labels that count. Checkpoints bring slices of all
 * buckets together. */
START_TEST(buckets_change_no_bit)
{
    static const char *const bucket[] = {"1", "700", "1000000000"};
    MUST(COMPILE "gpt.onnx --batch=8 --ranks=4 --optimizer=adam --ignore-index=3 -o t");
    for (int k = 0; k < 3; k++) {
        MUST("rm -rf s%d; ./t --data synthetic:19" RUN "--steps 20 --bucket %s --dump %s.npz "
             "--save s%d --save-every 1000",
             k, bucket[k], k == 0 ? "first" : "other", k);
        ck_assert(k == 0 || same_arrays("first.npz", "other.npz", "param/"));
        MUST("cmp s0/* s%d/*", k);
    }
    MUST("./t --data synthetic:19" RUN "--steps 20 --late-exchange --dump other.npz");
    ck_assert(same_arrays("first.npz", "other.npz", "param/"));
    MUST("./t --print-plan | head -2 | tail -1");
    const double total = told("total ") - told("constants ");
    MUST(LS_BUILD "/lowerset plan -q --plan-effort=2 gpt.onnx --batch=8 --ranks=4 --optimizer=adam "
                  "--ignore-index=3 --json | "
                  "tr '{' '\\n' | grep '^\"ranks\":4,'");
    ck_assert_msg(told("\"total_bytes\":") == total, "%.0f: %s", total, text);
}
END_TEST

/* Both options reach the program's table of buckets. */
START_TEST(buckets_are_as_the_options_say)
{
    static const struct { const char *options; int all, at_the_end;
    } shown[] = {{"", 1, 0},
                 {"--bucket 1", 22, 0},
                 {"--bucket 1 --late-exchange", 22, 22},
                 {"--late-exchange", 1, 1}};
    for (int k = 0; k < 4; k++) {
        MUST("(./any --print-plan --ranks 4 %s | grep '^over 4 ranks: gradients are exchanged "
             "after' | sed 's/ bytes/\\n/g' >rows)",
             shown[k].options);
        MUST("grep -c ' step' rows");
        ck_assert_msg(atoi(text) == shown[k].all, "%s: %s", shown[k].options, text);
        MUST("(grep -c 'the last step' rows; true)");
        ck_assert_msg(atoi(text) == shown[k].at_the_end, "%s: %s", shown[k].options, text);
    }
}
END_TEST

/* Rank 0 runs its block of the 4 parts of each batch, and no other part. */
START_TEST(a_rank_runs_its_own_parts)
{
    for (int n = 1; n <= 4; n *= 2) {
        MUST("./any --data synthetic:16" RUN "--steps 6 --ranks %d --profile profile.json", n);
        MUST("cat profile.json");
        ck_assert_msg(told("\"runs\":") == 24 / n, "%d ranks: %g runs", n, told("\"runs\":"));
    }
}
END_TEST

/* ---- runs ---- */

#define GO "--data synthetic:21 --lr 0.01 --seed 5 --progress none --epochs 1000"

START_TEST(a_run_goes_on_with_other_ranks)
{
    static const int n[] = {4, 2, 1, 4, 2};
    MUST("rm -rf saved; ./one " GO " --steps 20 --dump first.npz");
    for (int k = 0; k < 5; k++)
        MUST("./any " GO " --ranks %d --steps %d --save saved --save-every 3 --keep-last 2 "
                         "--resume auto --dump other.npz",
             n[k], 4 * k + 4);
    ck_assert(same_arrays("first.npz", "other.npz", "param/")
              && same_arrays("first.npz", "other.npz", "stat/"));
    ck_assert_int_eq(sh("./any --ranks 2 --data synthetic:21 --seed 6 --save saved --resume auto"),
                     2);
    ck_assert_msg(strstr(text, "--seed=6, but") != NULL, "%s", text);
}
END_TEST

/* Nobody starts ranks that do not divide the parts, and no file is touched. */
START_TEST(a_number_of_ranks_that_does_not_fit_is_refused)
{
    static const struct { const char *before, *options, *why;
    } run[] = {
        {"", "--ranks 3", "--ranks=3: this program is for 1, 2 or 4 ranks; compile again"},
        {"", "--peers a:1,b:1,c:1 --rank 0",
         "--peers asks for 3 ranks, but this program is for 1, 2 or 4 ranks"},
        {"OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_RANK=0", "",
         "mpirun asks for 3 ranks, but this program is for 1, 2 or 4 ranks"},
        {"PMI_SIZE=2 PMI_RANK=0", "",
         "mpiexec started 2 processes (PMI_SIZE), and nothing joins them"},
        {"SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=0", "--ranks 2",
         "this program is for 2 ranks, but srun started 4 processes"},
        {"", "--comm local", "--comm: one rank sends no messages; give --ranks"},
        {"", "--ranks 2 --eval --comm local --print-plan", NULL},
        {"", "--eval --peers a:1,b:1 --rank 0", "--peers: evaluation runs in one process"},
        {"", "--ranks 2 --comm nccl", "--comm=nccl: this program runs on no GPU"},
        {"", "--ranks 5 --print-plan", "--ranks=5: this program is for 1, 2 or 4 ranks"},
    };
    MUST("rm -rf saved; ./any " GO " --steps 3 --save saved");
    MUST("(ls -l --time-style=full-iso saved >before)");
    for (size_t k = 0; k < sizeof run / sizeof run[0]; k++) {
        const int code = sh("%s ./any " GO " --steps 9 --save saved %s 2>&1 >/dev/null",
                            run[k].before, run[k].options);
        ck_assert_msg(code == (run[k].why != NULL ? 2 : 0)
                          && (run[k].why == NULL || strstr(text, run[k].why) != NULL),
                      "%s: %d: %s", run[k].options, code, text);
        ck_assert_msg(run[k].why == NULL
                          || strstr(strstr(text, ": error: ") + 1, ": error: ") == NULL,
                      "%s", text);
        MUST("ls -l --time-style=full-iso saved | cmp - before");
    }
    ck_assert_int_eq(sh("OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_RANK=1 ./any " GO), 2);
    ck_assert_msg(text[0] == '\0', "%s", text);         /* rank 0 speaks */
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

/* A run of 4 ranks that is to be ended; returns its process. Its messages are in the file
 * `ended`. */
static int start_run(int update)
{
    const int pid = fork();
    if (pid == 0) {
        if (freopen("ended", "w", stdout) == NULL || freopen("ended", "w", stderr) == NULL)
            _exit(99);
        execl("./any", "any", "--ranks", "4", "--data", "synthetic:21", "--lr", "0.01", "--seed",
              "5", "--epochs", "1000000", "--steps", "100000000", "--progress", "none", "--save",
              "saved", "--save-every", "1", "--keep-last", "3", "--resume", "auto", NULL);
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
    sh("cat ended");
    ck_assert_msg(rank > 0, "rank %d never ran: %s", k, text);
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
    MUST("./any --ranks 2 " GO
         "000 --steps %d --save saved --save-every 1000000 --resume auto --dump other.npz",
         done + 20);
    MUST("./one " GO "000 --steps %d --dump first.npz", done + 20);
    ck_assert(same_arrays("first.npz", "other.npz", "param/")
              && same_arrays("first.npz", "other.npz", "stat/"));
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

static char state_of(int pid)
{
    char path[64], state = '?';
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "r");
    if (f != NULL) {
        if (fscanf(f, "%*d (any) %c", &state) != 1)
            state = '?';
        fclose(f);
    }
    return state;
}

/* Ctrl-Z stops the starter and all ranks, and they go on together. */
START_TEST(a_run_that_is_stopped_goes_on)
{
    int status, rank[4];
    MUST("rm -rf saved");
    const int pid = trains(start_run(0));
    for (int k = 0; k < 4; k++)
        ck_assert_int_gt(rank[k] = child_of(pid, k), 0);
    kill(pid, SIGTSTP);
    ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
    ck_assert(WIFSTOPPED(status));
    for (int k = 0; k < 4; k++) {
        for (int wait = 0; wait < 5000 && state_of(rank[k]) != 'T'; wait++)
            usleep(1000);
        ck_assert_msg(state_of(rank[k]) == 'T', "rank %d is in state %c", k, state_of(rank[k]));
    }
    kill(pid, SIGCONT);
    for (int k = 0; k < 4; k++) {
        for (int wait = 0; wait < 5000 && state_of(rank[k]) == 'T'; wait++)
            usleep(1000);
        ck_assert_msg(state_of(rank[k]) != 'T', "rank %d does not go on", k);
    }
    ck_assert_int_eq(end_run(pid, 0, SIGINT), 130);
    MUST("grep -q 'interrupted after step' ended");
    check_saved();
}
END_TEST

/* One rank tells what went wrong, and all end with its exit code. */
START_TEST(one_rank_tells)
{
    static const struct { const char *command; int code; const char *why;
    } fails[] = {
        {"./any --ranks 4 --data none.npz", 8, "none.npz: No such file"},
        {"./any --ranks 4 --data synthetic --lr 1e30 --steps 50", 7, "training has diverged"},
        {"./any --ranks 4 --data synthetic --lr 1e30 --steps 50 --check-numerics", 7,
         "is the first to give an infinity"},
        {"./any --ranks 4 --data synthetic --check-gradients", 2,
         "--check-gradients is for one process"},
        {"./one --data synthetic --bucket 5", 2, "--bucket: this program is for one process"},
    };
    for (int k = 0; k < 5; k++) {
        const int code = sh("%s --progress none 2>&1 >/dev/null", fails[k].command);
        ck_assert_msg(code == fails[k].code && strstr(text, fails[k].why) != NULL, "%s: %d: %s",
                      fails[k].command, code, text);
        ck_assert_msg(strstr(strstr(text, ": error: ") + 1, ": error: ") == NULL, "%s", text);
    }
}
END_TEST

/* ---- plans ---- */

START_TEST(plan_says_what_a_rank_holds_and_sends)
{
    MUST(LS_BUILD "/lowerset plan -q --plan-effort=2 mlp.onnx --batch=8 --microbatches=4 --ranks=2 "
                  "--optimizer=adam");
    ck_assert_msg(strstr(text, "over 2 ranks: each runs 2 of 4 parts of an update") != NULL, "%s",
                  text);
    ck_assert_msg(strstr(text, "each rank updates a slice of every parameter, and keeps 1.25 KiB "
                               "for its part of 1.98 KiB")
                      != NULL,
                  "%s", text);
    MUST(LS_BUILD "/lowerset plan -q --plan-effort=2 mlp.onnx --batch=8 --ranks=2 --optimizer=adam "
                  "--clip-norm=1");
    ck_assert_msg(strstr(text, "every rank makes all of them, with 1.98 KiB of the optimizer's "
                               "state, as the norm is that of all")
                      != NULL,
                  "%s", text);
    MUST(LS_BUILD
         "/lowerset plan -q --plan-effort=2 mlp.onnx --batch=8 --microbatches=4 --ranks=4 --json");
    ck_assert_msg(strstr(text, "{\"ranks\":4,\"parts\":4,\"own_parts\":1,\"sliced\":true,") != NULL,
                  "%s", text);
    MUST(LS_BUILD "/lowerset plan -q --plan-effort=2 mlp.onnx --batch=8 --microbatches=4 "
                  "--ranks=any --optimizer=adam");
    ck_assert_msg(
        strstr(text,
               "over 1 rank, the number of ranks with the most memory: each runs 4 of 4 parts")
            != NULL,
        "%s", text);
    ck_assert_msg(strstr(text, "\n      4         1 ") != NULL, "%s", text);
}
END_TEST

/* The trainer takes what the plan says, whatever the number of ranks: its state, buffers and
 * arena. */
START_TEST(plan_and_program_agree_on_bytes)
{
    double worst = 0;
    MUST(LS_BUILD "/lowerset plan -q --plan-effort=2 unet.onnx --batch=8 --microbatches=4 "
                  "--ranks=any --optimizer=adam --json "
                  ">p.json; true");
    for (int n = 1; n <= 4; n *= 2) {
        MUST("./any --print-plan --ranks %d | head -2 | tail -1", n);
        const double constants = told("constants "), total = told("total ");
        MUST("tr '{' '\\n' <p.json | grep '^\"ranks\":%d,' | tail -1", n);
        ck_assert_msg(total == told("\"total_bytes\":") + constants, "%d ranks: %.0f: %s", n, total,
                      text);
        worst = total > worst ? total : worst;
    }
    MUST("./any --print-plan --ranks 1 | head -2 | tail -1");
    const double state = told("state "), arena = told("arena "), constants = told("constants "),
                 ring = told("ring ");
    MUST("cat p.json");
    ck_assert_msg(worst == state + arena + constants + ring + told("\"exchange_bytes\":"),
                  "%.0f: %s", worst, text);
}
END_TEST

static const struct { const char *command; int code; const char *why;
} refused[] = {
    {"mlp.onnx --batch=12 --microbatches=6 --ranks=2", 2,
     "--ranks 2: an update of 6 parts does not divide into blocks"},
    {"mlp.onnx --batch=12 --microbatches=6 --ranks=4", 2,
     "--ranks: each rank runs equally many parts"},
    {"mlp.onnx --batch=8 --microbatches=1 --ranks=2", 2,
     "--ranks: each rank runs equally many parts"},
    {"mlp.onnx --batch=8 --ranks=3", 2, "a batch of 8 samples does not divide"},
    {"mlp.onnx --batch=8 --ranks=2 --dp=clip=1,noise=1,delta=1e-5", 2, "--microbatches: with --dp"},
    {"mlp.onnx --batch=8 --ranks=2 --grads=per-sample", 2,
     "--grads shows the samples of a whole batch"},
    {"mlp.onnx --batch=8 --ranks=2 --ensemble=2", 2, "--ensemble: members run whole batches"},
    {"mlp.onnx --batch=8 --ranks=2 --optimizer=none", 2,
     "with --optimizer=none there is nothing that ranks could share"},
    {"mlp.onnx --batch=8 --ranks=0", 2,
     "--ranks needs a whole number from 1 to 1024, or any, not '0'"},
    {"mlp.onnx --batch=8 --ranks=all", 2,
     "--ranks needs a whole number from 1 to 1024, or any, not 'all'"},
    {"mlp.onnx --batch=8 --ranks=any", 2, "say with --microbatches how many there are"},
    {"mlp.onnx --batch=8 --microbatches=4 --accumulate=3 --ranks=any", 2,
     "--ranks any: no number of ranks but 1 divides"},
    {"mlp.onnx --batch=8 --microbatches=2 --ranks=any --stages=2", 2,
     "--stages: each stage is a rank; leave --ranks out"},
};
enum { NREFUSED = sizeof refused / sizeof *refused };

START_TEST(what_has_no_ranks_is_refused)
{
    const int code = sh(COMPILE "%s -o t", refused[_i].command);
    ck_assert_msg(code == refused[_i].code && strstr(text, refused[_i].why) != NULL, "%s: %d: %s",
                  refused[_i].command, code, text);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("ranks");
    tcase_add_loop_test(t, ranks_change_no_bit, 0, tests_do_all() ? NBITS : FEW);
    tcase_add_test(t, one_rank_is_no_option);
    tcase_add_test(t, buckets_change_no_bit);
    tcase_add_test(t, buckets_are_as_the_options_say);
    tcase_add_test(t, a_rank_runs_its_own_parts);
    tcase_add_test(t, a_run_goes_on_with_other_ranks);
    tcase_add_test(t, a_number_of_ranks_that_does_not_fit_is_refused);
    tcase_add_test(t, a_killed_rank_costs_no_more_than_its_last_steps);
    tcase_add_test(t, ranks_agree_on_the_end_of_an_interrupted_run);
    tcase_add_test(t, a_run_that_is_stopped_goes_on);
    tcase_add_test(t, one_rank_tells);
    tcase_add_test(t, plan_says_what_a_rank_holds_and_sends);
    tcase_add_test(t, plan_and_program_agree_on_bytes);
    tcase_add_loop_test(t, what_has_no_ranks_is_refused, 0, NREFUSED);
    return run_command_lines("ranks", t, make_nets);
}
