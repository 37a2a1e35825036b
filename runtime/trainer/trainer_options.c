/* runtime/trainer/trainer_options.c -- see trainer_options.h. */
#include "runtime/trainer/trainer_options.h"
#include "runtime/trainer/checkpoint_folder.h"

#include "runtime/base/number.h"
#include "runtime/trainer/learning_rate.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

typedef enum { FLAG, INTEGER, TEXT,
               REAL,                /* a learning rate */
               OUTPUT,              /* the name of a file that is written */
               AMOUNT               /* an integer that need not be given: then -1 */
} Kind;
typedef struct Row {
    const char *group;          /* heading of the help text, at its first row */
    const char *name, *arg;
    Kind kind;
    size_t at;                  /* in LsTrainerOptions */
    double least;               /* numbers: the least one allowed */
    const char *help;
} Row;
#define AT(field) offsetof(LsTrainerOptions, field)

static const Row row[] = {
    {"Data", "data", "SPEC", TEXT, AT(data), 0,
     "FILE, FILE,FILE or INPUT=FILE,...: IDX, NPY, NPZ "
     "(members by input name, target 'label'), CSV, .txt, raw; or synthetic[:SAMPLES]"},
    {NULL, "val", "SPEC", TEXT, AT(val), 0, "data to evaluate on after every epoch"},
    {NULL, "label-from", "INPUT", TEXT, AT(label_from), 0,
     "the target is that input (autoencoders); "
     "--target=input is the same for the first one"},
    {NULL, "scale", "S", TEXT, AT(scale), 0,
     "factor of real inputs; default: bytes are divided by 255"},
    {NULL, "mean", "M,...", TEXT, AT(mean), 0, "subtracted after scaling, one or one per channel"},
    {NULL, "std", "D,...", TEXT, AT(std), 0, "divided by after that"},
    {NULL, "raw", "TYPE", TEXT, AT(raw), 0, "files are bare numbers: float32, uint8, int64, ..."},
    {NULL, "shuffle", NULL, FLAG, AT(shuffle), 0,
     "a new order every epoch (default); --no-shuffle: "
     "file order"},
    {NULL, "drop-last", NULL, FLAG, AT(drop_last), 0, "leave out an incomplete last batch"},
    {NULL, "workers", "N", INTEGER, AT(workers), 0, "threads that prepare batches"},
    {"Training", "epochs", "N", INTEGER, AT(epochs), 1, "passes over the data (default 1)"},
    {NULL, "steps", "N", INTEGER, AT(steps), 1, "stop after N updates in all"},
    {NULL, "lr", "RATE", REAL, AT(lr), 0, "learning rate"},
    {NULL, "schedule", "S", TEXT, AT(schedule), 0,
     "constant, linear, cosine[:min=F], "
     "step:every=N,gamma=F; each with warmup=N, e.g. cosine:warmup=500"},
    {NULL, "seed", "N", INTEGER, AT(seed), 0, "of shuffling and dropout (default 0)"},
    {NULL, "threads", "N", INTEGER, AT(threads), 1,
     "default: all cores; results do not depend on it"},
    {NULL, "tune", NULL, FLAG, AT(tune), 0,
     "on a GPU: time what the libraries have for each convolution and product, keep the fastest"},
    {NULL, "eval", NULL, FLAG, AT(eval), 0, "no training: evaluate on --val, or on --data"},
    {"Results", "save", "DIR", TEXT, AT(save), 0, "checkpoints (safetensors) go here"},
    {NULL, "save-every", "N", INTEGER, AT(save_every), 1, "every N updates (default: every epoch)"},
    {NULL, "keep-last", "K", INTEGER, AT(keep_last), 1, "delete all but the last K checkpoints"},
    {NULL, "resume", "FILE", TEXT, AT(resume), 0,
     "go on from a checkpoint, bit for bit; auto: the "
     "newest in --save"},
    {NULL, "export", "FILE", OUTPUT, AT(export_to), 0,
     "write the trained model as ONNX, evaluation form"},
    {NULL, "image-grid", "FILE", OUTPUT, AT(image_grid), 0,
     "PNG or PPM: five inputs and what the model "
     "makes of them"},
    {"Reports", "log", "FILE", OUTPUT, AT(log), 0, "one JSON object per line and step"},
    {NULL, "progress", "MODE", TEXT, AT(progress), 0, "auto, bar, plain or none"},
    {NULL, "trace", "FILE", OUTPUT, AT(trace), 0, "timeline of the last steps (Chrome trace JSON)"},
    {NULL, "profile", "FILE", OUTPUT, AT(profile), 0, "mean time of every node (JSON)"},
    {NULL, "check-numerics", NULL, FLAG, AT(check_numerics), 0,
     "stop at the first node that makes a "
     "NaN, and name it"},
    {NULL, "check-gradients", "[=N]", AMOUNT, AT(check_gradients), 1,
     "no training: compare gradients of one batch with differences of its loss, for N elements of "
     "the parameters; exit 6 when they differ"},
    {NULL, "dump", "FILE", OUTPUT, AT(dump), 0,
     "NPZ of the last step: loss, out/, grad/, param/, stat/"},
    {NULL, "measure", NULL, FLAG, AT(measure), 0, "print how much of the arena the steps use"},
    {NULL, "print-plan", NULL, FLAG, AT(print_plan), 0, "print the table of steps and stop"},
    {NULL, "version", NULL, FLAG, AT(version), 0, "print model and plan and stop"},
    {NULL, "help", NULL, FLAG, AT(help), 0, "print this"},
};
enum { NROWS = sizeof row / sizeof row[0] };

