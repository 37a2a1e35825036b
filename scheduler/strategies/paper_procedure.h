/* scheduler/strategies/paper_procedure.h -- the published method by its published procedure, for
 * comparison.
 *
 * Kusumoto et al. 2019 (arXiv:1905.11722): a binary search over the formula's peak finds the least
 * budget. At that budget the DP picks the strategy with the least time (time-centred) or the
 * greatest (memory-centred). Without liveness analysis its peak memory is the formula's; with it,
 * every value is freed after its last reader. */
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
    double overhead;            /* of the runs really made: the last block is not recomputed */
} LsPaperRun;

typedef struct LsPaper {
    uint32_t vertices;          /* of the forward graph */
    uint32_t sets;              /* number of all lower sets; 0: more than most_sets, and the exact
                                 * columns are empty */
    LsPaperRun run[LS_NPAPER];
} LsPaper;

/* Uses in-place reuse where the graph allows it and places weight gradients where they lower the
 * live sum, as all strategies here do. most_sets: limit of lower sets for the exact DP. */
LsPaper ls_paper(const LsDag *dag, uint32_t most_sets);

#endif
