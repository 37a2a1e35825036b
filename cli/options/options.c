/* cli/options/options.c -- the option table, the parser and the help text. */
#include "cli/options/options.h"

#include "cli/options/loss_spec.h"
#include "cli/options/optimizer_spec.h"
#include "cli/options/scale_spec.h"
#include "scheduler/cuts/stages.h"
#include "scheduler/strategies/strategy_names.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define FLAG LS_OPTION_FLAG, 0, 0
#define TEXT LS_OPTION_TEXT, 0, 0
#define INTEGER(least, most) LS_OPTION_WHOLE, least, most
#define LIST LS_OPTION_LIST, 0, 0

#define AT(field) offsetof(LsOptions, field)
enum {
    BUILD = LS_CMD_COMPILE | LS_CMD_PLAN | LS_CMD_SWEEP | LS_CMD_CHECK,
    ALL = BUILD | LS_CMD_INSPECT,
    MEMORY = LS_CMD_COMPILE | LS_CMD_PLAN | LS_CMD_CHECK | LS_CMD_GRAPH,
    SEARCH = MEMORY | LS_CMD_SWEEP,
    REPORT = LS_CMD_PLAN | LS_CMD_GRAPH,
    SWEEP = LS_CMD_SWEEP | LS_CMD_GRAPH,
    PRODUCT = LS_CMD_COMPILE | LS_CMD_SWEEP | LS_CMD_CHECK | LS_CMD_MEASURE,
    GPU = LS_CMD_GPU
};
enum { MOST_MEMBERS = 4096, MOST_BATCH = 1 << 30, MOST_COUNT = 1 << 20 };
#define MOST_STEPS (INT64_C(1) << 40)

