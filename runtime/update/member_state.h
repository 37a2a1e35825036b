/* runtime/update/member_state.h -- the members of an ensemble while they train: seeds, learning
 * rates, losses. */
#ifndef LS_RUNTIME_UPDATE_MEMBER_STATE_H
#define LS_RUNTIME_UPDATE_MEMBER_STATE_H

#include "runtime/engine/engine.h"

#include <stdio.h>

typedef struct LsMemberState {
    int64_t n;                  /* 0: the program is one model, and nothing else is set */
    uint64_t *seeds;
    double *base, *rates;       /* learning rates; those of the update under way */
    LsMean *part, *of_epoch;    /* as LsUnderWay.mean and LsEpoch.mean */
    double *loss;               /* of the last update; NaN: that member has diverged */
    bool *told;                 /* that a member has diverged */
    double *val_loss;           /* of the last evaluation */
    int64_t *right;             /* of the evaluation so far: correct predictions */
    double *mean;               /* [positions, classes]: sums of probabilities, for evaluation;
                                 * NULL: no classes */
} LsMemberState;

/* Member k has the run's seed plus k, and the run's learning rate. */
bool ls_member_state_open(LsMemberState *s, const LsProgram *p, double lr, uint64_t seed,
                          LsError *e);
void ls_member_state_close(LsMemberState *s);

/* Adds the losses of the last run. */
void ls_member_state_add(LsMemberState *s, const LsEngine *g);
/* Ends an update: sets `loss`. Ends an evaluation: sets `val_loss`. */
void ls_member_state_end(LsMemberState *s);
void ls_member_state_judged(LsMemberState *s);
/* Notes (ls_note) each member that has diverged since the last one. */
void ls_member_state_tell(LsMemberState *s, int64_t update, FILE *notes);

#endif
