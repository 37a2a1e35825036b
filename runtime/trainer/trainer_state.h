/* runtime/trainer/trainer_state.h -- the state of one run of a trainer, which main sets up. */
#ifndef LS_RUNTIME_TRAINER_TRAINER_STATE_H
#define LS_RUNTIME_TRAINER_TRAINER_STATE_H

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
    LsPrivateRun privacy;       /* of private training */
    int ranks;                  /* of a run over ranks, 1: one alone; 0: the program has none, or evaluates */
    char *window;               /* memory that all ranks see, or NULL: ls_exchange_open */
    LsComm *comm;               /* the ranks of the run; NULL: this process trains alone */
    LsComm *base_comm;          /* the engine that `comm` stands on, which carries all but gradients; else comm itself */
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

/* Each stage is a process. */
static inline bool ls_has_stage_ranks(const LsTrainer *t) { return t->p->nstage > 0 && t->comm != NULL; }

/* Epochs are counted in batches, `group` of which make an update. In private training the number of batches of an update
 * varies, and is nobody's business: updates are counted, and the group is 1. */
static inline int64_t ls_batches_per_update(const LsTrainer *t)
{
    return !ls_is_private(t->p) && t->p->accumulate > 0 ? t->p->accumulate : 1;
}

/* Parts of a batch. */
static inline int64_t ls_micro_batches(const LsProgram *p) { return p->parts > 1 ? p->parts : 1; }

#endif
