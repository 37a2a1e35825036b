/* scheduler/plan/plan_json.h -- the interchange format "lowerset-schedule" version 1. */
#ifndef LS_SCHEDULER_PLAN_PLAN_JSON_H
#define LS_SCHEDULER_PLAN_PLAN_JSON_H

#include <stdio.h>

#include "scheduler/plan/planner.h"

/* Writes a schedule. report: the source of the stated budget, if any, and bound; NULL: neither is
 * stated. */
void ls_plan_write(FILE *to, const LsDag *dag, const LsPlan *plan, const LsPlanReport *report);

/* Reads a schedule for `dag`. Stated figures become the plan's live_peak, arena and costs. A
 * missing figure is 0, a missing base cost is the graph's; without offsets the arena is the live
 * peak. Returns false, with a sentence in `why`, if the text is no schedule; whether the schedule
 * is right is for ls_audit to say. */
bool ls_plan_parse(LsArena *arena, const LsDag *dag, const char *text, LsPlan *out, char *why,
                   size_t size);

/* The same for a file. hash: the stated hash; "": none. */
bool ls_plan_read(LsArena *arena, const LsDag *dag, const char *path, LsPlan *out, char hash[17],
                  char *why, size_t size);

#endif
