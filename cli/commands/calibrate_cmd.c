/* cli/commands/calibrate_cmd.c -- lowerset calibrate: builds small training programs, runs them,
 * and fits the machine's figures to the times of their kernels.
 *
 * The programs are networks of the zoo. Together they have kernels of every common class, from some
 * microseconds to some milliseconds. They are built like any program, several at once, and run one
 * by one, in three rounds. The median of a kernel's three times counts, so that the figures predict
 * a machine under its usual load. The time of a step outside its kernels is distributed over the
 * kernels. Each kernel is a sample with the ages of the bytes that it touches in its program
 * (codegen/planning/step_replay.h), so that the figures fit the model that predicts whole steps. */
#include "build_config.h"
#include "cli/commands/commands.h"
#include "cli/job/job.h"
#include "cli/job/machine_choice.h"
#include "cli/report/output.h"
#include "cli/commands/run_trainer.h"
#include "codegen/planning/measured_costs.h"
#include "codegen/planning/step_replay.h"
#include "compiler/cost/machine_fit.h"
#include "models/zoo.h"
#include "runtime/base/clock.h"
#include "scheduler/algorithms/tasks.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_SET = 7, ROUNDS = 3, MAX_STEPS = 4000, MIN_STEPS = 8 };

typedef struct Probe {
    const char *model, *loss, *optimizer;
    struct { const char *option, *value; } set[MAX_SET];
    unsigned how;               /* bits */
} Probe;
enum {
    QUICK = 1,                  /* runs also under --quick */
    STORED = 2,                 /* stores all gradients; else updates compute those of large
                                 * weights */
    BF16 = 4, F16 = 8,          /* computes in that type; else in floats */
    DIRECT = 16                 /* convolutions of bfloat16 are direct, and not by Winograd's
                                 * algorithm */
};

static const char *precision_of(const Probe *p)
{
    return p->how & BF16 ? "bf16" : p->how & F16 ? "f16" : "f32";
}

/* Dropout in one GPT's attention keeps its products and softmax from being fused. In 16 bits the
 * same kernels in fewer sizes: what is measured there is how they differ from those of floats. */
static const Probe probe[] = {
    {"mlp", "ce", "sgd:momentum=0.9", {{"batch", "64"}, {"width", "512"}, {"depth", "2"}}, QUICK},
    {"autoencoder", "mse", "sgd:momentum=0.9", {{"batch", "8"}}, 0},
    {"gpt",
     "ce",
     "adamw",
     {{"batch", "2"},
      {"depth", "1"},
      {"width", "128"},
      {"heads", "4"},
      {"context", "64"},
      {"vocab", "512"},
      {"dropout", "0.1"}},
     QUICK},
    {"gpt",
     "ce",
     "adamw",
     {{"batch", "2"},
      {"depth", "1"},
      {"width", "384"},
      {"heads", "6"},
      {"context", "384"},
      {"vocab", "6000"}},
     0},
    {"mlp", "ce", "sgd:momentum=0.9", {{"batch", "200"}, {"width", "1500"}}, 0},
    {"vgg16", "ce", "sgd:momentum=0.9", {{"batch", "2"}, {"width", "32"}, {"size", "32"}}, STORED},
    {"resnet18", "ce", "sgd:momentum=0.9", {{"batch", "4"}, {"width", "32"}, {"size", "64"}}, 0},
    {"resnet18", "ce", "sgd:momentum=0.9", {{"batch", "4"}, {"width", "64"}, {"size", "160"}}, 0},
    {"unet",
     "ce",
     "sgd:momentum=0.9",
     {{"batch", "2"}, {"width", "16"}, {"size", "64"}, {"up", "bilinear"}},
     0},
    {"unet",
     "ce",
     "sgd:momentum=0.9",
     {{"batch", "2"}, {"width", "48"}, {"size", "128"}, {"depth", "3"}},
     0},
    {"googlenet", "ce", "sgd:momentum=0.9", {{"batch", "4"}, {"size", "64"}}, 0},
    {"cnn", "ce", "sgd:momentum=0.9", {{"batch", "12"}, {"size", "64"}}, 0},
    {"gpt",
     "ce",
     "adamw",
     {{"batch", "2"},
      {"depth", "1"},
      {"width", "128"},
      {"heads", "4"},
      {"context", "64"},
      {"vocab", "512"},
      {"dropout", "0.1"}},
     BF16 | QUICK},
    {"gpt",
     "ce",
     "adamw",
     {{"batch", "2"},
      {"depth", "1"},
      {"width", "384"},
      {"heads", "6"},
      {"context", "384"},
      {"vocab", "6000"}},
     BF16},
    {"mlp", "ce", "sgd:momentum=0.9", {{"batch", "200"}, {"width", "1500"}}, BF16},
    {"resnet18", "ce", "sgd:momentum=0.9", {{"batch", "4"}, {"width", "64"}, {"size", "96"}}, BF16},
    {"unet",
     "ce",
     "sgd:momentum=0.9",
     {{"batch", "1"}, {"width", "48"}, {"size", "128"}, {"depth", "3"}},
     BF16},
    {"unet",
     "ce",
     "sgd:momentum=0.9",
     {{"batch", "2"}, {"width", "32"}, {"size", "64"}, {"depth", "3"}},
     BF16 | DIRECT},
    {"cnn", "ce", "sgd:momentum=0.9", {{"batch", "12"}, {"size", "64"}}, BF16 | QUICK},
    {"gpt",
     "ce",
     "adamw",
     {{"batch", "2"},
      {"depth", "1"},
      {"width", "256"},
      {"heads", "4"},
      {"context", "256"},
      {"vocab", "2000"}},
     F16},
    {"resnet18", "ce", "sgd:momentum=0.9", {{"batch", "4"}, {"width", "64"}, {"size", "96"}}, F16},
    {"cnn", "ce", "sgd:momentum=0.9", {{"batch", "12"}, {"size", "64"}}, F16 | QUICK},
};
enum { NPROBES = sizeof probe / sizeof *probe };

