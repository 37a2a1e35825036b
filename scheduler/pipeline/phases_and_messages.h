/* scheduler/pipeline/phases_and_messages.h -- what each stage of a pipeline runs in which phase,
 * and what the stages send each other, as a program needs it.
 *
 * To the phases of pipeline_schedules.h comes a last one, which runs once per step, after all
 * micro-batches: nodes that need the gradients of other stages, as the norm of all gradients does,
 * and the updates that need these nodes. In it all stages follow the order of the graph, so they
 * never wait for each other in a circle. */
#ifndef LS_SCHEDULER_PIPELINE_PHASES_AND_MESSAGES_H
#define LS_SCHEDULER_PIPELINE_PHASES_AND_MESSAGES_H

#include "scheduler/cuts/stages.h"

enum { LS_PHASE_LATE = LS_PHASES, LS_STAGE_PHASES };

/* A tensor that stage `from` makes in phase `made`, and that stage `to` gets before its phase
 * `read`: with every micro-batch or, if that phase is the late one, with the last one. The sender
 * keeps the bytes until `to` has asked for them, and waits for this before phase `until` of the
 * micro-batch `lag` after it (LS_TO_THE_END: at the end of the step). What phase F sends for a
 * phase F it waits for before its own phase B at the latest. */
typedef struct LsPipeMove {
    uint32_t tensor, from, to;
    uint8_t made, read;
    int64_t bytes;
    uint8_t until;              /* set by ls_pipe_holds */
    uint32_t lag;
} LsPipeMove;

#define LS_TO_THE_END UINT32_MAX

/* Whether the sender waits before its own phase B at the latest. */
static inline bool ls_move_is_forward(const LsPipeMove *m)
{
    return m->made == LS_PHASE_F && m->read == LS_PHASE_F;
}

/* Writes the micro-batches whose messages the sender waits for before phase `phase` of `micro`.
 * Returns their number. */
static inline uint32_t ls_move_ends(const LsPipeMove *m, uint8_t phase, uint32_t micro,
                                    uint32_t of[2])
{
    uint32_t n = 0;
    if (m->until == phase && micro >= m->lag)
        of[n++] = micro - m->lag;
    if (ls_move_is_forward(m) && phase == LS_PHASE_B)
        of[n++] = micro;
    return n;
}

/* A state that stage `to` reads and stage `from` changes at the end of a step, as tied weights.
 * Before a step begins, `to` gets a copy. */
typedef struct LsPipeCopy { uint32_t tensor, from, to; int64_t bytes; } LsPipeCopy;

typedef struct LsPipeCut {
    const LsProb *p;
    uint32_t k;
    bool splits;                /* W is a phase of its own; else its nodes are in B */
    uint32_t *stage;            /* by node; LS_NO_ID: no stage runs it */
    uint8_t *phase;             /* by node */
    LsPipeMove *move; uint32_t nmove;       /* by tensor, then by `to` */
    LsPipeCopy *copy; uint32_t ncopy;       /* likewise */
} LsPipeCut;

/* Takes the stages of the forward and backward part as they are; updates go where the gradients are
 * that they read. False, with a sentence: a node of the backward part needs what only a later phase
 * has. */
bool ls_pipe_cut(LsArena *arena, const LsProb *p, const LsStages *s, bool splits, LsPipeCut *out,
                 char *why, size_t room);

#endif
