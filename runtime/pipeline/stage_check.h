/* runtime/pipeline/stage_check.h -- checks that a stage touches no bytes that it must not, for
 * tests: LOWERSET_CHECK_STAGES=1.
 *
 * Nothing of the arena lasts from one update to the next, so it is filled with NaNs before each. A
 * message may arrive at any time between the step before which it is asked for and the one before
 * which it is awaited: it arrives elsewhere, and its place must be as it was until it is awaited.
 * What is sent must be the same when the receiver has it. */
#ifndef LS_RUNTIME_PIPELINE_STAGE_CHECK_H
#define LS_RUNTIME_PIPELINE_STAGE_CHECK_H

#include "runtime/base/run_error.h"
#include "runtime/ls_program.h"

typedef struct LsStageSent { const void *at; int64_t bytes; uint64_t sum; } LsStageSent;

typedef struct LsStageCheck {
    bool on;
    void **inbox;               /* by message received */
    uint32_t nreceive;
    LsStageSent *sent;          /* by slot and message sent */
} LsStageCheck;

/* Opens a check, which is on only if the environment says so. Close it in any case. */
bool ls_stage_check_open(LsStageCheck *c, const LsStage *s, LsError *e);
void ls_stage_check_close(LsStageCheck *c);

void ls_stage_check_update(const LsStageCheck *c, void *arena, int64_t bytes);
/* Returns where message k, whose place is `at`, is to arrive. */
void *ls_stage_check_asks(const LsStageCheck *c, uint32_t k, void *at, int64_t bytes);
/* Message k is there, and is put into its place. False: the stage has written to it. */
bool ls_stage_check_arrived(const LsStageCheck *c, uint32_t k, const LsMessage *m, void *at,
                            LsError *e);
/* k: slot and message. */
void ls_stage_check_sends(const LsStageCheck *c, uint32_t k, const void *at, int64_t bytes);
/* False: the bytes have changed since. */
bool ls_stage_check_left(const LsStageCheck *c, uint32_t k, const LsMessage *m, LsError *e);

#endif