/* What the compiler fixed; asking for it here is refused with the flag to compile with. */
static const char *const fixed[] = {
    "accumulate",      "arch",       "batch",      "batch-size", "bn",        "bn-var",    "budget",
    "clip-norm",       "clip-value", "dim",        "forget",     "freeze",    "keep",      "label",
    "label-smoothing", "loss",       "loss-input", "optimizer",  "precision", "recompute", "shape",
    "strategy",        "target",     "train",      "workspace",
};

/* Edit distance, cut to 32 characters. */
static int distance(const char *a, size_t na, const char *b)
{
    int line[33];
    size_t nb = strlen(b) > 32 ? 32 : strlen(b);
    for (size_t j = 0; j <= nb; j++)
        line[j] = (int)j;
    for (size_t i = 0; i < na; i++) {
        int corner = line[0]++;
        for (size_t j = 1; j <= nb; j++) {
            int best = corner + (a[i] != b[j - 1]);
            best = line[j] + 1 < best ? line[j] + 1 : best;
            best = line[j - 1] + 1 < best ? line[j - 1] + 1 : best;
            corner = line[j];
            line[j] = best;
        }
    }
    return line[nb];
}

static bool unknown(const char *name, size_t len, LsError *e)
{
    const char *near = NULL;
    int least = 4;
    for (size_t k = 0; k < sizeof fixed / sizeof fixed[0]; k++)
        if (strlen(fixed[k]) == len && memcmp(fixed[k], name, len) == 0)
            return ls_fail(e, LS_EXIT_USAGE,
                           "--%s was fixed when the trainer was compiled; compile again "
                           "with lowerset compile --%s",
                           fixed[k], strcmp(fixed[k], "batch-size") == 0 ? "batch" : fixed[k]);
    for (int k = 0; k < NROWS; k++) {
        int d = distance(name, len, row[k].name);
        if (d < least) {
            least = d;
            near = row[k].name;
        }
    }
    return ls_fail(e, LS_EXIT_USAGE, "unknown option --%.*s%s%s%s", (int)len, name,
                   near ? "; did you mean --" : "", near ? near : "", near ? "?" : " (see --help)");
}

