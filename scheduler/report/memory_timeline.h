/* scheduler/report/memory_timeline.h -- memory over the predicted time of one step, of one plan or beside another. */
#ifndef LS_SCHEDULER_REPORT_MEMORY_TIMELINE_H
#define LS_SCHEDULER_REPORT_MEMORY_TIMELINE_H

#include <stdio.h>

#include "scheduler/candidates/plan_steps.h"

/* A line per run: number, start in ns of predicted time, live bytes with the workspace, 1 if run again, name.
 * Tab-separated, comments with #. */
void ls_timeline_table(FILE *to, const LsDag *dag, const LsPlan *plan);

typedef struct LsTimelineFacts {
    const char *title;
    const LsPlan *none;         /* the plan without recomputation, to draw beside; NULL: leave it out */
    int64_t budget;             /* bytes of arena; <= 0: none */
} LsTimelineFacts;

/* The same as a file of SVG: bytes over time, what is run again marked. */
void ls_timeline_svg(FILE *to, const LsDag *dag, const LsPlan *plan, const LsTimelineFacts *facts);

#endif
