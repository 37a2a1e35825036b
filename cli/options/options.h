/* cli/options/options.h -- the options of lowerset: one table for the parser, the
 * help text and the man page. */
#ifndef LS_CLI_OPTIONS_OPTIONS_H
#define LS_CLI_OPTIONS_OPTIONS_H

#include "cli/options/precision_spec.h"
#include "compiler/pipeline.h"
#include "runtime/base/option_table.h"
#include "scheduler/plan/keep_forget_hints.h"
#include "scheduler/plan/plan_options.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    LS_CMD_COMPILE = 1, LS_CMD_PLAN = 2, LS_CMD_INSPECT = 4,
    LS_CMD_GRAPH = 8,           /* in an option's row: the option also applies to a training
                                 * graph */
    LS_CMD_SWEEP = 16, LS_CMD_CHECK = 32,
    LS_CMD_SCHEDULE = 64,       /* likewise to a plan in a file */
    LS_CMD_GPU = 128,           /* in an option's row: the option needs --target=cuda */
    LS_CMD_MEASURE = 256,       /* likewise for a sweep: the option needs --measure */
    LS_CMD_CALIBRATE = 512, LS_CMD_DP = 1024
};

typedef struct LsOptions {      /* as typed; ls_options_* below work out the meaning */
    const char *model;
    const char *model_only;     /* the first option given that does not apply to a training graph,
                                 * or to the check of a plan */
    const char *gpu_only;       /* the first option that needs --target=cuda */
    const char *measure_only;   /* the first option that needs sweep --measure */
    /* output */
    const char *output, *emit, *save_temps;
    bool dry_run, verbose, quiet;
    /* target */
    const char *target, *arch, *nvcc, *march, *cc, *opt, *precision, *eval_precision, *bf16_sums, *machine, *costs;
    bool nondeterministic, compiled_engines, no_overlap;
    const char *workspace;
    /* shape */
    LsList dim, shape;
    int64_t batch;
    /* training */
    const char *loss, *loss_input, *label, *smoothing, *ignore, *class_weights, *class_axis, *label_shape;
    const char *optimizer, *schedule, *lr, *clip_norm, *clip_value, *scale, *grads, *privacy, *randomness, *mixed_parts, *sample_norms,
               *ensemble_batches, *bn, *bn_var, *dropout;
    int64_t accumulate, microbatches;
    int64_t ranks;              /* 0: not given; LS_OPTION_ANY */
    const char *comm;           /* --comm */
    int64_t stages;             /* of a pipeline; 0: none */
    const char *order, *link;
    int64_t ensemble, lanes;    /* members, 0: none; of them at the same time, 0: one */
    const char *ema;
    LsList freeze, train, only, stop, wide, no_decay;
    bool tie;
    /* memory */
    const char *budget, *budget_of, *strategy, *plan_time;
    int64_t plan_effort;        /* percent; 0: the default */
    bool max_batch;
    bool no_inplace, no_offsets, no_alternatives, no_epilogues, store_gradients, prove;
    LsList keep, forget;
    const char *recompute;
    /* reports */
    bool json;
    const char *graph_json, *plan_json, *dot, *timeline, *report, *dump_pass;
    const char *against, *tolerance;
    int64_t max_errors;
    /* sweep */
    const char *from, *to, *strategies;
    int64_t points;
    bool table, measure;
    /* check */
    const char *data;
    int64_t elements;           /* number of gradient elements checked; 0: the program decides */
    /* calibrate */
    int64_t threads;            /* 0: all */
    bool quick;
    /* dp */
    const char *sample_rate, *noise, *epsilon, *delta;
    int64_t steps, samples, epochs;     /* 0: not given */
} LsOptions;

/* Parses argv[2..]; 0, or the exit code after a message. command: one LS_CMD_ bit. An option may be
 * given once, unless it collects a list. */
int ls_options_parse(LsOptions *o, int command, int argc, char **argv);
/* Prints the options of a command by groups, and the defaults. */
void ls_options_help(FILE *to, int command);
/* "COMMAND --option" lines, COMMAND being `name`: for scripts and tests. */
void ls_options_table(FILE *to, int command, const char *name);

/* The meaning of --precision. 0, or the exit code after a message. */
int ls_options_precision(const LsOptions *o, LsPrecisionSpec *to);
/* The options of the passes. 0, or the exit code after a message. Strings and arrays come from
 * cx->arena. */
int ls_options_pipeline(LsCtx *cx, const LsOptions *o, LsPipelineOptions *p);

typedef enum { LS_BUDGET_NONE, LS_BUDGET_BYTES, LS_BUDGET_PERCENT, LS_BUDGET_MIN } LsBudgetKind;
/* bytes in all, or percent */
typedef struct LsBudget { LsBudgetKind kind; double value; } LsBudget;
/* "2GiB", "2G", "512MB", "80%", "min", "none", a number of bytes; false: anything else. K, M, G and T alone are powers
 * of 1024, as KiB, MiB, GiB and TiB. */
bool ls_budget_parse(const char *text, LsBudget *b);

/* The options of scheduler/plan/planner.h: strategy, limits of the search. 0, or the exit code
 * after a message. */
int ls_options_planning(const LsOptions *o, LsPlanOptions *want);
/* The hints; they live as long as the options. 0, or the exit code after a message. */
int ls_options_hints(const LsOptions *o, LsHints *hints);
/* --recompute; never except-last of a single part, which is none. 0, or the exit code after a message. */
int ls_options_recompute(const LsOptions *o, LsRecompute *policy);
/* Stages of a pipeline: 1 if there is none. */
static inline int64_t ls_options_stages(const LsOptions *o) { return o->stages > 1 ? o->stages : 1; }
/* Whether ranks share the parts of a batch. */
static inline bool ls_options_over_ranks(const LsOptions *o) { return o->ranks > 1 || o->ranks == LS_OPTION_ANY; }
/* Micro-batches of a batch: 1 if it is not cut. */
static inline int64_t ls_options_parts(const LsOptions *o)
{
    return o->microbatches > 0 ? o->microbatches : o->ranks > 0 ? o->ranks : 1;
}

/* --tolerance as a fraction of 1. 0, or the exit code after a message. */
int ls_options_tolerance(const LsOptions *o, double *part);

/* --optimizer, or its default. */
const char *ls_options_optimizer(const LsOptions *o);

/* The learning rate: --lr, else that of --optimizer, else the default of its kind. For options that
 * ls_options_pipeline accepted. */
double ls_options_lr(const LsOptions *o);

#endif
