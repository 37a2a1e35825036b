/* scheduler/report/plan_diff_text.h -- what a comparison with an earlier plan says:
 * lines, JSON, and Markdown for the summary of a CI job. */
#ifndef LS_SCHEDULER_REPORT_PLAN_DIFF_TEXT_H
#define LS_SCHEDULER_REPORT_PLAN_DIFF_TEXT_H

#include <stdio.h>

#include "scheduler/plan/plan_diff.h"

/* Lines, each indented by two blanks. */
void ls_plan_diff_print(FILE *to, const LsPlanDiff *d);

/* The same as a JSON object, in the arena; the verdict is "not comparable" if nothing is
 * compared. */
const char *ls_plan_diff_json(LsArena *arena, const LsPlanDiff *d);

typedef struct LsDiffFacts {
    const char *model, *against;        /* files */
    const char *costs;          /* what the costs are of, for people */
    const char *ending;         /* a sentence below the table; NULL: none */
    bool fresh;                 /* there is no earlier plan: only what is now is shown */
} LsDiffFacts;

/* A heading with the verdict, a table, what got worse, and where the plans part. */
void ls_plan_diff_markdown(FILE *to, const LsPlanDiff *d, const LsDiffFacts *facts);

#endif
