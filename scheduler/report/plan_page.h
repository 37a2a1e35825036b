/* scheduler/report/plan_page.h -- a plan as one HTML page that needs no other file and no network. */
#ifndef LS_SCHEDULER_REPORT_PLAN_PAGE_H
#define LS_SCHEDULER_REPORT_PLAN_PAGE_H

#include <stdio.h>

#include "scheduler/plan/planner.h"

typedef struct LsPageFacts {    /* what the plan does not know */
    const char *title;          /* of the page: the model */
    int64_t state_bytes, input_bytes;   /* beside the arena */
} LsPageFacts;

/* Memory over time, who owns the peak, what is kept and what is made again, step by step. The plan
 * must be one that ls_audit accepts; report is the one that came with it. */
void ls_report_plan(LsArena *arena, FILE *to, const LsDag *dag, const LsPlan *plan,
                    const LsPlanReport *report, const LsPageFacts *facts);

#endif
