/* scheduler/strategies/paper_procedure.h -- the published method by its published procedure, to compare with.
 *
 * Kusumoto et al. 2019 (arXiv:1905.11722): the least budget is found by binary search over the
 * formula's peak; at it the DP picks the strategy with the least time (time-centred) or the
 * greatest (memory-centred). Without liveness analysis it takes what the formula says, with it
 * what is live when every value is freed after its last reader. */
#ifndef LS_SCHEDULER_STRATEGIES_PAPER_PROCEDURE_H
#define LS_SCHEDULER_STRATEGIES_PAPER_PROCEDURE_H

#include "scheduler/graph/dag.h"

typedef enum {
    LS_PAPER_APPROX_MC, LS_PAPER_APPROX_TC, LS_PAPER_EXACT_MC, LS_PAPER_EXACT_TC, LS_PAPER_CHEN,
    LS_NPAPER
} LsPaperColumn;

typedef struct LsPaperRun {
    bool found;                 /* then: */
    int64_t formula;            /* peak without liveness analysis, bytes */
    int64_t arena;              /* with it, packed; bytes */
    double overhead;            /* of what really runs: the last block is not made again */
} LsPaperRun;

typedef struct LsPaper {
    uint32_t vertices;          /* of the forward graph */
    uint32_t sets;              /* all lower sets; 0: more than were to be enumerated, and the exact
                                 * columns are empty */
    LsPaperRun run[LS_NPAPER];
} LsPaper;

/* In-place reuse where the graph allows it, and weight gradients where they lower the sum, as all
 * strategies here have them. most_sets: of the exact DP. */
LsPaper ls_paper(const LsDag *dag, uint32_t most_sets);

#endif
