/* scheduler/plan/keep_forget_hints.h -- what a person wants kept, or made again, as changes of the graph.
 *
 * The planner knows nothing of hints. It plans a changed graph, in which what must be kept is made
 * once, and the backward part reads a second copy of what must be forgotten: a copy that cannot
 * be made before the turn from the forward to the backward part. The plan is then brought back to
 * the graph as it was, where the maker of the copy is its maker, run again. */
#ifndef LS_SCHEDULER_PLAN_KEEP_FORGET_HINTS_H
#define LS_SCHEDULER_PLAN_KEEP_FORGET_HINTS_H

#include "scheduler/plan/hint_graph.h"

typedef enum {
    LS_RECOMPUTE_AUTO,          /* whatever is best */
    LS_RECOMPUTE_NONE,          /* nothing runs again */
    LS_RECOMPUTE_CHEAP,         /* convolutions and matrix products do not run again */
    LS_RECOMPUTE_CONV_SAVED,    /* convolutions do not run again */
    LS_RECOMPUTE_ALL            /* nothing is kept for the backward part that can be made again */
} LsRecompute;

typedef struct LsHints {        /* zeroed: none */
    const char *const *keep; int nkeep;         /* globs over names of tensors and nodes */
    const char *const *forget; int nforget;
    LsRecompute recompute;
} LsHints;

/* "auto", "none", "cheap", "conv-saved", "all"; false: none of these. */
bool ls_recompute_parse(const char *text, LsRecompute *to);

/* dag must be valid and outlast *out, which comes from arena. false with a sentence in why when a
 * glob matches nothing, or nothing that can be forgotten, or what another keeps. */
bool ls_hints_apply(LsArena *arena, const LsDag *dag, const LsHints *hints, LsHinted *out,
                    char *why, size_t size);

#endif
