/* tests/differential/every_plan.h -- a plan that runs all that a program might run, and the
 * comparison of what it leaves. */
#ifndef LS_TESTS_DIFFERENTIAL_EVERY_PLAN_H
#define LS_TESTS_DIFFERENTIAL_EVERY_PLAN_H

#include "tests/support/run_graph.h"

typedef struct EveryPlan {
    LsPlan plan;
    bool *lost;                 /* by entry of plan.offset: overwritten by a run in place */
    bool stuck;                 /* some nodes wait for each other: they are not in the plan */
    int ways, again, inplace;   /* runs of alternatives, second runs, runs in place */
} EveryPlan;

/* Every node, each of its alternatives, the node again, and once more in the place of each operand
 * whose place it may take, which is made again before and after. Nothing else is overwritten. Nodes
 * that must run once do. */
EveryPlan every_plan(LsArena *a, const LsProblem *p);

/* After a step of that plan: whether all runs of a kernel gave the same bits, and other ways to a
 * value the same numbers, up to `tolerance` times its largest, or times `least`: what is 0 but for
 * rounding. *worst: the largest such difference over the former. False: `why` says which one. */
bool every_plan_agrees(const LsRunGraph *r, const EveryPlan *e, double tolerance, double least,
                       double *worst, char *why, size_t room);

#endif