static const LsOption option[] = {
    LS_OPTION_HEADING("Output"),
    {"--output", "-o", "FILE", TEXT, AT(output), LS_CMD_COMPILE,
     "file to write (default: named after the model)"},
    {"--output", "-o", "DIR", TEXT, AT(output), SWEEP,
     "folder for tables, curves and pages (default: MODEL-sweep)"},
    {"--output", "-o", "FILE", TEXT, AT(output), LS_CMD_CALIBRATE,
     "file for the costs (default: where plan and compile look for it)"},
    {"--emit", NULL, "exe|obj|c", TEXT, AT(emit), LS_CMD_COMPILE,
     "kind of output: a program, an object file, or readable C and all that it needs (default exe)"},
    {"--save-temps", NULL, "DIR", TEXT, AT(save_temps), LS_CMD_COMPILE,
     "keep the generated files in DIR (not with --emit=c, which leaves them beside the output)"},
    {"--dry-run", "-n", NULL, FLAG, AT(dry_run), LS_CMD_COMPILE,
     "do all checks, print the commands, write nothing"},
    {"--verbose", "-v", NULL, FLAG, AT(verbose), ALL | LS_CMD_CALIBRATE | LS_CMD_GRAPH | LS_CMD_SCHEDULE,
     "say what is done, and print the commands that are run"},
    {"--quiet", "-q", NULL, FLAG, AT(quiet), BUILD | LS_CMD_GRAPH | LS_CMD_SCHEDULE, "print only errors: no "
                                                                                     "warnings, no summary, no "
                                                                                     "progress"},
    {"--max-errors", NULL, "N", INTEGER(1, MOST_COUNT), AT(max_errors), ALL, "print no more than N errors (default 50)"},
    {"--dump", "-d", "PASS", TEXT, AT(dump_pass), BUILD,
     "print the graph after a compiler pass (import, autodiff, fuse, all)"},
    LS_OPTION_HEADING("Model"),
    {"--dim", NULL, "NAME=SIZE", LIST, AT(dim), ALL,
     "size of a dynamic dimension; may be repeated"},
    {"--shape", NULL, "INPUT=AxBxC", LIST, AT(shape), ALL, "shape of an input; may be repeated"},
    {"--batch", NULL, "N", INTEGER(1, MOST_BATCH), AT(batch), ALL,
     "size of a dynamic first dimension of every input"},
    LS_OPTION_HEADING("Training"),
    {"--loss", NULL, "SPEC", TEXT, AT(loss), BUILD,
     "loss to train with, or several losses by commas, see below (default ce)"},
    {"--loss-input", NULL, "NAME", TEXT, AT(loss_input), BUILD,
     "model output that a single loss reads (default: the first); with --loss=graph, the output that is the loss "
     "(default: the only scalar)"},
    {"--label", NULL, "NAME", TEXT, AT(label), BUILD,
     "name of the target input; with losses of several outputs, NAME.OUTPUT are their targets (default label)"},
    {"--class-axis", NULL, "K", TEXT, AT(class_axis), BUILD,
     "cross-entropy: axis of the classes, counted from the end if negative (default: the axis that the model's "
     "last weight makes)"},
    {"--label-shape", NULL, "AxBx...", TEXT, AT(label_shape), BUILD,
     "cross-entropy: shape of the target, samples first; the classes are on the axis that the output has beside it"},
    {"--label-smoothing", NULL, "E", TEXT, AT(smoothing), BUILD,
     "cross-entropy: part of each target that is spread over all classes, 0 to 1 (default 0)"},
    {"--ignore-index", NULL, "K", TEXT, AT(ignore), BUILD,
     "cross-entropy: positions with this label do not count"},
    {"--class-weights", NULL, "W0,W1,...", TEXT, AT(class_weights), BUILD,
     "cross-entropy: weight of each class"},
    {"--optimizer", NULL, "SPEC", TEXT, AT(optimizer), BUILD,
     "kind and settings, see below (default sgd:momentum=0.9)"},
    {"--lr", NULL, "RATE", TEXT, AT(lr), LS_CMD_COMPILE | LS_CMD_CHECK,
     "default learning rate of the trainer (default: the optimizer's, see below)"},
    {"--schedule", NULL, "SPEC", TEXT, AT(schedule), LS_CMD_COMPILE,
     "default rate schedule of the trainer, see below (default constant)"},
    {"--no-decay", NULL, "GLOB", LIST, AT(no_decay), BUILD,
     "no weight decay of parameters of these names, beside those of biases and norms; may be repeated; none: those of biases "
     "and norms decay, too"},
    {"--ema", NULL, "D", TEXT, AT(ema), BUILD,
     "keep an average of the weights: D times itself and 1 - D times the weights after every update; evaluation and --export "
     "take the average"},
    {"--clip-norm", NULL, "X", TEXT, AT(clip_norm), BUILD, "scale all gradients down together if their norm "
                                                           "exceeds X (default: no clipping)"},
    {"--clip-value", NULL, "X", TEXT, AT(clip_value), BUILD, "clamp each element of the gradients to -X..X "
                                                             "(default: no clipping)"},
    {"--loss-scale", NULL, "SPEC", TEXT, AT(scale), BUILD,
     "factor of the loss while it is differentiated, see below; steps whose gradients are not finite are skipped "
     "(default: dynamic for f16, else none)"},
    {"--grads", NULL, "mean|per-sample|per-sample-norm", TEXT, AT(grads), BUILD,
     "what the trainer's --dump has beside the gradients of the mean loss: those of every sample (psgrad/) and their "
     "norms (psnorm/), or the norms alone (default mean: neither)"},
    {"--sample-norms", NULL, "auto|pairs|tiles|terms", TEXT, AT(sample_norms), BUILD,
     "what norms of samples' gradients are made of: pairs of rows of operands, the gradients themselves tile by tile or "
     "stored, or what is cheapest for each weight (default)"},
    {"--dp", NULL, "SPEC", TEXT, AT(privacy), BUILD & ~LS_CMD_CHECK,
     "private training: clip=1.0,noise=1.1,delta=1e-5[,expected-batch=N,sums=WAY]: every update draws samples at random, as many as "
     "the expected batch on average (default: batch times --accumulate); their gradients are clipped to a norm, and noise is "
     "added"},
    {"--ensemble", NULL, "K", INTEGER(2, MOST_MEMBERS), AT(ensemble), BUILD & ~LS_CMD_CHECK,
     "train K models of this architecture together, each with weights, statistics and a loss of its own"},
    {"--ensemble-lanes", NULL, "N", INTEGER(1, MOST_MEMBERS), AT(lanes), LS_CMD_COMPILE | LS_CMD_PLAN,
     "members of an ensemble that run at the same time, each on a thread and in an arena of its own (default 1: one after the "
     "other on all threads, in one arena)"},
    {"--ensemble-batches", NULL, "shared|each", TEXT, AT(ensemble_batches), BUILD & ~LS_CMD_CHECK,
     "batches of an ensemble: all members train on the same one, or each on one of its own (default shared)"},
    {"--randomness", NULL, "error|different|same", TEXT, AT(randomness), BUILD,
     "with --grads, --dp or --ensemble, random numbers of the model, as in dropouts: refuse them, draw for every sample or "
     "member, or draw once for all (default error)"},
    {"--accumulate", NULL, "K", INTEGER(1, MOST_COUNT), AT(accumulate), BUILD,
     "batches per update; the update is that of one batch K times as large (default 1)"},
    {"--microbatches", NULL, "M", INTEGER(1, MOST_COUNT), AT(microbatches), BUILD,
     "cut every batch of training into M equal parts, which run one after the other in the memory of one; the update is "
     "that of the whole batch, batch norms take each part's statistics (default 1)"},
    {"--mixed-parts", NULL, "refuse|own", TEXT, AT(mixed_parts), BUILD,
     "where the model combines the samples of a batch, as in scores between all of them: refuse to cut batches into parts, or let "
     "each part have its own, which is another loss; batch norms always do (default refuse)"},
    {"--ranks", NULL, "N|any", LS_OPTION_WHOLE_OR_ANY, 1, LS_MOST_RANKS, AT(ranks), LS_CMD_COMPILE | LS_CMD_PLAN,
     "train on N processes, each of which runs an equal block of every batch's parts (--microbatches, by default "
     "one for each); any: on as many as the program is told when it starts, 1 included; the result is that of one process, "
     "bit for bit (default 1)"},
    {"--comm", NULL, "ENGINE", TEXT, AT(comm), LS_CMD_COMPILE,
     "with --ranks or --stages: mpi links the program with MPI, for processes that mpirun or srun starts; sockets (default): it starts its "
     "ranks itself, or they find each other by TCP"},
    {"--stages", NULL, "K", INTEGER(1, LS_MOST_STAGES), AT(stages), LS_CMD_COMPILE | LS_CMD_PLAN,
     "cut the model into K stages of a pipeline, one rank each; --budget is that of a rank"},
    {"--order", NULL, "gpipe|1f1b|zb", TEXT, AT(order), LS_CMD_COMPILE | LS_CMD_PLAN,
     "with --stages, the order in which ranks run the micro-batches. gpipe: all forward, then all backward; 1f1b: one forward, "
     "one backward; zb: the same, with gradients of weights in what would be bubbles (default 1f1b; plan "
     "shows all side by side)"},
    {"--link", NULL, "SIZE,US", TEXT, AT(link), LS_CMD_PLAN,
     "with --stages, bytes per second and latency in microseconds of a link between two ranks; none: messages take no time "
     "(default 10GB,5)"},
    {"--freeze", NULL, "GLOB", LIST, AT(freeze), ALL,
     "parameters that are not trained; may be repeated"},
    {"--train", NULL, "GLOB", LIST, AT(train), ALL,
     "tensors that are trained even if --freeze or the file says otherwise; may be repeated. The others stay as they are: see "
     "--train-only"},
    {"--train-only", NULL, "GLOB", LIST, AT(only), ALL,
     "train these tensors, and freeze all others; may be repeated"},
    {"--stop-gradient", NULL, "GLOB", LIST, AT(stop), ALL,
     "names of values or nodes: no gradient flows through them, as at detach(); may be repeated"},
    {"--tie", NULL, NULL, FLAG, AT(tie), ALL,
     "train each parameter of the file as one, even if the exporter may have merged several into it"},
    {"--bn", NULL, "file|train|frozen", TEXT, AT(bn), ALL,
     "statistics that batch norms use: as in the file, those of the batch, the running ones (default file)"},
    {"--bn-var", NULL, "onnx|torch", TEXT, AT(bn_var), BUILD,
     "running variance: population (ONNX) or unbiased (PyTorch) (default onnx)"},
    {"--dropout", NULL, "file|on|off", TEXT, AT(dropout), BUILD,
     "dropouts that are active: as in the file (before opset 12: all), all, none (default file)"},
    LS_OPTION_HEADING("Memory"),
    {"--budget", NULL, "SIZE|%|min", TEXT, AT(budget), MEMORY,
     "limit on all memory of the program, or on the arena of a GRAPH; %: limit on the arena, as a part of the "
     "arena without recomputation; min: the least budget that has a plan (default: no limit)"},
    {"--max-batch", NULL, NULL, FLAG, AT(max_batch), LS_CMD_PLAN,
     "find the largest batch within --budget, for every strategy"},
    {"--budget-of", NULL, "none|store-all", TEXT, AT(budget_of), SEARCH,
     "memory that % refers to: the arena without recomputation, or the live peak with every result made once and "
     "none in place (default none)"},
    {"--strategy", NULL, "NAME", TEXT, AT(strategy), MEMORY,
     "how the plan is found, one of" LS_STRATEGY_WORDS " (default auto)"},
    {"--keep", NULL, "GLOB", LIST, AT(keep), SEARCH,
     "values that are computed once and kept: names of values or nodes; may be repeated"},
    {"--forget", NULL, "GLOB", LIST, AT(forget), SEARCH,
     "values that the backward part computes again: names of values or nodes; may be repeated"},
    {"--recompute", NULL, LS_RECOMPUTE_NAMES, TEXT, AT(recompute), SEARCH,
     "what may run again. " LS_RECOMPUTE_MEANINGS ", which only compile and plan take (default auto)"},
    {"--plan-time", NULL, "SECONDS", TEXT, AT(plan_time), SEARCH,
     "work of the search for a plan, in seconds of one core of 2023 (default 2)"},
    {"--plan-effort", NULL, "PERCENT", INTEGER(1, 10000), AT(plan_effort), SEARCH,
     "moves of that search, in percent of the usual number, however long --plan-time is; below 100 its work "
     "shrinks, too (default 100, with --stages 10)"},
    {"--prove", NULL, NULL, FLAG, AT(prove), SEARCH, "spend more work on the lower bounds"},
    {"--no-inplace", NULL, NULL, FLAG, AT(no_inplace), SEARCH,
     "give every result a place of its own: none overwrites an operand"},
    {"--no-offsets", NULL, NULL, FLAG, AT(no_offsets), REPORT | LS_CMD_SWEEP,
     "of a GRAPH: give values no offsets; the budget limits live bytes, as in papers"},
    {"--no-alternatives", NULL, NULL, FLAG, AT(no_alternatives), BUILD,
     "recompute no operand inside the kernel that reads it"},
    {"--store-gradients", NULL, NULL, FLAG, AT(store_gradients), BUILD,
     "write every gradient to memory, so that --dump has it; no update computes its own"},
    {"--no-epilogues", NULL, NULL, FLAG, AT(no_epilogues), BUILD | GPU,
     "GPUs: compute activations and bias gradients in kernels of their own, not in products"},
    LS_OPTION_HEADING("Sweep"),
    {"--from", NULL, "SIZE|%", TEXT, AT(from), SWEEP,
     "smallest budget (default 20%)"},
    {"--to", NULL, "SIZE|%", TEXT, AT(to), SWEEP,
     "largest budget (default 100%)"},
    {"--points", NULL, "N", INTEGER(1, 1000), AT(points), SWEEP,
     "number of budgets, evenly spaced from the smallest to the largest (default 17)"},
    {"--strategies", NULL, "all|NAME,NAME,...", TEXT, AT(strategies), SWEEP,
     "strategies to compare, some of" LS_STRATEGY_WORDS
     " (default all, which takes -tc and -mc in place of the name without)"},
    {"--table", NULL, NULL, FLAG, AT(table), SWEEP,
     "write the table of Kusumoto et al. 2019 instead: for MODEL, or for their networks if there is no MODEL"},
    {"--measure", NULL, NULL, FLAG, AT(measure), LS_CMD_SWEEP,
     "build and run the plans that get a page: those of auto, or of all --strategies"},
    LS_OPTION_HEADING("Reports"),
    {"--json", NULL, NULL, FLAG, AT(json),
     REPORT | LS_CMD_INSPECT | LS_CMD_CHECK | LS_CMD_SCHEDULE | LS_CMD_DP,
     "summary as JSON on stdout"},
    {"--graph-json", NULL, "FILE", TEXT, AT(graph_json), REPORT,
     "write the training graph in the interchange format; with --stages that of each stage, to FILE.0.json, FILE.1.json ..."},
    {"--plan-json", NULL, "FILE", TEXT, AT(plan_json), REPORT,
     "write the schedule in the interchange format; with --stages that of a micro-batch of each stage"},
    {"--timeline", NULL, "FILE.svg", TEXT, AT(timeline), REPORT,
     "draw memory over time; a FILE with another ending than .svg gets the data as text"},
    {"--report", NULL, "FILE.html", TEXT, AT(report), REPORT,
     "write a page: memory over time, values that make the peak, values that are kept"},
    {"--tolerance", NULL, "X%", TEXT, AT(tolerance), REPORT,
     "with --against: how much worse is still accepted (default 0)"},
    {"--graph", NULL, "FILE.dot", TEXT, AT(dot), REPORT,
     "write the graph for Graphviz: kept and recomputed values"},
    {"--against", NULL, "PLAN.json", TEXT, AT(against), REPORT,
     "compare with an earlier --plan-json or --json: exit 6 if cost, peak or gap got worse, 2 if PLAN.json is of "
     "another model or batch, or its costs of another machine, precision or number of threads"},
    LS_OPTION_HEADING("Check"),
    {"--data", NULL, "SPEC", TEXT, AT(data), LS_CMD_CHECK,
     "data to run on, written as for TRAINER --data (default: synthetic)"},
    {"--elements", NULL, "N", INTEGER(1, MOST_COUNT), AT(elements), LS_CMD_CHECK,
     "number of gradient elements to check (default: two of each parameter, at most 200)"},
    {"--graph", NULL, "GRAPH.json", TEXT, AT(dot), LS_CMD_CHECK | LS_CMD_SCHEDULE,
     "training graph that PLAN.json belongs to"},
    {"--against", NULL, "REF.npz", TEXT, AT(against), LS_CMD_CHECK,
     "compare loss, out/NAME and grad/PARAM with those of the file, which were made with --data"},
    LS_OPTION_HEADING("Calibration"),
    {"--threads", NULL, "N", INTEGER(1, 4096), AT(threads), LS_CMD_CALIBRATE,
     "threads that the programs run with (default: all cores)"},
    {"--quick", NULL, NULL, FLAG, AT(quick), LS_CMD_CALIBRATE,
     "fewer programs, for less time"},
    LS_OPTION_HEADING("Privacy"),
    {"--sample-rate", NULL, "Q", TEXT, AT(sample_rate), LS_CMD_DP,
     "probability, 0 to 1, with which a step takes a sample; needs --steps"},
    {"--steps", NULL, "N", INTEGER(1, MOST_STEPS), AT(steps), LS_CMD_DP, "number of updates"},
    {"--samples", NULL, "N", INTEGER(1, MOST_STEPS), AT(samples), LS_CMD_DP,
     "number of training samples; with --batch and --epochs in place of --sample-rate and --steps"},
    {"--batch", NULL, "N", INTEGER(1, MOST_BATCH), AT(batch), LS_CMD_DP, "samples that a step takes on average"},
    {"--epochs", NULL, "N", INTEGER(1, MOST_COUNT), AT(epochs), LS_CMD_DP,
     "passes over the samples, each of samples / batch steps, rounded up"},
    {"--noise", NULL, "S", TEXT, AT(noise), LS_CMD_DP,
     "deviation of the noise on the sum of clipped gradients, in clipping norms; 0, or at least 0.01, as less counts as "
     "none"},
    {"--epsilon", NULL, "E", TEXT, AT(epsilon), LS_CMD_DP,
     "search for the least noise, a multiple of 0.0001, that keeps epsilon within E"},
    {"--delta", NULL, "D", TEXT, AT(delta), LS_CMD_DP,
     "probability, above 0 and below 1, with which epsilon need not hold: well below 1 / samples"},
    LS_OPTION_HEADING("Machine"),
    {"--target", NULL, "cpu|cuda", TEXT, AT(target), BUILD, "machine to build for (default cpu)"},
    {"--machine", NULL, "NAME|FILE", TEXT, AT(machine), BUILD,
     "machine whose costs plans use: a name from lowerset targets, or the file that calibrate wrote"},
    {"--threads", NULL, "N", INTEGER(1, 4096), AT(threads), LS_CMD_COMPILE | LS_CMD_PLAN,
     "threads that the program will run with, for the times that are printed (default: all cores)"},
    {"--costs", NULL, "FILE", TEXT, AT(costs), BUILD,
     "measured times of the model's steps: the file that TRAINER --profile wrote"},
    {"--precision", NULL, "f32|f64|tf32|bf16|f16", TEXT, AT(precision), BUILD,
     "type of all real numbers (default f32); bf16, f16: activations and products in 16 bits, or params=T,compute=T,"
     "output=T; tf32: f32, but products round their factors (cuda)"},
    {"--eval-precision", NULL, "f32|bf16|f16", TEXT, AT(eval_precision), LS_CMD_COMPILE | LS_CMD_PLAN,
     "type that evaluation computes in: --val, --eval (default: as training)"},
    {"--precision-of", NULL, "GLOB=f32", LIST, AT(wide), BUILD,
     "nodes or values that stay f32 although --precision computes in 16 bits; may be repeated"},
    {"--bf16-sums", NULL, "auto|pairs|tiles", TEXT, AT(bf16_sums), PRODUCT,
     "order in which products of bf16 add up: pairs, as VDPBF16PS does, or tiles, as AMX does; the same bits on every "
     "processor (default auto: tiles where the C compiler's target has AMX)"},
    {"-march", NULL, "NAME", TEXT, AT(march), PRODUCT,
     "instruction set for the C compiler (default native)"},
    {"--opt", "-O", "LEVEL", TEXT, AT(opt), PRODUCT,
     "optimization level for the C compiler (default 3)"},
    {"--cc", NULL, "PROGRAM", TEXT, AT(cc), PRODUCT, "C compiler (default $CC, then cc)"},
    {"--arch", NULL, "90a,80,...", TEXT, AT(arch), BUILD | GPU,
     "NVIDIA GPUs to build for (default: this machine's, else 90a); later GPUs use the PTX"},
    {"--nvcc", NULL, "PROGRAM", TEXT, AT(nvcc), PRODUCT | GPU,
     "device compiler to use instead of NVRTC (default $NVCC)"},
    {"--workspace", NULL, "SIZE", TEXT, AT(workspace), BUILD | GPU,
     "limit on the scratch memory of one convolution (cuda; default: what its engine asks for)"},
    {"--allow-nondeterministic", NULL, NULL, FLAG, AT(nondeterministic), BUILD | GPU,
     "allow convolutions that may add in another order each time (cuda)"},
    {"--compiled-engines", NULL, NULL, FLAG, AT(compiled_engines), BUILD | GPU,
     "also fuse ReLU gradients into convolutions, by kernels that cuDNN compiles at the start (cuda)"},
    {"--no-overlap", NULL, NULL, FLAG, AT(no_overlap), LS_CMD_COMPILE | LS_CMD_PLAN | LS_CMD_CHECK | GPU,
     "run steps one after the other. Else those that do not depend on each other run at the same time, if the program's first "
     "steps show that this is faster (cuda)"},
};
enum { NOPTIONS = sizeof option / sizeof *option };