static bool set(LsTrainerOptions *o, const Row *r, const char *value, LsError *e)
{
    char *to = (char *)o + r->at;
    if (r->kind == TEXT || r->kind == OUTPUT) {
        *(const char **)(void *)to = value;
        return *value ? true : ls_fail(e, LS_EXIT_USAGE, "--%s needs a %s", r->name, r->arg);
    }
    bool ok = r->kind == REAL
                  ? ls_rate_parse_lr(value, (double *)(void *)to)
                  : ls_number_whole(value, (int64_t)r->least, INT64_MAX, (int64_t *)(void *)to);
    return ok ? true
              : ls_fail(e, LS_EXIT_USAGE, "--%s=%s: %s from %g on is wanted", r->name, value,
                        r->kind == REAL ? "a number" : "an integer", r->least);
}

/* One option at argv[*k]; *k moves on when its value is the next word. */
static bool parse_one(LsTrainerOptions *o, int argc, char **argv, int *k, LsError *e)
{
    const char *name = argv[*k] + 2, *equal = strchr(name, '=');
    size_t len = equal ? (size_t)(equal - name) : strlen(name);
    bool no = strncmp(name, "no-", 3) == 0;
    if (strcmp(name, "target=input") == 0) {
        o->label_from = "input";
        return true;
    }
    for (int i = 0; i < NROWS; i++) {
        const Row *r = &row[i];
        if (r->kind == FLAG && no && strcmp(r->name, name + 3) == 0) {
            *(bool *)(void *)((char *)o + r->at) = false;
            return true;
        }
        if (strlen(r->name) != len || memcmp(r->name, name, len) != 0)
            continue;
        if (r->kind == FLAG) {
            *(bool *)(void *)((char *)o + r->at) = true;
            return equal ? ls_fail(e, LS_EXIT_USAGE, "--%s takes no value", r->name) : true;
        }
        if (r->kind == AMOUNT && !equal) {
            *(int64_t *)(void *)((char *)o + r->at) = -1;
            return true;
        }
        o->seed_given |= r->at == AT(seed);
        if (!equal && *k + 1 == argc)
            return ls_fail(e, LS_EXIT_USAGE, "--%s needs a value: %s", r->name, r->arg);
        return set(o, r, equal ? equal + 1 : argv[++*k], e);
    }
    return unknown(name, len, e);
}

/* The path of row k, if it is an output that is asked for. */
static const char *output(const LsTrainerOptions *o, int k)
{
    return row[k].kind == OUTPUT ? *(const char *const *)(const void *)((const char *)o + row[k].at)
                                 : NULL;
}

static bool consistent(const LsTrainerOptions *o, const LsProgram *p, LsError *e)
{
    static const char *const mode[] = {"auto", "bar", "plain", "none"};
    bool known = false;
    for (int k = 0; k < 4; k++)
        known |= strcmp(o->progress, mode[k]) == 0;
    if (!known)
        return ls_fail(e, LS_EXIT_USAGE, "--progress=%s: auto, bar, plain or none", o->progress);
    if (o->help || o->version || o->print_plan)
        return true;
    if (!o->data && !(o->eval && o->val))
        return ls_fail(e, LS_EXIT_USAGE, "no data: give --data FILE, or --data synthetic");
    if ((o->eval || o->val || o->image_grid) && p->eval.nstep == 0)
        return ls_fail(e, LS_EXIT_USAGE, "this program has no evaluation form (--val, --eval, "
                       "--image-grid)");
    for (int k = 0; k < NROWS && o->check_gradients; k++)
        if (output(o, k) && row[k].at != AT(log))
            return ls_fail(e, LS_EXIT_USAGE, "--check-gradients trains nothing that --%s could "
                           "write", row[k].name);
    if (o->eval && o->check_gradients)
        return ls_fail(e, LS_EXIT_USAGE, "--eval has no gradients to check");
    if (o->resume && strcmp(o->resume, "auto") == 0 && !o->save)
        return ls_fail(e, LS_EXIT_USAGE, "--resume=auto looks into --save DIR, which is not given");
    if ((o->save_every || o->keep_last) && !o->save)
        return ls_fail(e, LS_EXIT_USAGE, "--save-every and --keep-last need --save DIR");
    if (o->keep_last >= LS_KEEP)
        return ls_fail(e, LS_EXIT_USAGE, "--keep-last takes at most %d; without it all are kept",
                       LS_KEEP - 1);
    if (o->workers > 64 || o->threads > 4096)
        return ls_fail(e, LS_EXIT_USAGE, "at most 64 workers and 4096 threads");
    return true;
}

