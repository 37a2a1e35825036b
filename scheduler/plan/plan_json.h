/* scheduler/plan/plan_json.h -- the interchange format "lowerset-schedule" version 1. */
#ifndef LS_SCHEDULER_PLAN_PLAN_JSON_H
#define LS_SCHEDULER_PLAN_PLAN_JSON_H

#include <stdio.h>

#include "scheduler/plan/planner.h"

/* report: its budget, if any, and its bound are claimed; NULL: neither. */
void ls_plan_write(FILE *to, const LsDag *dag, const LsPlan *plan, const LsPlanReport *report);

/* Reads a schedule for `dag`. Claims become the plan's live_peak, arena and costs (where absent 0,
 * and the graph's own base cost; of one without offsets the arena is the live peak). false with a
 * sentence in why when it is not one; whether it is right is for ls_audit to say. */
bool ls_plan_parse(LsArena *arena, const LsDag *dag, const char *text, LsPlan *out, char *why,
                   size_t size);

/* The same of a file. hash: the one that it states; "": none. */
bool ls_plan_read(LsArena *arena, const LsDag *dag, const char *path, LsPlan *out, char hash[17],
                  char *why, size_t size);

#endif
