/* cli/options/options.h -- the options of lowerset: one table for the parser, the
 * help text and the man page. */
#ifndef LS_CLI_OPTIONS_OPTIONS_H
#define LS_CLI_OPTIONS_OPTIONS_H

#include "cli/option_groups/command_group.h"
#include "cli/option_groups/data_group.h"
#include "cli/option_groups/machine_group.h"
#include "cli/option_groups/memory_group.h"
#include "cli/option_groups/output_group.h"
#include "cli/option_groups/part_group.h"
#include "cli/option_groups/report_group.h"
#include "cli/option_groups/sample_group.h"
#include "cli/option_groups/trained_group.h"
#include "cli/option_groups/training_group.h"
#include "cli/options/precision_spec.h"
#include "codegen/tiling/tile_spans.h"
#include "compiler/pipeline.h"
#include "scheduler/graph/memory_budget.h"
#include "scheduler/plan/keep_forget_hints.h"
#include "scheduler/plan/plan_options.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct LsOptions {      /* as typed; ls_options_* below work out the meaning */
    const char *model;
    const char *model_only;     /* the first option given that does not apply to a training graph,
                                 * or to the check of a plan */
    const char *gpu_only;       /* the first option that needs --target=cuda */
    const char *measure_only;   /* the first option that needs sweep --measure */
    /* The groups of the help. A new one is a line here and one in options.c. */
    LsOutputGroup output;
    LsSizeGroup sizes;
    LsLossGroup loss;
    LsUpdateGroup update;
    LsSampleGroup samples;
    LsEnsembleGroup ensemble;
    LsPartGroup parts;
    LsRankGroup ranks;
    LsPipeGroup pipe;
    LsTrainedGroup trained;
    LsModeGroup norms;
    LsMemoryGroup memory;
    LsSweepGroup sweep;
    LsReportGroup reports;
    LsCheckGroup check;
    LsCalibrateGroup calibrate;
    LsDpGroup dp;
    LsDataGroup data;
    LsMachineGroup machine;
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

/* "2GiB", "2G", "512MB", a number of bytes, at least 1; false: anything else. K, M, G and T alone
 * are powers of 1024, as KiB, MiB, GiB and TiB. */
bool ls_size_parse(const char *text, int64_t *bytes);
/* A size, which is of a process; "80%", "min"; "none" or NULL, no limit. False: anything else. */
bool ls_budget_parse(const char *text, LsBudget *b);

/* The options of scheduler/plan/planner.h: strategy, limits of the search. 0, or the exit code
 * after a message. */
int ls_options_planning(const LsOptions *o, LsPlanOptions *want);
/* The hints; they live as long as the options. 0, or the exit code after a message. */
int ls_options_hints(const LsOptions *o, LsHints *hints);
/* --recompute; never except-last of a single part, which is none. 0, or the exit code after a
 * message. */
int ls_options_recompute(const LsOptions *o, LsRecompute *policy);
/* The option with which tiles do not go, "--ranks"; NULL: there is none. */
const char *ls_tiles_exclude(const LsOptions *o);
/* --tiles=N@SIZE, Nrows@SIZE, Ntokens@SIZE; tiles 0: nothing, auto or off. 0, or the exit code
 * after a message. */
int ls_options_tiling(const LsOptions *o, LsTiling *tiling);
/* Stages of a pipeline: 1 if there is none. */
static inline int64_t ls_options_stages(const LsOptions *o)
{
    return o->pipe.stages > 1 ? o->pipe.stages : 1;
}
/* Whether ranks share the parts of a batch. */
static inline bool ls_options_over_ranks(const LsOptions *o)
{
    return o->ranks.count > 1 || o->ranks.count == LS_OPTION_ANY;
}
/* Micro-batches of a batch: 1 if it is not cut. */
static inline int64_t ls_options_parts(const LsOptions *o)
{
    return o->parts.microbatches > 0 ? o->parts.microbatches
           : o->ranks.count > 0      ? o->ranks.count
                                     : 1;
}

/* --tolerance as a fraction of 1. 0, or the exit code after a message. */
int ls_options_tolerance(const LsOptions *o, double *part);

/* --optimizer, or its default. */
const char *ls_options_optimizer(const LsOptions *o);

/* The learning rate: --lr, else that of --optimizer, else the default of its kind. For options that
 * ls_options_pipeline accepted. */
double ls_options_lr(const LsOptions *o);

#endif
