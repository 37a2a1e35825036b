/* scheduler/cuts/mandatory_runs.h -- what every plan of a pipeline runs, and when, whatever the
 * cut. */
#ifndef LS_SCHEDULER_CUTS_MANDATORY_RUNS_H
#define LS_SCHEDULER_CUTS_MANDATORY_RUNS_H

#include "scheduler/cuts/forward_owner.h"

typedef struct LsCertain {      /* by node */
    bool *runs;                 /* it or an alternative with its results runs */
    bool *early;                /* in phase F: what runs for sure there needs its results, or the
                                 * end of the phase does. Other nodes that only B and W read may
                                 * wait for these phases */
    bool *ahead;                /* an update that runs in phase F, whatever the cut */
    bool *perhaps_ahead;        /* an update that does so in some cut */
    bool *stays;                /* in the stage that its anchor or its places say. Updates may move
                                 * to the state that they use */
    bool *forgets;              /* with --recompute=all: recomputed for phases B and W, unless
                                 * another stage or an update reads it */
} LsCertain;

/* alternatives: they may replace nodes. */
LsCertain ls_certain_runs(LsArena *arena, const LsProb *p, const LsAnchors *a, bool alternatives);

#endif
