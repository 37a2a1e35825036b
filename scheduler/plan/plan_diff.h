/* scheduler/plan/plan_diff.h -- compares a plan with one that was written earlier. */
#ifndef LS_SCHEDULER_PLAN_PLAN_DIFF_H
#define LS_SCHEDULER_PLAN_PLAN_DIFF_H

#include "scheduler/plan/planner.h"

typedef struct LsEarlier {      /* what a file says of a plan; numbers below 0: not stated */
    const char *graph;          /* its name; NULL: not stated */
    LsCostsOf of;
    int64_t persistent;         /* bytes of the graph's persistent tensors: inputs and state */
    double cost, base_cost, bound;
    int64_t live_peak, arena, budget;   /* bytes */
    const char **name;          /* by run: name of its node; NULL: not stated */
    int64_t *node;              /* by run: number of its node */
    uint32_t nrun;              /* 0: a summary, without runs */
    int64_t again;              /* runs that are not their node's first; < 0: not stated */
} LsEarlier;

/* Reads a schedule (plan_json.h) or the summary that ls_view_json writes. Returns false with a
 * sentence in `why`. */
bool ls_earlier_read(LsArena *arena, const char *path, LsEarlier *out, char *why, size_t size);

typedef enum { LS_AGAINST_NO_WORSE, LS_AGAINST_WORSE, LS_AGAINST_OTHER } LsAgainst;
typedef enum { LS_FIGURE_NS, LS_FIGURE_BYTES, LS_FIGURE_PART, LS_FIGURE_RUNS } LsFigureUnit;
enum { LS_PLAN_FIGURES = 5 };

typedef struct LsPlanFigure {
    const char *what, *key;     /* for people, for JSON */
    LsFigureUnit unit;          /* LS_FIGURE_PART: of a step; compared by difference, others by
                                 * ratio */
    double then, now;           /* then < 0: not stated */
    double change;              /* now over then, minus 1; of a part of a step now minus then */
    const char *verdict;        /* a word */
    bool worse;                 /* beyond the tolerance */
} LsPlanFigure;

typedef struct LsPlanDiff {
    LsAgainst verdict;
    const char *other;          /* LS_AGAINST_OTHER: why nothing is compared; else NULL */
    double tolerance;           /* fraction of cost and bytes, and of the step for the gap, that
                                 * does not count */
    LsPlanFigure figure[LS_PLAN_FIGURES]; int nfigure;
    int64_t budget_then, budget_now;    /* bytes of arena; <= 0: none */
    const char *parting;        /* the first run at which the plans differ, as a sentence; NULL:
                                 * the earlier plan has no runs */
} LsPlanDiff;

/* Compares cost, live peak, arena and gap, and finds the first run at which the plans differ. What
 * runs again is told and judged by its cost alone. The verdict is LS_AGAINST_OTHER if the earlier
 * plan is for another graph (another model or batch), or its costs are of another machine,
 * precision or number of threads; nothing is compared then. */
LsPlanDiff ls_earlier_compare(LsArena *arena, const LsEarlier *then, const LsDag *dag,
                              const LsPlan *plan, const LsPlanReport *report, double tolerance);

#endif
