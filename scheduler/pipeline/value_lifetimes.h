/* scheduler/pipeline/value_lifetimes.h -- from which turn to which a stage needs the bytes of its
 * values.
 *
 * Values that are made in the same phase and needed up to the same phase, or message, are of one
 * kind. Micro-batches differ in their turns alone, so bytes of a kind have a window for each
 * micro-batch. Copies of a place serve the micro-batches in turn: micro-batch m has copy m %
 * copies. */
#ifndef LS_SCHEDULER_PIPELINE_VALUE_LIFETIMES_H
#define LS_SCHEDULER_PIPELINE_VALUE_LIFETIMES_H

#include "scheduler/pipeline/turn_order.h"

typedef struct LsPipeKind {
    uint8_t from, to;           /* phases: of its maker; of its last reader in the stage */
    uint8_t reach;              /* the last phase that the micro-batch runs itself within some
                                 * window */
    int64_t *begin, *end;       /* by micro-batch: first and last turn; -1: none */
} LsPipeKind;

typedef struct LsPipeWindows {
    LsArena *arena;
    const LsPipeFlow *flow;
    uint32_t micros;
    uint32_t *turn;              /* by phase and micro-batch: number of the turn; the late phase
                                  * comes behind all */
    uint8_t last;               /* phase of micro-batches */
    LsPipeKind *kind; uint32_t n, room;
} LsPipeWindows;

/* Later calls allocate in `arena`, too. */
LsPipeWindows *ls_pipe_windows(LsArena *arena, const LsPipeFlow *flow);

/* Returns the kind of a value that is made in phase `from`, read up to phase `to`, and sent by n
 * messages. */
uint32_t ls_pipe_kind(LsPipeWindows *w, uint8_t from, uint8_t to, const LsPipeMove *const *sent,
                      uint32_t n);

/* Returns the least number of copies with which values of kinds a and b of different micro-batches
 * can lie in one place. */
uint32_t ls_pipe_copies(const LsPipeWindows *w, uint32_t a, uint32_t b);

/* Whether a value of kind a of micro-batch 0 and one of kind b of another micro-batch in the same
 * copy are needed at a time. */
bool ls_pipe_first_meets(const LsPipeWindows *w, uint32_t a, uint32_t b, uint32_t copies);

#endif
