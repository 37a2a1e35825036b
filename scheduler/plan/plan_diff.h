/* scheduler/plan/plan_diff.h -- compares a plan with one that was written earlier. */
#ifndef LS_SCHEDULER_PLAN_PLAN_DIFF_H
#define LS_SCHEDULER_PLAN_PLAN_DIFF_H

#include <stdio.h>

#include "scheduler/plan/planner.h"

typedef struct LsEarlier {      /* what a file says of a plan; numbers below 0: not stated */
    const char *graph;          /* its name; NULL: not stated */
    LsCostsOf of;
    int64_t persistent;         /* bytes of the graph's persistent tensors: inputs and state */
    double cost, base_cost, bound;
    int64_t live_peak, arena, budget;   /* bytes */
    const char **name;          /* by run: name of its node; NULL: not stated */
    int64_t *node;              /* by run: number of its node */
    uint32_t nrun;              /* 0: a summary, without runs */
} LsEarlier;

/* Reads a schedule (plan_json.h) or the summary that ls_view_json writes. Returns false with a
 * sentence in `why`. */
bool ls_earlier_read(LsArena *arena, const char *path, LsEarlier *out, char *why, size_t size);

typedef enum { LS_AGAINST_NO_WORSE, LS_AGAINST_WORSE, LS_AGAINST_OTHER } LsAgainst;

/* Prints cost, live peak, arena and gap then and now, and the first run at which the plans differ.
 * tolerance: the fraction of cost and bytes, and of the step for the gap, that does not count.
 * Returns LS_AGAINST_WORSE if cost, live peak, arena or gap got worse. Returns LS_AGAINST_OTHER,
 * after a line that says why, if the earlier plan is for another graph (another model or batch), or
 * its costs are of another machine, precision or number of threads; nothing is compared then.
 * *json, from `arena`: the same as a JSON object, with the verdict "not comparable" if nothing is
 * compared. */
LsAgainst ls_earlier_compare(LsArena *arena, FILE *to, const LsEarlier *then, const LsDag *dag,
                             const LsPlan *plan, const LsPlanReport *report, double tolerance,
                             const char **json);

#endif
