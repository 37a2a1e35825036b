/* scheduler/plan/run_strategies.h -- runs the strategies that make candidates, as far as time
 * allows. */
#ifndef LS_SCHEDULER_PLAN_RUN_STRATEGIES_H
#define LS_SCHEDULER_PLAN_RUN_STRATEGIES_H

#include "scheduler/candidates/candidate_pool.h"
#include "scheduler/plan/plan_options.h"

typedef struct LsFilled {
    const char *exact_note, *left_out;      /* notes for the DPs' rows (LsPlanRow), or NULL */
    bool cut;                   /* the time limit ended the search before its last move */
} LsFilled;

/* Fills the pool with the candidates of options->strategy, or of all strategies if options->compare
 * is set. arena: for the notes; scratch: must outlast the pool; store_all: live peak of every node
 * once without in-place reuse, bytes. */
LsFilled ls_candidates_fill(LsArena *arena, LsArena *scratch, const LsPlanOptions *options,
                            LsCandidates *pool, int64_t store_all);

#endif