/* Options of earlier versions, or some of their values, with those that do the same. */
static const struct { const char *name, *value, *use; int where; } gone[] = {
    {"-S", NULL, "--emit=c", LS_CMD_COMPILE},
    {"--emit-c", NULL, "--emit=c", LS_CMD_COMPILE},
    {"-c", NULL, "--emit=obj", LS_CMD_COMPILE},
    {"--emit-obj", NULL, "--emit=obj", LS_CMD_COMPILE},
    {"--loss-axis", NULL, "--class-axis", BUILD},
    {"--checkpoint", "never", "--recompute=none", LS_CMD_COMPILE | LS_CMD_PLAN},
    {"--checkpoint", "always", "--recompute=all", LS_CMD_COMPILE | LS_CMD_PLAN},
    {"--checkpoint", NULL, "--recompute", LS_CMD_COMPILE | LS_CMD_PLAN},
};

/* Refuses an option that is gone; false: `arg` is none. next: the argument behind it; NULL: none. */
static bool is_gone(int command, const char *arg, const char *next)
{
    const size_t n = strcspn(arg, "=");
    const char *value = arg[n] == '=' ? arg + n + 1 : next != NULL ? next : "";
    for (size_t k = 0; k < sizeof gone / sizeof *gone; k++) {
        const char *name = gone[k].name;
        if ((gone[k].where & command) && strlen(name) == n && memcmp(name, arg, n) == 0
            && (gone[k].value == NULL || strcmp(gone[k].value, value) == 0)) {
            fprintf(stderr, "lowerset: unknown option '%s': use %s\n", arg, gone[k].use);
            return true;
        }
    }
    return false;
}

