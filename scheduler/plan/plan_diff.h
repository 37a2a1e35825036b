/* scheduler/plan/plan_diff.h -- a plan beside one that was written earlier. */
#ifndef LS_SCHEDULER_PLAN_PLAN_DIFF_H
#define LS_SCHEDULER_PLAN_PLAN_DIFF_H

#include <stdio.h>

#include "scheduler/plan/planner.h"

typedef struct LsEarlier {      /* what a file says of a plan; below 0: it does not say */
    const char *graph;          /* its name; NULL: the file does not say */
    int64_t persistent;         /* bytes of the graph's persistent tensors: inputs and state */
    double cost, base_cost, bound;
    int64_t live_peak, arena, budget;   /* bytes */
    const char **name;          /* by run: its node; NULL: the file does not say */
    int64_t *node;              /* by run: number of its node */
    uint32_t nrun;              /* 0: a summary, without runs */
} LsEarlier;

/* Reads a schedule (plan_json.h) or the summary that ls_view_json writes. false with a sentence
 * in why. */
bool ls_earlier_read(LsArena *arena, const char *path, LsEarlier *out, char *why, size_t size);

typedef enum { LS_AGAINST_NO_WORSE, LS_AGAINST_WORSE, LS_AGAINST_OTHER } LsAgainst;

/* Prints cost, live peak, arena and gap then and now, and the first run at which the plans part.
 * tolerance: a part of cost and bytes, and of the step for the gap, that does not count.
 * LS_AGAINST_WORSE: cost, live peak, arena or gap got worse. LS_AGAINST_OTHER, after a line that
 * says why: the earlier plan is for another graph, so another model or batch, and nothing is
 * compared. *json, from `arena`: the same as a JSON object; where nothing is compared its verdict is
 * "not comparable". */
LsAgainst ls_earlier_compare(LsArena *arena, FILE *to, const LsEarlier *then, const LsDag *dag,
                             const LsPlan *plan, const LsPlanReport *report, double tolerance,
                             const char **json);

#endif
