/* cli/options.c -- the option table, the parser and the help text. */
#include "cli/options.h"

#include "compiler/spelling.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef enum { FLAG, TEXT, INTEGER, LIST } Kind;

typedef struct Option {
    const char *name, *brief;   /* "--name"; "-x" or NULL */
    const char *arg;            /* what the argument is called in the help; NULL for flags */
    Kind kind;
    size_t at;                  /* field of LsOptions */
    int commands;               /* LS_CMD_ bits */
    const char *help;
} Option;

#define AT(field) offsetof(LsOptions, field)
enum {
    BUILD = LS_CMD_COMPILE | LS_CMD_PLAN | LS_CMD_SWEEP | LS_CMD_CHECK,
    ALL = BUILD | LS_CMD_INSPECT,
    MEMORY = LS_CMD_COMPILE | LS_CMD_PLAN | LS_CMD_CHECK | LS_CMD_GRAPH,
    SEARCH = MEMORY | LS_CMD_SWEEP,
    REPORT = LS_CMD_PLAN | LS_CMD_GRAPH,
    SWEEP = LS_CMD_SWEEP | LS_CMD_GRAPH,
    PRODUCT = LS_CMD_COMPILE | LS_CMD_SWEEP | LS_CMD_CHECK     /* of a sweep with --measure */
};

