/* scheduler/plan/budget_sweep.h -- a table of plans of one graph for many budgets and
 * strategies. */
#ifndef LS_SCHEDULER_PLAN_BUDGET_SWEEP_H
#define LS_SCHEDULER_PLAN_BUDGET_SWEEP_H

#include <stdio.h>

#include "scheduler/plan/hint_plan.h"

typedef struct LsSweepRun {     /* a program that was built from a plan */
    double predicted_ns;        /* of a step, by the costs */
    double measured_ns;         /* median of a step; 0: nothing was measured */
    int64_t touched;            /* bytes of the arena up to the last byte written */
} LsSweepRun;

typedef struct LsSweepCell {    /* one strategy at one budget */
    bool feasible;              /* then: */
    LsPlan plan;
    uint32_t again;             /* recomputations */
    LsSweepRun run;
    LsPlanReport *report;       /* of the planning, feasible or not */
} LsSweepCell;

typedef struct LsSweepPoint {
    int64_t budget;             /* bytes of arena */
    double bound;               /* lower bound on the overhead of any plan; INFINITY: there is no
                                 * plan */
    LsSweepCell *cell;          /* by strategy */
} LsSweepPoint;

typedef struct LsSweep {
    const char *model;
    const LsDag *dag;
    const LsHinted *hinted;     /* made from dag; NULL: no hints */
    const char *const *strategy; uint32_t nstrategy;
    LsSweepPoint *point; uint32_t npoint;   /* by rising budget */
    int64_t whole;              /* bytes of arena at 100 % */
    LsProcessBytes process; /* what a budget of the process includes beside the arena; one arena */
    int64_t floor;              /* bytes of arena that the evaluation form needs under any plan */
    int64_t store_all;          /* as in LsPlanReport */
    int64_t least_bound;        /* lower bound on any plan's live peak, bytes; 0: unknown */
    double base_cost;           /* ns */
    LsSweepRun plain;           /* the program without recomputation */
    int threads;                /* of the measured programs */
    const char *predicted_of;   /* machine and threads of predicted_ns; NULL: the costs' */
} LsSweep;

/* The names of all strategies, with the two halves of each DP listed separately: none first, auto
 * last, then NULL. */
extern const char *const ls_sweep_strategies[];

/* Fills the cells of sweep->point, whose budgets are set, in one planning. The caller sets model,
 * dag, hints, strategies, whole, fixed and floor. The bounds hold for plans that keep to the hints
 * if the hints only keep values, and for all plans if the hints forget some. step, if not NULL, is
 * called before every point. Returns false if a strategy name is unknown. */
bool ls_sweep_run(LsArena *arena, LsSweep *sweep, const LsPlanOptions *options,
                  void (*step)(void *, uint32_t point), void *context);

/* Writes one line per point and strategy, RFC 4180. Overheads and gaps are fractions of a step
 * without recomputation. Columns of infeasible plans and of missing measurements are empty. */
void ls_sweep_csv(FILE *to, const LsSweep *sweep);

/* Writes the same as JSON: {"schema": 1, ..., "points": [...]}. */
void ls_sweep_json(FILE *to, const LsSweep *sweep);

/* Prints one line per point by falling budget, with a column of overhead per strategy, the bound
 * and the gap; then the measurements, if there are any. */
void ls_sweep_text(FILE *to, const LsSweep *sweep);

/* Returns the overhead above the bound, as a fraction of a step. */
double ls_sweep_gap(const LsSweep *sweep, const LsSweepPoint *p, const LsSweepCell *c);

/* Returns how much longer than without recomputation the measured step took, as a fraction. */
static inline double ls_sweep_longer(const LsSweep *sweep, const LsSweepRun *run)
{
    return sweep->plain.measured_ns > 0 ? run->measured_ns / sweep->plain.measured_ns - 1 : 0;
}

/* Returns percent for people: values that print as 0.00 lose their sign. */
static inline double ls_sweep_hundred(double fraction)
{
    return fraction > -5e-5 && fraction < 5e-5 ? 0 : 100 * fraction;
}

static inline double ls_sweep_percent(const LsSweep *sweep, const LsSweepPoint *p)
{
    return sweep->whole > 0 ? 100.0 * (double)p->budget / (double)sweep->whole : 0;
}

#endif