typedef struct Times { double ns[ROUNDS]; } Times;      /* of a kernel, a step */

typedef struct Calibration {
    const char *output, *dir;
    bool usual;                 /* output is the default file of plan and compile */
    bool quick, verbose;
    int threads;
    double seconds;             /* run time of a program in each round */
    LsArena *arena;
    LsMachine machine;
    LsSample *sample; uint32_t nsample, cap;
    Times *times; uint32_t room;                /* by sample */
} Calibration;

static const char *file_of(const Calibration *c, int k, const char *ending)
{
    return ls_arena_printf(c->arena, "%s/%d%s", c->dir, k, ending);
}

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "lowerset calibrate: %s: %s\n", what, why);
    return LS_EXIT_TOOL;
}

/* ---- options ---- */
static int parse(Calibration *c, int argc, char **argv)
{
    LsOptions o = {0};
    int code = ls_options_parse(&o, LS_CMD_CALIBRATE, argc, argv);
    c->threads = o.calibrate.threads > 0 ? (int)o.calibrate.threads : ls_processors();
    c->seconds = o.calibrate.quick ? 0.2 : 1.3;
    c->quick = o.calibrate.quick;
    c->verbose = o.output.verbose;
    c->output = o.output.file;
    return code != 0 ? code : (ls_output_check(c->output) ? 0 : LS_EXIT_MODEL);
}

/* ---- one program ---- */
static int write_model(const Calibration *c, int k)
{
    char err[256];
    const LsModel *m = ls_model_find(probe[k].model);
    LsModelRequest r = ls_model_request(m);
    for (int i = 0; i < MAX_SET && probe[k].set[i].option != NULL; i++)
        if (!ls_model_set(&r, probe[k].set[i].option, probe[k].set[i].value, err, sizeof err))
            return fail(probe[k].model, err);
    return ls_model_write(&r, file_of(c, k, ".onnx"), NULL, err, sizeof err) == 0
               ? 0 : fail(probe[k].model, err);
}

enum { NARGS = 16 };
/* The options of a probe's program, for compile and plan alike. */
static int arguments(const Calibration *c, int k, const char *command, const char *argv[NARGS])
{
    const char *all[] = {"lowerset",
                         command,
                         file_of(c, k, ".onnx"),
                         "--machine",
                         probe[k].how & DIRECT ? "cpu-amx" : "cpu",
                         "--no-alternatives",
                         "--loss",
                         probe[k].loss,
                         "--optimizer",
                         probe[k].optimizer,
                         "--precision",
                         precision_of(&probe[k]),
                         "--strategy",
                         "none",
                         "-q",
                         "--store-gradients"};
    int n = sizeof all / sizeof *all;
    memcpy(argv, all, sizeof all);
    return probe[k].how & STORED ? n : n - 1;
}

static int build(const Calibration *c, int k)
{
    const char *argv[NARGS + 4];
    int n = arguments(c, k, "compile", argv);
    argv[n++] = "-o";
    argv[n++] = file_of(c, k, "");
    return ls_compile_main(n, (char **)argv);
}

/* Runs the program for about the given time; it writes its log and its profile. */
static int run(const Calibration *c, int k, int64_t steps)
{
    unlink(file_of(c, k, ".log"));
    return ls_trial_run(c->arena, &(LsTrial){.of = probe[k].model, .program = file_of(c, k, ""),
                                             .log = file_of(c, k, ".log"), .steps = steps,
                                             .profile = file_of(c, k, ".json"),
                                             .threads = c->threads});
}

