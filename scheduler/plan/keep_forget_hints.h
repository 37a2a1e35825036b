/* scheduler/plan/keep_forget_hints.h -- turns a person's wishes to keep or recompute values into
 * changes of the graph.
 *
 * The planner knows nothing of hints: it plans a changed graph. In that graph the makers of kept
 * values run once. The backward part reads a second copy of each forgotten value, which cannot be
 * made before the turn from the forward to the backward part. The plan is then translated back to
 * the original graph: a run of the copy's maker becomes another run of the original maker. */
#ifndef LS_SCHEDULER_PLAN_KEEP_FORGET_HINTS_H
#define LS_SCHEDULER_PLAN_KEEP_FORGET_HINTS_H

#include "scheduler/graph/recompute_policy.h"
#include "scheduler/plan/hint_graph.h"

typedef struct LsHints {        /* zeroed: none */
    const char *const *keep; int nkeep;         /* globs over names of tensors and nodes */
    const char *const *forget; int nforget;
    LsRecompute recompute;      /* LS_RECOMPUTE_EXCEPT_LAST is two plans: none of one */
} LsHints;

/* Writes the changed graph to *out, from `arena`. dag must be valid and outlast *out. Returns
 * false, with a sentence in `why`, if a glob matches nothing, or nothing that can be forgotten, or
 * a value that another glob keeps. */
bool ls_hints_apply(LsArena *arena, const LsDag *dag, const LsHints *hints, LsHinted *out,
                    char *why, size_t size);

#endif