static const Option option[] = {
    {"--output", "-o", "FILE", TEXT, AT(output), LS_CMD_COMPILE,
     "what to write (default: the model's name)"},
    {"--output", "-o", "DIR", TEXT, AT(output), SWEEP,
     "folder for tables, curves and pages (default: MODEL-sweep)"},
    {"--from", NULL, "BYTES|KiB..GiB|%", TEXT, AT(from), SWEEP,
     "smallest budget (default 20%)"},
    {"--to", NULL, "BYTES|KiB..GiB|%", TEXT, AT(to), SWEEP,
     "largest budget (default 100%)"},
    {"--points", NULL, "N", INTEGER, AT(points), SWEEP,
     "budgets, evenly spaced from the one to the other (default 17)"},
    {"--table", NULL, NULL, FLAG, AT(table), SWEEP,
     "the table of Kusumoto et al. 2019 instead: for MODEL, or without one for their networks"},
    {"--strategies", NULL, "all|NAME,NAME,...", TEXT, AT(strategies), SWEEP,
     "which to compare (default all)"},
    {"--measure", NULL, NULL, FLAG, AT(measure), LS_CMD_SWEEP,
     "build and run the plans that get a page: auto's, or every one of --strategies"},
    {"--graph", NULL, "GRAPH.json", TEXT, AT(dot), LS_CMD_CHECK | LS_CMD_SCHEDULE,
     "the training graph that PLAN.json is for"},
    {"--data", NULL, "SPEC", TEXT, AT(data), LS_CMD_CHECK,
     "data to run on, as TRAINER --data takes them (default: made up)"},
    {"--elements", NULL, "N", INTEGER, AT(elements), LS_CMD_CHECK,
     "how many gradients are checked (default: two of each parameter, at most 200)"},
    {"--against", NULL, "REF.npz", TEXT, AT(against), LS_CMD_CHECK,
     "compare with these values of loss, out/NAME and grad/PARAM, which belong to --data"},
    {"--emit", NULL, "exe|obj|c", TEXT, AT(emit), LS_CMD_COMPILE, "kind of output"},
    {"--emit-c", "-S", NULL, FLAG, AT(emit_c), LS_CMD_COMPILE,
     "same as --emit=c: readable C and all it needs"},
    {"--emit-obj", "-c", NULL, FLAG, AT(emit_obj), LS_CMD_COMPILE, "same as --emit=obj"},
    {"--save-temps", NULL, "DIR", TEXT, AT(save_temps), LS_CMD_COMPILE,
     "keep the generated files in DIR"},
    {"--dry-run", "-n", NULL, FLAG, AT(dry_run), LS_CMD_COMPILE,
     "do all checks, print the commands, write nothing"},
    {"--verbose", "-v", NULL, FLAG, AT(verbose), ALL | LS_CMD_GRAPH | LS_CMD_SCHEDULE,
     "say what is done and print the commands"},
    {"--quiet", "-q", NULL, FLAG, AT(quiet), ALL | LS_CMD_GRAPH | LS_CMD_SCHEDULE, "no warnings"},
    {"--target", NULL, "cpu|cuda", TEXT, AT(target), BUILD, "machine to build for (default cpu)"},
    {"--arch", NULL, "90a,80,...", TEXT, AT(arch), BUILD,
     "NVIDIA GPUs that code is made for (default this machine's, else 90a); PTX serves later ones"},
    {"--machine", NULL, "NAME|FILE", TEXT, AT(machine), BUILD,
     "whose costs plans are made with: one of lowerset targets, or what calibrate wrote"},
    {"--costs", NULL, "FILE", TEXT, AT(costs), BUILD,
     "measured times of the model's steps: what TRAINER --profile wrote"},
    {"-march", NULL, "NAME", TEXT, AT(march), PRODUCT,
     "instruction set for the C compiler (default native)"},
    {"--opt", "-O", "LEVEL", TEXT, AT(opt), PRODUCT,
     "optimization level for the C compiler (default 3)"},
    {"--nvcc", NULL, "PROGRAM", TEXT, AT(nvcc), PRODUCT,
     "device compiler instead of NVRTC (default $NVCC)"},
    {"--cc", NULL, "PROGRAM", TEXT, AT(cc), PRODUCT, "C compiler (default $CC, then cc)"},
    {"--precision", NULL, "f32|f64|tf32", TEXT, AT(precision), BUILD,
     "type of all real numbers (default f32); tf32: f32 whose products round their factors (cuda)"},
    {"--allow-nondeterministic", NULL, NULL, FLAG, AT(nondeterministic), BUILD,
     "also convolutions whose sums may be taken in another order each time (cuda)"},
    {"--compiled-engines", NULL, NULL, FLAG, AT(compiled_engines), BUILD,
     "also fuse where cuDNN compiles a kernel at the start: ReLU gradients into convolutions (cuda)"},
    {"--own-convolutions", NULL, NULL, FLAG, AT(own_convolutions), BUILD,
     "some convolutions by own kernels: 1x1 with what reads them, weight gradients of 3x3 (cuda, tf32)"},
    {"--overlap", NULL, NULL, FLAG, AT(overlap), LS_CMD_COMPILE | LS_CMD_PLAN | LS_CMD_CHECK,
     "steps that need nothing of each other run at the same time, in the same memory (cuda)"},
    {"--workspace", NULL, "BYTES|KiB..GiB", TEXT, AT(workspace), BUILD,
     "most scratch memory of one convolution (cuda; default: what its engine likes)"},
    {"--dim", NULL, "NAME=SIZE", LIST, AT(dim), ALL,
     "size of a dynamic dimension; may be repeated"},
    {"--shape", NULL, "INPUT=AxBxC", LIST, AT(shape), ALL, "shape of an input; may be repeated"},
    {"--batch", NULL, "N", INTEGER, AT(batch), ALL,
     "size of a dynamic first dimension of every input"},
    {"--loss", NULL, "ce|mse|l1|bce|graph", TEXT, AT(loss), BUILD,
     "loss (default: ce; graph: an output of the model is the loss)"},
    {"--loss-input", NULL, "NAME", TEXT, AT(loss_input), BUILD,
     "model output that the loss reads, or that is the loss (default: the first, the only scalar)"},
    {"--label", NULL, "NAME", TEXT, AT(label), BUILD, "name of the target input (default label)"},
    {"--class-axis", NULL, "K", TEXT, AT(class_axis), BUILD,
     "cross-entropy: axis of the classes, from the end if negative (default: the one that the model's "
     "last weight makes)"},
    {"--label-smoothing", NULL, "E", TEXT, AT(smoothing), BUILD,
     "cross-entropy with smoothed labels"},
    {"--ignore-index", NULL, "K", TEXT, AT(ignore), BUILD,
     "cross-entropy: label that does not count"},
    {"--class-weights", NULL, "W0,W1,...", TEXT, AT(class_weights), BUILD,
     "cross-entropy: weight of each class"},
    {"--optimizer", NULL, "SPEC", TEXT, AT(optimizer), BUILD,
     "sgd, adam or adamw, then settings: sgd:momentum=0.9,nesterov,wd=1e-4"},
    {"--lr", NULL, "RATE", TEXT, AT(lr), LS_CMD_COMPILE | LS_CMD_CHECK,
     "default learning rate of the trainer"},
    {"--schedule", NULL, "SPEC", TEXT, AT(schedule), LS_CMD_COMPILE,
     "default rate schedule of the trainer: cosine:warmup=500"},
    {"--clip-norm", NULL, "X", TEXT, AT(clip_norm), BUILD, "scale gradients down to this norm"},
    {"--clip-value", NULL, "X", TEXT, AT(clip_value), BUILD, "clamp each gradient element"},
    {"--accumulate", NULL, "K", INTEGER, AT(accumulate), BUILD,
     "batches per update, which is that of one batch of as many samples or labels"},
    {"--freeze", NULL, "GLOB", LIST, AT(freeze), ALL,
     "parameters that are not trained; may be repeated"},
    {"--train", NULL, "GLOB", LIST, AT(train), ALL,
     "tensors that are trained whatever else would be, --freeze included; may be repeated"},
    {"--tie", NULL, NULL, FLAG, AT(tie), ALL,
     "parameters that the file has as one stay one, though an exporter may have merged them"},
    {"--bn", NULL, "file|train|frozen", TEXT, AT(bn), ALL,
     "statistics of batch norms: as in the file, the batch's, the running ones"},
    {"--bn-var", NULL, "onnx|torch", TEXT, AT(bn_var), BUILD,
     "running variance: population (ONNX) or unbiased (PyTorch)"},
    {"--budget", NULL, "BYTES|KiB..GiB|%|min", TEXT, AT(budget), MEMORY,
     "memory that may be used: in all, of a graph its arena's; % of the arena"},
    {"--max-batch", NULL, NULL, FLAG, AT(max_batch), LS_CMD_PLAN,
     "find the largest batch within --budget, by every strategy"},
    {"--budget-of", NULL, "none|store-all", TEXT, AT(budget_of), SEARCH,
     "what % refers to: the arena without recomputation, or every result once, none in place"},
    {"--strategy", NULL, "NAME", TEXT, AT(strategy), MEMORY,
     "auto, none, chen, exact, approx (each DP also -tc, -mc)"},
    {"--no-inplace", NULL, NULL, FLAG, AT(no_inplace), SEARCH,
     "every result gets a place of its own"},
    {"--no-offsets", NULL, NULL, FLAG, AT(no_offsets), REPORT | LS_CMD_SWEEP,
     "of a graph: no places, and the budget is one of live bytes, as papers count"},
    {"--no-alternatives", NULL, NULL, FLAG, AT(no_alternatives), BUILD,
     "no operand is computed again inside the kernel that reads it"},
    {"--store-gradients", NULL, NULL, FLAG, AT(store_gradients), BUILD,
     "no update computes its gradient itself: --dump has all of them"},
    {"--no-epilogues", NULL, NULL, FLAG, AT(no_epilogues), BUILD,
     "GPUs: products leave activations and bias gradients to kernels of their own"},
    {"--keep", NULL, "GLOB", LIST, AT(keep), SEARCH,
     "values that are made once: names of values or nodes; may be repeated"},
    {"--forget", NULL, "GLOB", LIST, AT(forget), SEARCH,
     "values that the backward part makes again; may be repeated"},
    {"--recompute", NULL, "auto|none|cheap|conv-saved|all", TEXT, AT(recompute), SEARCH,
     "what may run again: anything, nothing, all but products, all but convolutions; all: must"},
    {"--plan-time", NULL, "SECONDS", TEXT, AT(plan_time), SEARCH,
     "work of the search for a plan, as on a core of 2023 (default 2); more: it goes on longer"},
    {"--plan-effort", NULL, "PERCENT", INTEGER, AT(plan_effort), SEARCH,
     "moves of that search, of the usual number, whatever the time; below 100 of its work, too"},
    {"--prove", NULL, NULL, FLAG, AT(prove), SEARCH, "spend more on the lower bounds"},
    {"--json", NULL, NULL, FLAG, AT(json),
     REPORT | LS_CMD_INSPECT | LS_CMD_CHECK | LS_CMD_SCHEDULE,
     "summary as JSON on stdout"},
    {"--graph-json", NULL, "FILE", TEXT, AT(graph_json), REPORT,
     "write the training graph in the interchange format"},
    {"--plan-json", NULL, "FILE", TEXT, AT(plan_json), REPORT,
     "write the schedule in the interchange format"},
    {"--graph", NULL, "FILE.dot", TEXT, AT(dot), REPORT,
     "write the graph for Graphviz: kept and recomputed values"},
    {"--timeline", NULL, "FILE.svg", TEXT, AT(timeline), REPORT,
     "draw memory over time (needs gnuplot; .csv: the data)"},
    {"--report", NULL, "FILE.html", TEXT, AT(report), REPORT,
     "write a page: memory over time, who owns the peak, what is kept"},
    {"--against", NULL, "PLAN.json", TEXT, AT(against), REPORT,
     "compare with an earlier --plan-json or --json: exit 6 when cost, peak or gap got worse, 2 when it is of another "
     "model or batch"},
    {"--tolerance", NULL, "X%", TEXT, AT(tolerance), REPORT,
     "how much worse does not count (default 0)"},
    {"--dump", "-d", "PASS", TEXT, AT(dump_pass), ALL,
     "print the graph after a compiler pass (import, autodiff, fuse, all)"},
    {"--max-errors", NULL, "N", INTEGER, AT(max_errors), ALL, "print no more than N errors"},
};
enum { NOPTIONS = sizeof option / sizeof *option };

