/* runtime/update/training.h -- a training under way: what its updates need, whoever asks for them,
 * the trainer or a library's caller. */
#ifndef LS_RUNTIME_UPDATE_TRAINING_H
#define LS_RUNTIME_UPDATE_TRAINING_H

#include "runtime/engine/engine.h"
#include "runtime/engine/thread_pool.h"
#include "runtime/update/learning_rate.h"
#include "runtime/update/member_state.h"
#include "runtime/update/private_updates.h"
#include "runtime/update/skipped_updates.h"
#include "runtime/update/value_checks.h"

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

/* Where the batches come from. */
typedef struct LsFeed {
    LsDataset train;
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

/* How updates are made, besides what the program says. */
typedef struct LsUpdateRules {
    int64_t most_skipped;       /* in a row, with a loss scale; 0: as usual */
    int64_t check_clip;         /* the clip of private updates is checked once in so many; 0:
                                 * never; -1: as usual */
    bool check_values;          /* all values are looked at, and the first that is not finite is
                                 * named */
    bool blind;                 /* none are ever, as other processes have some of them */
    bool keeps_sums;            /* somebody reads the sum of an update's gradients: another process,
                                 * or a dump */
} LsUpdateRules;

enum { LS_PART_HOOKS = 6 };

/* Who looks on while updates run, and hears what became of them. Any function may be NULL. */
typedef struct LsUpdateWatch {
    void *self;
    /* Hooks for a run of these steps; returns their number, at most LS_PART_HOOKS - 2. last: of the
     * last part of an update. */
    int (*hooks)(void *self, const LsPhaseTable *table, bool last, LsHook *hook);
    /* The norm of the gradients of the update whose last part ran. */
    double (*norm)(void *self);
    /* An update has this loss, or is the one with the first loss of a part that is not finite. */
    void (*landed)(void *self, const LsInFlight *f, double loss);
    /* The loss scale after it, if that is another one or the update was skipped. */
    void (*scaled)(void *self, const LsInFlight *f, double was, double is, bool skipped);
    void (*before_note)(void *self);    /* before something is written to LsTraining.notes */
} LsUpdateWatch;

/* Who runs the parts of an update, and adds their losses (ls_part_loss), if that is not this
 * process, one part after the other; run = NULL. */
typedef struct LsPartsBy { bool (*run)(void *self, LsError *e); void *self; } LsPartsBy;

typedef struct LsTraining {
    const LsProgram *p;
    int threads;
    LsMemory memory;
    LsEngine engine;
    LsFeed feed;
    LsRate rate;
    LsPlace place;
    int64_t updates;            /* of the whole run */
    LsInFlight flight[LS_DEVICE_SLOTS]; int nflight;      /* oldest first */
    int64_t began_ns;           /* when an update last began with none in flight */
    LsUnderWay under_way;
    LsEpoch epoch;
    LsMemberState members;      /* of an ensemble */
    LsPrivateRun privacy;       /* of private training */
    LsScaleSeen scale;          /* after the last update */
    LsCheck check;              /* of the values of the last run */
    FILE *notes;                /* where notes go; NULL: nowhere */
    bool no_label;              /* a note said that no label counts in some update */
    LsUpdateRules rules;
    LsUpdateWatch watch;
    LsPartsBy parts_by;
} LsTraining;

/* Opens the loader of batches, whose ring is the source of copies to a device. */
bool ls_training_open_loader(LsTraining *t, int workers, LsError *e);
/* The place of a run that has made no update. */
void ls_training_begin(LsTraining *t, uint64_t seed);
/* After an update that failed: the next one begins anew, at the place that the failed one had
 * unless that was made. */
void ls_training_drop(LsTraining *t, int64_t update, int64_t cursor);
/* Ends the threads. has_threads: false: this process was forked, and has none of them. */
void ls_training_stop(LsTraining *t, bool has_threads);
/* Gives back engine, data, place and memory. */
void ls_training_close(LsTraining *t);

/* Epochs are counted in batches, some of which make an update. In private training the number of
 * batches of an update varies, and is nobody's business: updates are counted, and the group is
 * 1. */
static inline int64_t ls_batches_per_update(const LsProgram *p)
{
    return ls_is_private(p) ? 1 : ls_update_batches(&p->division);
}
static inline int64_t ls_micro_batches_per_update(const LsProgram *p)
{
    return ls_batches_per_update(p) * ls_micro_batches(&p->division);
}

#endif