static LsOptionTable table_of(int command)
{
    return (LsOptionTable){.row = option, .n = NOPTIONS, .where = command};
}

static void keep_first(const char **first, bool hit, const char *name)
{
    if (hit && *first == NULL)
        *first = name;
}

/* Parses the option at argv[*i]; *i advances when the value is the next word. */
static int parse_one(LsOptions *o, int command, int argc, char **argv, int *i, const char **given)
{
    const int without = command == LS_CMD_CHECK ? LS_CMD_SCHEDULE : LS_CMD_GRAPH;   /* needs a
                                                                                     * model */
    const LsOptionTable table = table_of(command);
    char why[LS_OPTION_WHY];
    if (is_gone(command, argv[*i], *i + 1 < argc ? argv[*i + 1] : NULL))
        return LS_EXIT_USAGE;
    const LsOption *op = ls_option_take(&table, o, given, argc, argv, i, why);
    if (op == NULL) {
        fprintf(stderr, "lowerset: %s\n", why);
        return LS_EXIT_USAGE;
    }
    keep_first(&o->model_only, !(op->where & without), op->name);
    keep_first(&o->gpu_only, op->where & LS_CMD_GPU, op->name);
    keep_first(&o->measure_only, op->where & LS_CMD_MEASURE, op->name);
    return 0;
}

