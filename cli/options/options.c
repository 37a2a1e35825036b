/* cli/options/options.c -- the option table, the parser and the help text. */
#include "cli/options/options.h"

#include "base/heap.h"
#include "cli/options/loss_spec.h"
#include "cli/options/optimizer_spec.h"
#include "cli/options/scale_spec.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    BUILD = LS_CMD_COMPILE | LS_CMD_PLAN | LS_CMD_SWEEP | LS_CMD_CHECK,
    SEARCH = BUILD | LS_CMD_GRAPH
};

/* The groups in the order of the help, each with the place of its struct. */
static const struct { const LsOptionGroup *of; size_t at; } group[] = {
    {&ls_output_group, offsetof(LsOptions, output)},
    {&ls_sizes_group, offsetof(LsOptions, sizes)},
    {&ls_loss_group, offsetof(LsOptions, loss)},
    {&ls_update_group, offsetof(LsOptions, update)},
    {&ls_samples_group, offsetof(LsOptions, samples)},
    {&ls_ensemble_group, offsetof(LsOptions, ensemble)},
    {&ls_parts_group, offsetof(LsOptions, parts)},
    {&ls_ranks_group, offsetof(LsOptions, ranks)},
    {&ls_pipe_group, offsetof(LsOptions, pipe)},
    {&ls_trained_group, offsetof(LsOptions, trained)},
    {&ls_norms_group, offsetof(LsOptions, norms)},
    {&ls_memory_group, offsetof(LsOptions, memory)},
    {&ls_sweep_group, offsetof(LsOptions, sweep)},
    {&ls_reports_group, offsetof(LsOptions, reports)},
    {&ls_check_group, offsetof(LsOptions, check)},
    {&ls_calibrate_group, offsetof(LsOptions, calibrate)},
    {&ls_dp_group, offsetof(LsOptions, dp)},
    {&ls_data_group, offsetof(LsOptions, data)},
    {&ls_machine_group, offsetof(LsOptions, machine)},
};
enum { NGROUPS = sizeof group / sizeof *group, MOST_ROWS = 256 };

/* All rows as one table: those of the groups, each with its place in LsOptions, and the headings.
 */
static LsOption option[MOST_ROWS];
static int noptions;

static void add_row(LsOption row)
{
    assert(noptions < MOST_ROWS);       /* a table of this program, not what a user gave */
    option[noptions++] = row;
}

static void join_groups(void)
{
    for (int g = 0; g < NGROUPS; g++) {
        const LsOptionGroup *of = group[g].of;
        if (of->heading != NULL)
            add_row((LsOption)LS_OPTION_HEADING(of->heading));
        for (int k = 0; k < of->n; k++) {
            LsOption row = of->row[k];
            row.at += group[g].at;
            add_row(row);
        }
    }
}

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

/* Refuses an option that is gone; false: `arg` is none. next: the argument behind it; NULL: none.
 */
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
    if (noptions == 0)
        join_groups();
    return (LsOptionTable){.row = option, .n = noptions, .where = command};
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

/* Refuses a policy of programs where none is made; a training graph is noticed when the file is
 * read. */
#define POLICY_OPTION(id, name, scope, again) "--recompute=" name,
static int check_policy(LsOptions *o, int command)
{
    static const char *const option_of[] = {LS_RECOMPUTE_POLICIES(POLICY_OPTION, POLICY_OPTION)};
    LsRecompute policy;
    if (o->memory.recompute == NULL || !ls_recompute_parse(o->memory.recompute, &policy)
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
    bool gpu = o->machine.target != NULL && strcmp(o->machine.target, "cuda") == 0;
    bool modelless = command == LS_CMD_CALIBRATE || command == LS_CMD_DP || command == LS_CMD_DATA;
    if (o->model == NULL && !o->sweep.table && !modelless)
        return usage("no model given;", "see lowerset help");
    if (o->model != NULL && modelless)
        return usage(o->model, command == LS_CMD_DP
                                   ? "is not an option, and dp takes no model"
                                   : "is not an option, and calibrate takes no model");
    if (o->gpu_only != NULL && !gpu)
        return usage(o->gpu_only, "is for GPUs: it needs --target=cuda");
    if (o->measure_only != NULL && command == LS_CMD_SWEEP && !o->sweep.measure)
        return usage(o->measure_only, "is for --measure: without it a sweep builds nothing");
    if (o->reports.tolerance != NULL && o->reports.against == NULL)
        return usage("--tolerance", "is for --against PLAN.json");
    if (o->output.save_temps != NULL && o->output.emit != NULL && strcmp(o->output.emit, "c") == 0)
        return usage("--save-temps", "is not for C output, whose files all lie beside the output");
    return 0;
}

static void add_word(LsList *words, const char *word, int most)
{
    if (words->item == NULL)
        words->item = ls_heap_alloc((size_t)most, sizeof *words->item);
    words->item[words->n++] = word;
}

int ls_options_parse(LsOptions *o, int command, int argc, char **argv)
{
    const char *given[MOST_ROWS] = {NULL};
    for (int i = 2; i < argc; i++) {
        const char *arg = argv[i];
        if (arg[0] != '-' || arg[1] == '\0') {
            if (command == LS_CMD_DATA) {
                add_word(&o->data.words, arg, argc);
                continue;
            }
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
        fprintf(to, "\nLosses: KIND[:OUTPUT][@SETTING=NUMBER][@WEIGHT],... (the sum of each times "
                    "its weight)\n");
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
    const LsOptionTable table = table_of(command);
    for (int k = 0; k < table.n; k++)
        if (table.row[k].where & command)
            fprintf(to, "%s %s\n", name, table.row[k].name);
}
