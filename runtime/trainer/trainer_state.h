/* runtime/trainer/trainer_state.h -- the state of one run of a trainer, which main sets up. */
#ifndef LS_RUNTIME_TRAINER_TRAINER_STATE_H
#define LS_RUNTIME_TRAINER_TRAINER_STATE_H

#include "runtime/metrics/metrics.h"
#include "runtime/ranks/rank_exchange.h"
#include "runtime/watch/arena_measure.h"
#include "runtime/watch/value_checks.h"
#include "runtime/pipeline/stage_threads.h"
#include "runtime/trainer/checkpoint_folder.h"
#include "runtime/watch/dump_values.h"
#include "runtime/watch/event_file.h"
#include "runtime/watch/grad_norm.h"
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
    double grad_norm;           /* of its update; < 0: not known */
} LsInFlight;

/* How long the first updates of a run take. */
enum { LS_PACE_AFTER = 20, LS_PACE = 15 };      /* updates until it is told; the last ones of them
                                                 * that count */
typedef struct LsPace { int n; int64_t ns[LS_PACE]; } LsPace;

/* Where the batches come from. */
typedef struct LsFeed {
    LsDataset train, val;       /* val.p = NULL: none */
    LsAugmenter augmenter;      /* of train; kind = NULL: samples are as in the data */
    LsLoader loader;
    LsPass pass;
    bool pinned;                /* the loader's ring, for a device */
} LsFeed;

/* The update whose loss is not complete yet. */
typedef struct LsUnderWay {
    int64_t samples;            /* of all its batches */
    int64_t micro_batches;      /* with samples */
    LsMean mean;
    double loss;                /* of the last update whose loss is known */
    bool spoilt;                /* in private training: it has a batch whose loss is not finite */
    LsError broken, suspect;    /* with a loss scale: its first value that is wrong, its first that
                                 * is not finite */
} LsUnderWay;

typedef struct LsEpoch {
    int64_t batches;            /* in private training updates */
    LsMean mean;                /* of the updates of this epoch so far */
    bool has_loss;              /* some update of this epoch had a finite loss */
} LsEpoch;

/* The ranks of the run. */
typedef struct LsGroup {
    int count;                  /* 1: one alone; 0: the program has none, or evaluates */
    LsComm *comm;               /* NULL: this process trains alone */
    LsComm *base;               /* the engine that `comm` stands on, which carries all but
                                 * gradients; else comm itself */
    char *window;               /* memory that all ranks see, or NULL: ls_exchange_open */
    LsExchange exchange;        /* exchange.r = NULL: there is none */
    bool direct;                /* gradients go from device to device */
    FILE *errors;               /* NULL: stderr. Ranks but the first have another place for notes */
    bool silent;                /* another rank says what went wrong */
    int ended;                  /* the exit code of ranks that this process started */
} LsGroup;

typedef struct LsSaves {
    LsSaver saver;
    int listed;                 /* checkpoints that its folder had at the start, as far as they are
                                 * noted */
    bool best_due;              /* the last evaluation is the best so far */
    int64_t last;               /* the last update in a checkpoint, or the update that the run began
                                 * with */
} LsSaves;

/* What the run shows and writes besides weights. */
typedef struct LsReports {
    bool evaluates, dumps, traces;      /* rank 0 evaluates at the ends of epochs; it writes --dump;
                                         * --trace or --profile */
    LsProgress progress;
    LsLog log;
    LsEvents events;
    LsGradNorm norm;
    LsDump dump;
    LsTrace trace;
    LsCheck check;
    LsMeasure measure;
    LsMetrics metrics;          /* of evaluations */
    struct LsStageWatch *stage; /* likewise, by stage (pipelined_update.c) */
} LsReports;

/* What was seen, and told once. */
typedef struct LsTold {
    FILE *notes;                /* where notes go; NULL: nowhere */
    LsScaleSeen scale;          /* after the last update */
    bool no_label;              /* a warning was printed that no label counts in some update */
    bool unwritten;             /* it was reported that lines of a log are lost */
    bool blamed;                /* it was reported whether the evaluation data are finite */
    int64_t since_ns;           /* when the update under way began, or the one before was
                                 * reported */
    int64_t tokens;             /* of a sample; 0: it has none */
    int64_t longest_ns;         /* longest update of this run */
    LsPace pace;
} LsTold;

typedef struct LsEnding {
    volatile sig_atomic_t *signal;      /* its number: finish the step and end */
    int agreed;                 /* the signal that ends the run; of ranks, they have agreed on it */
    bool early;                 /* evaluations do not improve any more */
    bool interrupted;           /* ended by a signal before the last update */
} LsEnding;

typedef struct LsTrainer {
    const LsProgram *p;
    LsTrainerOptions o;
    int threads;
    LsMemory memory;
    LsEngine engine;
    LsPipeline pipeline;        /* of a program for one; it trains, and `engine` evaluates */
    LsFeed feed;
    LsRate rate;
    LsPlace place;
    int64_t updates;            /* of the whole run */
    LsInFlight flight[LS_DEVICE_SLOTS]; int nflight;      /* oldest first */
    LsUnderWay under_way;
    LsEpoch epoch;
    LsMemberState members;      /* of an ensemble */
    LsPrivateRun privacy;       /* of private training */
    LsGroup group;
    LsSaves saves;
    LsReports reports;
    LsTold told;
    LsEnding ending;
} LsTrainer;

/* Its steps are those of a pipeline; evaluation runs on one thread. */
static inline bool ls_is_pipelined(const LsTrainer *t)
{
    return t->p->pipeline.nstage > 0 && !t->o.eval;
}

/* Whether the update under way is the last of the run. */
static inline bool ls_is_last_update(const LsTrainer *t)
{
    return t->place.update + 1 == t->updates;
}

/* The rank that speaks and writes for all. */
static inline bool ls_is_first(const LsTrainer *t)
{
    return t->group.comm == NULL || t->group.comm->rank == 0;
}

/* Each stage is a process. */
static inline bool ls_has_stage_ranks(const LsTrainer *t)
{
    return t->p->pipeline.nstage > 0 && t->group.comm != NULL;
}

/* Epochs are counted in batches, `group` of which make an update. In private training the number of
 * batches of an update varies, and is nobody's business: updates are counted, and the group is
 * 1. */
static inline int64_t ls_batches_per_update(const LsTrainer *t)
{
    return ls_is_private(t->p) ? 1 : ls_update_batches(&t->p->division);
}
static inline int64_t ls_micro_batches_per_update(const LsTrainer *t)
{
    return ls_batches_per_update(t) * ls_micro_batches(&t->p->division);
}

#endif