static int usage(const char *option, const char *text)
{
    fprintf(stderr, "lowerset: %s %s\n", option, text);
    return LS_EXIT_USAGE;
}

/* Refuses a policy of programs where none is made; a training graph is noticed when the file is read. */
#define POLICY_OPTION(id, name, scope, again) "--recompute=" name,
static int check_policy(LsOptions *o, int command)
{
    static const char *const option_of[] = {LS_RECOMPUTE_POLICIES(POLICY_OPTION, POLICY_OPTION)};
    LsRecompute policy;
    if (o->recompute == NULL || !ls_recompute_parse(o->recompute, &policy)
        || ls_recompute_policy[policy].scope == LS_POLICY_OF_ALL)
        return 0;
    keep_first(&o->model_only, true, option_of[policy]);
    if (command & (LS_CMD_COMPILE | LS_CMD_PLAN))
        return 0;
    return usage(option_of[policy], "is for compile and plan: it needs a program of several parts");
}

/* Checks the options against each other. */
static int consistent(const LsOptions *o, int command)
{
    bool gpu = o->target != NULL && strcmp(o->target, "cuda") == 0;
    bool modelless = command == LS_CMD_CALIBRATE || command == LS_CMD_DP;
    if (o->model == NULL && !o->table && !modelless)
        return usage("no model given;", "see lowerset help");
    if (o->model != NULL && modelless)
        return usage(o->model, command == LS_CMD_DP ? "is not an option, and dp takes no model"
                                                    : "is not an option, and calibrate takes no model");
    if (o->gpu_only != NULL && !gpu)
        return usage(o->gpu_only, "is for GPUs: it needs --target=cuda");
    if (o->measure_only != NULL && command == LS_CMD_SWEEP && !o->measure)
        return usage(o->measure_only, "is for --measure: without it a sweep builds nothing");
    if (o->tolerance != NULL && o->against == NULL)
        return usage("--tolerance", "is for --against PLAN.json");
    if (o->save_temps != NULL && o->emit != NULL && strcmp(o->emit, "c") == 0)
        return usage("--save-temps", "is not for C output, whose files all lie beside the output");
    return 0;
}

