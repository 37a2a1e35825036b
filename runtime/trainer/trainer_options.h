/* runtime/trainer/trainer_options.h -- the trainer's command line. Parser, --help and the list for
 * completion are one table. */
#ifndef LS_RUNTIME_TRAINER_TRAINER_OPTIONS_H
#define LS_RUNTIME_TRAINER_TRAINER_OPTIONS_H

#include "runtime/base/option_table.h"
#include "runtime/base/run_error.h"
#include "runtime/data/augment.h"
#include "runtime/ls_program.h"

#include <stdio.h>

enum { LS_COMPARE_REPLICAS = 100 };

typedef struct LsTrainerOptions {
    const char *data, *val, *label_from, *scale, *mean, *std, *raw;
    const char *val_split;      /* samples of `data` in place of `val` */
    int64_t val_every;          /* updates; 0: only after epochs */
    int64_t limit_batches, limit_val_batches;   /* of an epoch, of an evaluation; 0: all */
    int64_t stride;             /* of token streams; 0: a row */
    bool pack;
    bool random_windows;        /* of token streams */
    const char *augment; LsAugment augments;            /* as given, as parsed */
    bool shuffle, drop_last, order_given;   /* order_given: one of both, or the next one */
    int64_t shuffle_seed;       /* of the order of samples; -1: that of the run */
    int64_t workers;            /* -1: chosen from the number of threads */
    double epochs;              /* -1: not given */
    int64_t steps;              /* updates; 0: no limit */
    double lr;
    const char *schedule;
    int64_t seed; bool seed_given;
    int64_t ensemble_seed;      /* -1: none */
    const char *ensemble_weights, *member_rates, *member_seeds;
    int64_t export_member;      /* -1: none */
    int64_t noise_seed;         /* -1: a secret */
    int64_t check_clip;         /* -1: not given */
    int64_t max_skipped;        /* updates in a row; 0: not given */
    int64_t threads;            /* 0: all */
    int64_t ranks, rank;        /* 0, -1: not given */
    const char *comm, *peers, *token_file;
    int64_t bucket;             /* bytes of gradients that ranks exchange together, at least */
    int64_t compare_replicas;   /* once in so many updates; 0: never */
    bool late_exchange;         /* only after the backward part */
    bool share_gpus;            /* two ranks may have the same */
    bool tune;
    bool eval;                  /* trains nothing: evaluates, or does what `infers` names */
    const char *infers;         /* the option that asks for predictions: "--predict", ...; NULL */
    const char *predict, *predict_as, *predict_outputs;
    int64_t generate;           /* tokens; 0: none */
    const char *prompt;
    double temperature, top_p;  /* < 0: not given */
    int64_t top_k;              /* 0: all */
    bool serve_stdin;
    const char *metrics, *confusion;
    bool by_class;              /* every evaluation prints its table */
    bool export_scaling, export_notes;
    int64_t find_rate;          /* updates; -1: a usual number of them; 0: no search */
    const char *rate_range, *rate_table;
    const char *init_from; bool init_strict;
    const char *save_weights, *weights_of;
    const char *save, *resume, *export_to, *export_precision, *export_adapter;
    LsDataType export_type;     /* of weights: LS_DT_REAL, LS_DT_F16, LS_DT_BF16 */
    bool export_external;       /* two files, whatever their size */
    int64_t save_every, keep_last;
    const char *keep_best;      /* the name of a metric (evaluate.h) */
    int64_t patience;           /* evaluations; 0: the run does not end early */
    double min_delta;
    bool export_best;
    bool save_frozen;
    bool overwrite;
    const char *tensorboard;    /* a folder */
    bool log_grad_norm;
    const char *log, *trace, *profile, *progress, *dump, *image_grid;
    int64_t check_gradients;    /* elements; 0: no check; -1: as many as some seconds allow */
    bool check_numerics, measure, print_plan, version, help;
} LsTrainerOptions;

/* Defaults come from the program. A wrong command line is an LS_EXIT_USAGE error. */
bool ls_trainer_options_parse(LsTrainerOptions *o, const LsProgram *p, int argc, char **argv,
                              LsError *e);
enum { LS_RANK_NUMBERS = 120 };
/* "1, 2, 4 or 8 ranks": how many the program may have. Returns text. */
const char *ls_rank_numbers(const LsRanks *r, char text[LS_RANK_NUMBERS]);
/* Whether every requested output file could be written now. */
bool ls_trainer_outputs_check(const LsTrainerOptions *o, const LsProgram *p, LsError *e);
void ls_trainer_options_help(const LsProgram *p, const char *name, FILE *to);

/* ---- parts, one file each ---- */
extern const LsOptionTable ls_trainer_table;    /* option_rows.c */
/* The path of row k of the table, if it is an output option that was given; else NULL. */
const char *ls_trainer_output(const LsTrainerOptions *o, int k);
/* option_rules.c: whether the options go together and with the program; else an LS_EXIT_USAGE
 * error. Parses --augment. */
bool ls_trainer_options_fit(LsTrainerOptions *o, const LsProgram *p, LsError *e);
/* inference_rules.c: sets `infers` and `eval`; what predictions, metrics and scaling add to the
 * rules. */
bool ls_trainer_inference_fit(LsTrainerOptions *o, const LsProgram *p, LsError *e);
/* Sets export_type of --export-precision, which the model must be able to cast. */
bool ls_trainer_export_type(LsTrainerOptions *o, const LsProgram *p, LsError *e);

#endif