bool ls_trainer_options_parse(LsTrainerOptions *o, const LsProgram *p, int argc, char **argv,
                              LsError *e)
{
    *o = (LsTrainerOptions){.shuffle = true, .workers = -1, .lr = p->default_lr, .progress = "auto",
                     .schedule = p->default_schedule ? p->default_schedule : "constant"};
    for (int k = 1; k < argc; k++) {
        if (strcmp(argv[k], "-h") == 0)
            o->help = true;
        else if (strncmp(argv[k], "--", 2) != 0 || !argv[k][2])
            return ls_fail(e, LS_EXIT_USAGE, "'%s' is not an option (see --help)", argv[k]);
        else if (!parse_one(o, argc, argv, &k, e))
            return false;
    }
    return consistent(o, p, e);
}

/* Two outputs into one regular file: the second would replace the first. */
static bool is_apart(const LsTrainerOptions *o, int k, LsError *e)
{
    LsOut out;
    const char *path = output(o, k);
    if (!ls_out_place(&out, path, e))
        return false;
    for (int j = 0; j < k && !out.through; j++) {
        const char *other = output(o, j);
        if (other && strcmp(path, other) == 0)
            return ls_fail(e, LS_EXIT_USAGE, "--%s and --%s both write %s", row[j].name,
                           row[k].name, path);
    }
    return true;
}

bool ls_trainer_outputs_check(const LsTrainerOptions *o, LsError *e)
{
    for (int k = 0; k < NROWS; k++)
        if (output(o, k) && (!is_apart(o, k, e) || !ls_out_check(output(o, k), e)))
            return false;
    return true;
}

/* Text in columns 28 to 96. */
static void print_help(FILE *to, const char *text)
{
    int column = 28;
    while (*text) {
        int n = (int)strcspn(text, " ");
        if (column + n > 96) {
            fprintf(to, "\n%28s", "");
            column = 28;
        }
        fprintf(to, "%s%.*s", column > 28 ? " " : "", n, text);
        column += n + 1;
        text += n + (text[n] == ' ');
    }
    fputc('\n', to);
}

void ls_trainer_options_help(const LsProgram *p, const char *name, FILE *to)
{
    fprintf(to,
            "usage: %s --data SPEC [options]\n\nTrains %s: %s, %s, batch %" PRId64 ", plan %s.\n",
            name, p->model, p->loss, p->optimizer, p->batch, p->plan_hash);
    for (int k = 0; k < NROWS; k++) {
        char left[40];
        if (row[k].group)
            fprintf(to, "\n%s\n", row[k].group);
        snprintf(left, sizeof left, "--%s%s%s", row[k].name,
                 row[k].arg && row[k].kind != AMOUNT ? " " : "",
                 row[k].arg ? row[k].arg : "");
        fprintf(to, "  %-25s ", left);
        print_help(to, row[k].help);
    }
    fprintf(to,
            "\nSIGINT, SIGTERM and SIGHUP end the run after the step, which is saved (to --save, "
            "else beside the\nprogram). A step that takes longer than a second is waited for when "
            "there are updates to lose, else\nbroken off; a second signal ends the run at once, "
            "with nothing saved.\n\n"
            "Exit codes: 0 done, 1 a file cannot be written, 2 wrong usage, 5 device or its "
            "library missing,\n6 gradients are wrong, 7 diverged (loss not finite), 8 data or checkpoint "
            "unreadable,\n128 + signal: interrupted, checkpoint written (SIGINT: 130).\n");
}
