/* scheduler/plan/run_strategies.h -- which strategies make candidates, as far as there is time for them. */
#ifndef LS_SCHEDULER_PLAN_RUN_STRATEGIES_H
#define LS_SCHEDULER_PLAN_RUN_STRATEGIES_H

#include "scheduler/candidates/candidate_pool.h"
#include "scheduler/plan/plan_options.h"

typedef struct LsFilled {
    const char *exact_note, *left_out;      /* of the rows of the DPs (LsPlanRow), or NULL */
    bool cut;                   /* the time limit ended the search before its last move */
} LsFilled;

/* Fills the pool with what options->strategy asks for, all where it asks to compare. arena: of the
 * notes; scratch: must last as long as the pool; store_all: live peak of everything once, nothing
 * in place. */
LsFilled ls_candidates_fill(LsArena *arena, LsArena *scratch, const LsPlanOptions *options,
                            LsCandidates *pool, int64_t store_all);

#endif
