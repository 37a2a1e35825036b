/* scheduler/report/memory_timeline.h -- memory over the predicted time of one step, of one plan or
 * of two side by side. */
#ifndef LS_SCHEDULER_REPORT_MEMORY_TIMELINE_H
#define LS_SCHEDULER_REPORT_MEMORY_TIMELINE_H

#include <stdio.h>

#include "scheduler/candidates/plan_steps.h"

/* Prints one line per run: number, start in ns of predicted time, live bytes with the workspace, 1
 * if it is a recomputation, name. Tab-separated; comments begin with #. */
void ls_timeline_table(FILE *to, const LsDag *dag, const LsPlan *plan);

typedef struct LsTimelineFacts {
    const char *title;
    const char *of;             /* machine and threads of the costs; NULL: not said */
    const LsPlan *none;         /* the plan without recomputation, drawn beside it; NULL: left
                                 * out */
    int64_t budget;             /* bytes of arena; <= 0: none */
} LsTimelineFacts;

/* Prints the same as an SVG file: bytes over time, with recomputations marked. */
void ls_timeline_svg(FILE *to, const LsDag *dag, const LsPlan *plan, const LsTimelineFacts *facts);

#endif