static int unknown(const char *arg, int command)
{
    const char *best = NULL;
    int least = 5;
    char name[40];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(arg, "="), arg);
    for (int k = 0; k < NOPTIONS; k++) {
        int d = option[k].commands & command ? ls_spelling_distance(name, option[k].name) : least;
        if (d < least)
            least = d, best = option[k].name;
    }
    fprintf(stderr, "lowerset: unknown option '%s'", arg);
    fprintf(stderr, best != NULL ? "; did you mean %s?\n" : "\n", best);
    return LS_EXIT_USAGE;
}

static const Option *find(const char *arg, int command, const char **value)
{
    *value = NULL;
    for (int k = 0; k < NOPTIONS; k++) {
        const Option *op = &option[k];
        size_t n = strlen(op->name);
        if (!(op->commands & command))
            continue;
        if (strncmp(arg, op->name, n) == 0 && (arg[n] == '\0' || arg[n] == '=')) {
            *value = arg[n] == '=' ? arg + n + 1 : NULL;
            return op;
        }
        if (op->brief != NULL && strncmp(arg, op->brief, 2) == 0
            && (arg[2] == '\0' || (op->kind != FLAG && arg[1] != '-'))) {
            *value = arg[2] != '\0' ? arg + 2 : NULL;
            return op;
        }
    }
    return NULL;
}

