/* runtime/trainer/trainer_state.h -- the state of one run of a trainer, which main sets up. */
#ifndef LS_RUNTIME_TRAINER_TRAINER_STATE_H
#define LS_RUNTIME_TRAINER_TRAINER_STATE_H

#include "runtime/metrics/metrics.h"
#include "runtime/ranks/rank_exchange.h"
#include "runtime/watch/arena_measure.h"
#include "runtime/pipeline/stage_threads.h"
#include "runtime/trainer/checkpoint_folder.h"
#include "runtime/watch/dump_values.h"
#include "runtime/watch/event_file.h"
#include "runtime/watch/grad_norm.h"
#include "runtime/update/evaluate.h"
#include "runtime/watch/json_log.h"
#include "runtime/trainer/trainer_options.h"
#include "runtime/update/training.h"
#include "runtime/watch/progress.h"
#include "runtime/watch/trace.h"

#include <signal.h>

/* How long the first updates of a run take. */
enum { LS_PACE_AFTER = 20, LS_PACE = 15 };      /* updates until it is told; the last ones of them
                                                 * that count */
typedef struct LsPace { int n; int64_t ns[LS_PACE]; } LsPace;

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
    LsMeasure measure;
    LsMetrics metrics;          /* of evaluations */
    struct LsStageWatch *stage; /* likewise, by stage (pipelined_update.c) */
} LsReports;

/* What was seen, and told once. */
typedef struct LsTold {
    bool unwritten;             /* it was reported that lines of a log are lost */
    bool blamed;                /* it was reported whether the evaluation data are finite */
    int64_t reported_ns;        /* when the last update was reported */
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
    LsTraining u;               /* what updates need */
    LsPipeline pipeline;        /* of a program for one; it trains, and u.engine evaluates */
    LsDataset val;              /* val.p = NULL: none */
    LsAugmenter augmenter;      /* of u.feed.train; kind = NULL: samples are as in the data */
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
    return t->u.place.update + 1 == t->u.updates;
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

#endif
