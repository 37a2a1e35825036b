/* runtime/trainer/training_loop.h -- one run of a trainer: the state that main sets up, and the loop over updates. */
#ifndef LS_RUNTIME_TRAINER_TRAINING_LOOP_H
#define LS_RUNTIME_TRAINER_TRAINING_LOOP_H

#include "runtime/ranks/rank_exchange.h"
#include "runtime/watch/value_checks.h"
#include "runtime/pipeline/stage_threads.h"
#include "runtime/trainer/checkpoint_folder.h"
#include "runtime/watch/dump_values.h"
#include "runtime/trainer/evaluate.h"
#include "runtime/watch/json_log.h"
#include "runtime/trainer/trainer_options.h"
#include "runtime/watch/progress.h"
#include "runtime/trainer/learning_rate.h"
#include "runtime/trainer/private_updates.h"
#include "runtime/trainer/skipped_updates.h"
#include "runtime/watch/trace.h"

#include <signal.h>

/* A batch in flight: started, and its loss not known yet. */
typedef struct LsInFlight {
    int64_t update, epoch;      /* from 1; update: skipped ones count */
    int64_t batch;              /* its number in the pass, across all epochs */
    const LsPhaseTable *table;  /* the steps that it ran */
    int64_t valid;
    double lr;
    int slot;                   /* of the engine */
    bool apply;                 /* the last one of its update */
} LsInFlight;

/* How long the first updates of a run take. */
enum { LS_PACE_AFTER = 20, LS_PACE = 15 };      /* updates until it is told; the last ones of them that count */
typedef struct LsPace { int n; int64_t ns[LS_PACE]; } LsPace;

typedef struct LsTrainer {
    const LsProgram *p;
    LsTrainerOptions o;
    LsMemory memory;
    LsLoader loader;
    LsEngine engine;
    LsPipeline pipeline;        /* of a program for one; it trains, and `engine` evaluates */
    bool evaluates, dumps, traces;      /* rank 0 evaluates at the ends of epochs; it writes --dump; --trace or --profile */
    struct LsStageWatch *watch; /* likewise, by stage (pipelined_update.c) */
    LsDataset data, val;        /* val.p = NULL: none */
    LsRate rate;
    LsProgress progress;
    LsLog log;
    LsSaver saver; int listed;      /* checkpoints that its folder had at the start, as far as they are noted */
   
    LsDump dump;
    LsTrace trace;
    LsCheck check;
    LsMeasure measure;
    LsPlace place;
    LsPass pass;
    LsMemberState members;      /* of an ensemble */
    LsPrivateRun privacy;           /* of private training */
    int ranks;                  /* of a run over ranks, 1: one alone; 0: the program has none, or evaluates */
    char *window;               /* memory that all ranks see, or NULL: ls_exchange_open */
    LsComm *comm;               /* the ranks of the run; NULL: this process trains alone */
    LsComm *base_comm;              /* the engine that `comm` stands on, which carries all but gradients; else comm itself */
    bool direct;                /* gradients go from device to device */
    FILE *errors;               /* NULL: stderr. Ranks but the first have another place for notes */
    bool silent;                /* another rank says what went wrong */
    int ended;                  /* the exit code of ranks that this process started */
    LsExchange exchange;        /* exchange.r = NULL: there is none */
    int64_t per_epoch;          /* batches; in private training updates */
    int64_t updates;            /* of the whole run */
    LsInFlight flight[LS_DEVICE_SLOTS]; int nflight;      /* oldest first */
    int64_t update_samples, update_parts;       /* of the update under way: of all its batches; micro-steps with samples */
    LsMean part;                /* of the update whose loss is not complete yet */
    double loss;                /* of the last update whose loss is known */
    LsMean of_epoch;            /* of the updates of this epoch so far */
    bool spoilt;                /* in private training: the update under way has a batch whose loss is not finite */
    bool epoch_has_loss;        /* some update of this epoch had a finite loss */
    LsScaleSeen scale;          /* after the last update */
    LsError broken, suspect;    /* with a loss scale, of the update under way: the first value that is wrong, the first
                                 * that is not finite */
    bool told_of_none;          /* a warning was printed that no label counts in some update */
    int64_t saved;              /* the last update in a checkpoint, or the update that the run began with */
    int64_t longest_ns;         /* longest update of this run */
    LsPace pace;
    bool interrupted;           /* ended before the last update */
    bool blamed;                /* it was reported whether the evaluation data are finite */
    bool pinned;                /* the loader's ring, for a device */
    int threads;
    volatile sig_atomic_t *stop;    /* a signal's number: finish the step and end */
    int stopped;                /* the signal that ends the run; of ranks, they have agreed on it */
} LsTrainer;

/* Its steps are those of a pipeline; evaluation runs on one thread. */
static inline bool ls_is_pipelined(const LsTrainer *t) { return t->p->nstage > 0 && !t->o.eval; }

/* Whether the update under way is the last of the run. */
static inline bool ls_is_last_update(const LsTrainer *t) { return t->place.update + 1 == t->updates; }

/* The rank that speaks and writes for all. */
static inline bool ls_is_first(const LsTrainer *t) { return t->comm == NULL || t->comm->rank == 0; }

