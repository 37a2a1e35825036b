/* scheduler/report/plan_page.h -- a plan as one HTML page that needs no other file and no
 * network. */
#ifndef LS_SCHEDULER_REPORT_PLAN_PAGE_H
#define LS_SCHEDULER_REPORT_PLAN_PAGE_H

#include <stdio.h>

#include "scheduler/plan/planner.h"

typedef struct LsPageFacts {    /* facts that the plan does not hold */
    const char *title;          /* of the page: the model */
    int64_t state_bytes, input_bytes;   /* beside the arena */
} LsPageFacts;

/* Prints memory over time, the owners of the peak, and the kept and recomputed values, step by
 * step. ls_audit must accept the plan; report must belong to it. */
void ls_report_plan(LsArena *arena, FILE *to, const LsDag *dag, const LsPlan *plan,
                    const LsPlanReport *report, const LsPageFacts *facts);

#endif