static void add_sample(Calibration *c, LsWork work)
{
    c->sample = ls_arena_grow(c->arena, c->sample, c->nsample, c->nsample + 1u, sizeof *c->sample,
                              &c->cap);
    c->times = ls_arena_grow(c->arena, c->times, c->nsample, c->nsample + 1u, sizeof *c->times,
                             &c->room);
    c->sample[c->nsample++] = (LsSample){.work = work};
}

/* Ratio of the step's time to the sum of its kernels, both as medians of many steps. More than a
 * tenth is not overhead, so the ratio is limited. */
static double beside(const Calibration *c, int k, const double *ns, uint32_t n)
{
    double step = ls_trial_step_ns(c->arena, file_of(c, k, ".log")), sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += ns[i] > 0 ? ns[i] : 0;
    return sum > 0 && step > sum ? fmin(step / sum, 1.1) : 1;
}

/* Records the run's measurements. The samples of a probe begin at `first`; round 0 adds them. */
static int collect(Calibration *c, LsJob *job, int k, int round, uint32_t first)
{
    LsMeasured from;
    const LsProblem *p = job->train_problem;
    if (!ls_measured_load(&job->cx, file_of(c, k, ".json"), &from))
        return LS_EXIT_TOOL;
    const double *ns = ls_measured_find(&job->cx, &from, p);
    double times = beside(c, k, ns, p->dag.nnode);
    const LsWork *work = ls_replay(c->arena, p, &job->none, &c->machine);
    for (uint32_t i = 0, run = 0; i < job->none.nstep; i++) {
        uint32_t node = job->none.step[i].id, at = run;
        if (job->none.step[i].free)
            continue;
        run++;
        if (ns[node] <= 0)
            continue;
        if (round == 0)
            add_sample(c, work[at]);
        if (first < c->nsample)
            c->times[first++].ns[round] = times * ns[node];
    }
    return 0;
}

/* One round of probe k. *first: its first sample, set by round 0. */
static int measure(Calibration *c, int k, int round, uint32_t *first)
{
    const char *argv[NARGS];
    LsOptions o = {0};
    LsJob job;
    int code = ls_options_parse(&o, LS_CMD_PLAN, arguments(c, k, "plan", argv), (char **)argv);
    code = code != 0 ? code : ls_job_start(&job, &o, true);
    if (code != 0)
        return code;
    code = ls_job_load(&job);
    if (code == 0) {
        double slower = fmax((double)c->machine.threads / c->threads, 1);
        int64_t steps = (int64_t)(c->seconds * 1e9 / (slower * job.none.cost + 1));
        steps = steps < MIN_STEPS ? MIN_STEPS : steps > MAX_STEPS ? MAX_STEPS : steps;
        *first = round == 0 ? c->nsample : *first;
        code = run(c, k, steps);
    }
    if (code == 0)
        code = collect(c, &job, k, round, *first);
    ls_job_end(&job);
    return code;
}

/* ---- all programs ---- */
static bool taken(const Calibration *c, int k) { return !c->quick || probe[k].how & QUICK; }

static int count(const Calibration *c)
{
    int n = 0;
    for (int k = 0; k < NPROBES; k++)
        n += taken(c, k);
    return n;
}

static void say(const Calibration *c, const char *what, int k, int number)
{
    fprintf(stderr, "calibrate: %s %d of %d: %s", what, number, count(c), probe[k].model);
    for (int i = 0; i < MAX_SET && probe[k].set[i].option != NULL; i++)
        fprintf(stderr, " %s=%s", probe[k].set[i].option, probe[k].set[i].value);
    fprintf(stderr, " in %s\n", precision_of(&probe[k]));
}

/* Builds the program of a probe in a process of its own. */
static int start_build(const Calibration *c, int k)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        int code = write_model(c, k);
        code = code != 0 ? code : build(c, k);
        fflush(NULL);
        _exit(code);
    }
    return pid > 0 ? 0 : fail(probe[k].model, strerror(errno));
}

/* Waits until one build has ended. */
static int await_build(void)
{
    int status;
    while (wait(&status) < 0)
        if (errno != EINTR)
            return fail("building a program", strerror(errno));
    return WIFEXITED(status) ? WEXITSTATUS(status) : LS_EXIT_TOOL;
}

/* Builds as many programs at once as there are processors. */
static int build_all(const Calibration *c)
{
    int running = 0, number = 0, code = 0;
    for (int k = 0; code == 0 && k < NPROBES; k++) {
        if (!taken(c, k))
            continue;
        if (running == ls_processors()) {
            code = await_build();
            running--;
        }
        if (code == 0) {
            say(c, "building", k, ++number);
            code = start_build(c, k);
            running += code == 0;
        }
    }
    for (; running > 0; running--) {
        int last = await_build();
        code = code != 0 ? code : last;
    }
    return code;
}