static int store(LsOptions *o, const Option *op, const char *value)
{
    void *field = (char *)o + op->at;
    switch (op->kind) {
    case FLAG:
        *(bool *)field = true;
        return 0;
    case TEXT:
        *(const char **)field = value;
        return 0;
    case INTEGER: {
        char *end;
        errno = 0;
        *(int64_t *)field = strtoll(value, &end, 10);
        if (end == value || *end != '\0' || errno != 0 || *(int64_t *)field < 0) {
            fprintf(stderr, "lowerset: %s wants a whole number, not '%s'\n", op->name, value);
            return LS_EXIT_USAGE;
        }
        return 0;
    }
    default: {
        LsList *list = field;
        const char **more = realloc(list->item, (size_t)(list->n + 1) * sizeof *more);
        if (more == NULL)
            return LS_EXIT_MODEL;
        list->item = more;
        list->item[list->n++] = value;
        return 0;
    }
    }
}

int ls_options_parse(LsOptions *o, int command, int argc, char **argv)
{
    const int without = command == LS_CMD_CHECK ? LS_CMD_SCHEDULE : LS_CMD_GRAPH;   /* a model */
    for (int i = 2; i < argc; i++) {
        const char *arg = argv[i], *value;
        if (arg[0] != '-' || arg[1] == '\0') {
            if (o->model != NULL) {
                fprintf(stderr, "lowerset: two models given: '%s' and '%s'\n", o->model, arg);
                return LS_EXIT_USAGE;
            }
            o->model = arg;
            continue;
        }
        const Option *op = find(arg, command, &value);
        if (op == NULL)
            return unknown(arg, command);
        if (!(op->commands & without) && o->model_only == NULL)
            o->model_only = op->name;
        if (op->kind == FLAG && value != NULL) {
            fprintf(stderr, "lowerset: %s takes no value\n", op->name);
            return LS_EXIT_USAGE;
        }
        if (op->kind != FLAG && value == NULL && (i + 1 >= argc || (value = argv[++i]) == NULL)) {
            fprintf(stderr, "lowerset: %s wants %s\n", op->name, op->arg);
            return LS_EXIT_USAGE;
        }
        int code = store(o, op, value);
        if (code != 0)
            return code;
    }
    if (o->model == NULL && !o->table) {
        fprintf(stderr, "lowerset: no model given; see lowerset help\n");
        return LS_EXIT_USAGE;
    }
    return 0;
}

void ls_options_help(FILE *to, int command)
{
    for (int k = 0; k < NOPTIONS; k++) {
        const Option *op = &option[k];
        if (!(op->commands & command))
            continue;
        char left[64];
        snprintf(left, sizeof left, "%s%s%s%s%s", op->brief != NULL ? op->brief : "  ",
                 op->brief != NULL ? ", " : "  ", op->name, op->arg != NULL ? " " : "",
                 op->arg != NULL ? op->arg : "");
        fprintf(to, "  %-38s %s\n", left, op->help);
    }
}
