/* scheduler/plan/budget_sweep.h -- plans of one graph for many budgets, by many strategies, as a table. */
#ifndef LS_SCHEDULER_PLAN_BUDGET_SWEEP_H
#define LS_SCHEDULER_PLAN_BUDGET_SWEEP_H

#include <stdio.h>

#include "scheduler/plan/hint_plan.h"

typedef struct LsSweepRun {     /* of a program that was built from a plan */
    double predicted_ns;        /* a step, by the costs */
    double measured_ns;         /* a step, the median; 0: not measured, nor are the others */
    int64_t touched;            /* bytes of the arena, up to the last that was written to */
} LsSweepRun;

typedef struct LsSweepCell {    /* one strategy at one budget */
    bool feasible;              /* then: */
    LsPlan plan;
    uint32_t again;             /* recomputations */
    LsSweepRun run;
    LsPlanReport *report;       /* that came with it, feasible or not */
} LsSweepCell;

typedef struct LsSweepPoint {
    int64_t budget;             /* bytes of arena */
    double bound;               /* no plan has less overhead; INFINITY: there is no plan */
    LsSweepCell *cell;          /* by strategy */
} LsSweepPoint;

typedef struct LsSweep {
    const char *model;
    const LsDag *dag;
    const LsHinted *hinted;     /* of that graph; NULL: no hints */
    const char *const *strategy; uint32_t nstrategy;
    LsSweepPoint *point; uint32_t npoint;   /* by rising budget */
    int64_t whole;              /* bytes of arena that 100 % are */
    int64_t fixed;              /* bytes that a budget in all has beside the arena */
    int64_t floor;              /* the evaluation form needs so much arena, whatever the plan */
    int64_t store_all;          /* as in the report of a plan */
    int64_t least_bound;        /* no plan has a smaller live peak, bytes; 0: nothing known */
    double base_cost;           /* ns */
    LsSweepRun plain;           /* of a program without recomputation */
    int threads;                /* that measured programs ran with */
} LsSweep;

/* The names of all strategies, the DPs' halves apart: none first, auto last; ends with NULL. */
extern const char *const ls_sweep_strategies[];

/* Fills the cells of sweep->point, whose budgets are set, in one planning. Takes model, dag, hints,
 * strategies, whole, fixed and floor as given. Bounds hold for plans that keep to the hints, where
 * those only keep values; where they forget some, for all plans. step, when not NULL, is called
 * before every point. false: a strategy has no such name. */
bool ls_sweep_run(LsArena *arena, LsSweep *sweep, const LsPlanOptions *options,
                  void (*step)(void *, uint32_t point), void *context);

/* A line per point and strategy, RFC 4180. Overheads and gaps are fractions of a step without
 * recomputation; columns of what is infeasible, and of what was not measured, are empty. */
void ls_sweep_csv(FILE *to, const LsSweep *sweep);

/* {"schema": 1, ..., "points": [...]}: the same for programs. */
void ls_sweep_json(FILE *to, const LsSweep *sweep);

/* By falling budget: a line per point, a column of overhead per strategy, bound and gap; then what
 * was measured, if anything was. */
void ls_sweep_text(FILE *to, const LsSweep *sweep);

/* Overhead above the bound, as a fraction of a step. */
double ls_sweep_gap(const LsSweep *sweep, const LsSweepPoint *p, const LsSweepCell *c);

/* How much longer than one without recomputation a measured step took, as a fraction. */
static inline double ls_sweep_longer(const LsSweep *sweep, const LsSweepRun *run)
{
    return sweep->plain.measured_ns > 0 ? run->measured_ns / sweep->plain.measured_ns - 1 : 0;
}

/* In percent for people, without a sign before 0.00. */
static inline double ls_sweep_hundred(double fraction)
{
    return fraction > -5e-5 && fraction < 5e-5 ? 0 : 100 * fraction;
}

static inline double ls_sweep_percent(const LsSweep *sweep, const LsSweepPoint *p)
{
    return sweep->whole > 0 ? 100.0 * (double)p->budget / (double)sweep->whole : 0;
}

#endif