int ls_options_parse(LsOptions *o, int command, int argc, char **argv)
{
    const char *given[NOPTIONS] = {NULL};
    for (int i = 2; i < argc; i++) {
        const char *arg = argv[i];
        if (arg[0] != '-' || arg[1] == '\0') {
            if (o->model != NULL) {
                fprintf(stderr, "lowerset: two models given: '%s' and '%s'\n", o->model, arg);
                return LS_EXIT_USAGE;
            }
            o->model = arg;
            continue;
        }
        int code = parse_one(o, command, argc, argv, &i, given);
        if (code != 0)
            return code;
    }
    const int code = consistent(o, command);
    return code != 0 ? code : check_policy(o, command);
}

/* ---- help ---- */

static void put_settings(FILE *to, int command)
{
    if (command & BUILD) {
        fprintf(to, "\nLosses: KIND[:OUTPUT][@SETTING=NUMBER][@WEIGHT],... (the sum of each times its weight)\n");
        ls_loss_help(to);
        fprintf(to, "Settings of --optimizer, with their defaults\n");
        ls_optimizer_help(to);
        fprintf(to, "Kinds of --loss-scale, with their defaults\n");
        ls_scale_help(to);
        fprintf(to, "Settings of --schedule, each also with warmup=UPDATES\n"
                "    constant\n    linear:min=PART-OF-RATE\n    cosine:min=PART-OF-RATE\n"
                "    step:every=UPDATES,gamma=0.1\n");
    }
    if (command & SEARCH)
        fprintf(to, "A SIZE is bytes, or 64K, 512M, 4G (also KiB, MiB, GiB, TiB: powers of 1024), "
                "or KB, MB, GB, TB\n(powers of 1000).\n");
}

void ls_options_help(FILE *to, int command)
{
    const LsOptionTable table = table_of(command);
    ls_option_help(to, &table);
    put_settings(to, command);
}

void ls_options_table(FILE *to, int command, const char *name)
{
    for (int k = 0; k < NOPTIONS; k++)
        if (option[k].where & command)
            fprintf(to, "%s %s\n", name, option[k].name);
}
