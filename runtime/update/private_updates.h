/* runtime/update/private_updates.h -- what a run of private training keeps: its secrets, and what
 * its updates have spent.
 *
 * The ledger (LsPlace.ledger) has every update whose parameters are in the state or in a
 * checkpoint. The secrets, of the drawn samples and of the noise, are new in every process and
 * nowhere else. */
#ifndef LS_RUNTIME_UPDATE_PRIVATE_UPDATES_H
#define LS_RUNTIME_UPDATE_PRIVATE_UPDATES_H

#include "runtime/base/secret_key.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/update/skipped_updates.h"

#include <stdio.h>

typedef struct LsPrivateRun {
    LsSecretKey draw, noise;    /* the secrets */
    double rate;                /* probability of a sample in an update; 0: the program is not
                                 * private */
    int64_t row;                /* the last updates in a row that had a loss that is not finite */
    bool told;                  /* of such a loss */
    FILE *notes;                /* where notes go (ls_note) */
    int64_t next_check, checks; /* clip_check.c: the update from which one is due; how many were
                                 * made */
} LsPrivateRun;

/* Whether a run of this program may go on from a checkpoint, which was read from `from`: both are
 * private, or neither. */
bool ls_private_continues(const LsProgram *p, const LsPlace *at, const char *from, LsError *e);
/* Starts a run of a private program on data of that many samples. Refuses an expected batch larger
 * than the data. noise_seed: -1: a secret. The caller has set r->notes. */
bool ls_private_begin(LsPrivateRun *r, const LsProgram *p, int64_t noise_seed, LsPlace *at,
                      int64_t samples, LsError *e);
/* Updates that take as many samples as the data have, on average. */
int64_t ls_private_epoch(const LsProgram *p, int64_t samples);
/* Books an update that was made. Allocates nothing. */
bool ls_private_spend(const LsPrivateRun *r, const LsProgram *p, LsPlace *at, LsError *e);
LsPrivacyBound ls_private_bound(const LsProgram *p, const LsPlace *at);
/* After an update. spoilt: the loss of some of its batches is not finite, so some of its samples
 * count as zero. An error: the parameters are not finite either, or too many updates in a row were
 * spoilt. */
bool ls_private_check(LsPrivateRun *r, const LsMemory *m, int64_t update, bool spoilt, LsError *e);

#endif