/* Sets the length of the run and its start: after the data are open and a checkpoint, if any, is
 * loaded. */
bool ls_train_plan(LsTrainer *t, bool resumed, LsError *e);
/* The training loop. Allocates nothing. Returns true also when *stop ended it: then t->stopped is set. */
bool ls_train(LsTrainer *t, LsError *e);
/* Lets the loader go on with the batches from t->place to the end of the run. */
void ls_train_begin_pass(LsTrainer *t);

/* ---- epoch_report.c ---- */
/* Evaluates on t->val and prints and logs the result. */
bool ls_train_evaluate(LsTrainer *t, LsError *e);
/* Says at the start how much of the model is trained. */
void ls_train_say_what(const LsTrainer *t);
void ls_train_show_progress(LsTrainer *t);
/* Notes the time of an update; once, prints the time of a step beside the predicted one. */
void ls_train_pace(LsTrainer *t, int64_t ns);
/* Prints the result line of an epoch, with all updates that began in it, or of a part of an epoch at the end of the
 * run. */
bool ls_train_end_epoch(LsTrainer *t, bool whole, LsError *e);

/* ---- what an update consists of ---- */
enum { LS_PART_HOOKS = 5 };

/* Epochs are counted in batches, `group` of which make an update. In private training the number of batches of an update
 * varies, and is nobody's business: updates are counted, and the group is 1. */
static inline int64_t ls_batches_per_update(const LsTrainer *t)
{
    return !ls_is_private(t->p) && t->p->accumulate > 0 ? t->p->accumulate : 1;
}

/* Parts of a batch. */
static inline int64_t ls_micro_batches(const LsProgram *p) { return p->parts > 1 ? p->parts : 1; }

/* Sets what kernels read of micro-step k of an update. part: its number among those with samples. */
void ls_part_run(LsTrainer *t, const LsBatch *b, int64_t k, int64_t part);

/* ---- clip_check.c ---- */
/* Before the first micro-step of a private update, on the batch that was fed. An error: the clip is exceeded. */
bool ls_clip_check(LsTrainer *t, const LsBatch *b, LsError *e);

/* ---- update_loss.c ---- */
/* Whether --check-numerics looks at this step; it also names the cause if this skipped update would be one too many. */
bool ls_part_watched(const LsTrainer *t);
/* The steps of a micro-step. */
const LsPhaseTable *ls_part_table(const LsTrainer *t, bool last);
/* For a run of these steps; returns the number of hooks. Reports are of the table that they were opened for. */
int ls_part_hooks(LsTrainer *t, const LsPhaseTable *table, bool last_batch, LsHook hook[LS_PART_HOOKS]);
/* What the checks of the last run found. With a loss scale it is kept for later. */
bool ls_part_check(LsTrainer *t, const LsInFlight *f, LsLoss one, LsError *e);
/* Adds the loss of a part; after the last part of an update, reports the update. */
bool ls_part_loss(LsTrainer *t, const LsInFlight *f, LsLoss one, LsError *e);

/* ---- rank_update.c ---- */
/* What all ranks must have alike: the program, and where they are in which run. */
uint64_t ls_rank_place(const LsTrainer *t);
/* This rank's block of the update under way, and the exchange. */
bool ls_rank_block(LsTrainer *t, LsError *e);
/* Compares what all ranks have alike, if it is time for that after an update, or at the start of a run. */
bool ls_rank_compare(LsTrainer *t, bool start, LsError *e);
/* Calls save(t, e) in the first rank, to which all others give their slices of the state meanwhile. */
bool ls_train_by_first(LsTrainer *t, bool (*save)(LsTrainer *, LsError *), LsError *e);

/* ---- rescue.c ---- */

/* Saves an interrupted run, unless its --save folder has it, and says how to continue. */
bool ls_end_interrupted(LsTrainer *t, LsError *e);
/* Saves a trained state that could not be written where it should be, unless a checkpoint has it. Says on stderr where it is
 * now, or that it is lost. */
void ls_rescue_unwritten(LsTrainer *t);

/* ---- pipelines: pipelined_update.c ---- */

/* Each stage is a process. */
static inline bool ls_has_stage_ranks(const LsTrainer *t) { return t->p->nstage > 0 && t->comm != NULL; }
/* Starts the stages of this process. Close in any case. */
bool ls_pipelined_open(LsTrainer *t, LsError *e);
void ls_pipelined_close(LsTrainer *t);
/* Runs all parts of the update that have samples. Their losses are in t->pipeline.loss, by part. check: look for values
 * that are not finite; dump: copy the values of --dump from the last part. */
bool ls_pipelined_update(LsTrainer *t, bool check, bool dump, LsError *e);
/* With a rank for each stage: rank 0 gets the state of all. Every rank calls it at the same time. */
bool ls_pipelined_gather(LsTrainer *t, LsError *e);
/* The same for what --dump copied, and for the times of --trace and --profile. */
bool ls_pipelined_gather_watched(LsTrainer *t, LsError *e);
bool ls_pipelined_dump_fits(const LsTrainer *t, LsError *e);
bool ls_pipelined_dump_write(const LsTrainer *t, LsError *e);
bool ls_pipelined_trace_write(const LsTrainer *t, LsError *e);

#endif