static int measure_all(Calibration *c)
{
    static const char *const doing[ROUNDS] = {"running", "running again", "running once more"};
    uint32_t first[NPROBES] = {0};
    int code = build_all(c);
    for (int round = 0; round < ROUNDS; round++) {
        int number = 0;
        for (int k = 0; code == 0 && k < NPROBES; k++)
            if (taken(c, k)) {
                say(c, doing[round], k, ++number);
                code = measure(c, k, round, &first[k]);
            }
    }
    return code;
}

/* Takes the median of each kernel's three times. */
static void settle(const Calibration *c)
{
    const double much = 1.25;
    double least = 0, most = 0;
    for (uint32_t i = 0; i < c->nsample; i++) {
        const double *ns = c->times[i].ns;
        double lo = fmin(ns[0], ns[1]), hi = fmax(ns[0], ns[1]);
        c->sample[i].ns = fmax(lo, fmin(hi, ns[2]));
        least += fmin(lo, ns[2]);
        most += fmax(hi, ns[2]);
    }
    if (most > much * least)
        fprintf(
            stderr,
            "calibrate: the machine was busy: the rounds differ by %.0f %%; run it again when the "
            "machine is idle\n",
            100 * (most / least - 1));
}

static void remove_files(const Calibration *c)
{
    static const char *const ending[] = {"", ".onnx", ".json", ".log"};
    for (int k = 0; k < NPROBES; k++)
        for (size_t i = 0; i < sizeof ending / sizeof *ending; i++)
            unlink(file_of(c, k, ending[i]));
    rmdir(c->dir);
}

/* ---- the result ---- */
static int vector_lanes(void)
{
#if defined(__x86_64__) || defined(__i386__)
    return __builtin_cpu_supports("avx512f") ? 16 : __builtin_cpu_supports("avx") ? 8 : 4;
#else
    return 4;
#endif
}

/* The processor's name, "Intel(R) Xeon(R) Processor", or the machine's architecture. */
static void describe(LsMachine *m)
{
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "r");
    snprintf(m->what, sizeof m->what, "this machine");
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':') != NULL) {
            line[strcspn(line, "#\n")] = '\0';
            snprintf(m->what, sizeof m->what, "%.100s", strchr(line, ':') + 2);
            break;
        }
    if (f != NULL)
        fclose(f);
}

/* Creates the folders above a file. */
static void make_folders(LsArena *a, const char *path)
{
    char *copy = ls_arena_strdup(a, path);
    for (char *at = strchr(copy + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        mkdir(copy, 0777);
        *at = '/';
    }
}

typedef struct Result { const Calibration *c; double missed; } Result;

static void put_machine(FILE *to, void *user)
{
    const Calibration *c = ((const Result *)user)->c;
    ls_machine_write(to, &c->machine, ls_arena_printf(c->arena, "Fitted by lowerset " LS_VERSION
                     " calibrate%s to %u kernels, mean error %.1f %% of their time",
                     c->quick ? " --quick" : "", c->nsample,
                     100 * ((const Result *)user)->missed));
}

static int write_machine(const Calibration *c, double missed)
{
    Result result = {c, missed};
    if (c->usual)
        make_folders(c->arena, c->output);
    return ls_output_write(c->output, put_machine, &result) ? 0 : LS_EXIT_MODEL;
}

int ls_calibrate_main(int argc, char **argv)
{
    Calibration c = {.arena = ls_arena_new()};
    int64_t start = ls_now_ns();
    double missed = 0;
    int code = parse(&c, argc, argv);
    c.usual = c.output == NULL;
    if (code == 0 && c.usual && (c.output = ls_machine_path(c.arena)) == NULL)
        code = fail("neither XDG_CONFIG_HOME nor HOME is set", "name the file with -o FILE");
    if (code == 0) {
        c.dir = ls_temporary_folder(c.arena);
        code = c.dir != NULL ? 0 : LS_EXIT_TOOL;
    }
    if (code == 0) {
        ls_machine_find(&c.machine, "cpu");
        c.machine.lanes = vector_lanes();
        c.machine.step = 0;     /* the samples include it */
        strcpy(c.machine.name, "calibrated");
        describe(&c.machine);
        code = measure_all(&c);
        remove_files(&c);
    }
    if (code == 0) {
        c.machine.threads = c.threads;
        settle(&c);
        missed = ls_machine_fit(c.arena, &c.machine, c.sample, c.nsample);
        code = write_machine(&c, missed);
    }
    if (code == 0)
        printf("%s: %u kernels with %d thread%s, mean error %.1f %% of their time, after %.0f s\n",
               c.output, c.nsample, c.threads, c.threads == 1 ? "" : "s", 100 * missed,
               1e-9 * (double)(ls_now_ns() - start));
    if (code == 0 && c.verbose)
        ls_machine_write(stdout, &c.machine, NULL);
    ls_arena_free(c.arena);
    return code;
}
