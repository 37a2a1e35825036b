/* scheduler/candidates/plan_steps.h -- the solution: an ordered list of steps, and where every byte lies. */
#ifndef LS_SCHEDULER_CANDIDATES_PLAN_STEPS_H
#define LS_SCHEDULER_CANDIDATES_PLAN_STEPS_H

#include "base/arena.h"
#include "scheduler/graph/dag.h"

typedef struct LsPlanStep {
    bool free;                  /* ends the present instance of tensor `id`; else: runs node `id` */
    bool again;                 /* run: not the node's first run */
    uint32_t id;
    uint32_t offset;            /* run: index into LsPlan.offset of its first result's place */
    int64_t workspace_offset;   /* run: bytes; -1: no workspace */
    uint32_t reuse, nreuse;     /* run: LsPlan.reuse[reuse .. +nreuse): results that lie
                                 * in the place of an operand, which this run ends: no
                                 * free step follows for it */
} LsPlanStep;

typedef struct LsPlan {
    const char *strategy;       /* that made it: "none", "chen", "exact-tc", … */
    LsPlanStep *step; uint32_t nstep;
    int64_t *offset; uint32_t noffset;      /* bytes in the arena, per result of each run */
    bool unplaced;              /* no places are given: offsets are -1, and the arena is the live
                                 * peak */
    LsDagPair *reuse; uint32_t nreuse;
    int64_t live_peak, arena;   /* bytes */
    double cost, base_cost;     /* overhead = cost / base_cost - 1 */
} LsPlan;

/* Cost of all runs over that of every node once, minus one: 0 when nothing runs again, below that
 * when alternatives that cost less do. */
double ls_plan_overhead(const LsPlan *plan);

/* Costs more: sums of the same costs in another order differ in their last digits. */
static inline bool ls_dearer(double a, double b) { return a > b + 1e-9 * b; }

/* What is kept for the backward part, and what is made again. */
typedef struct LsPlanTurn {
    int64_t kept_bytes;         /* live when the first node of the backward part begins */
    uint32_t nkept;             /* tensors of those */
    int64_t again_bytes;        /* results of runs that are not their node's first */
    uint32_t nagain;            /* such runs */
} LsPlanTurn;

LsPlanTurn ls_plan_turn(const LsDag *dag, const LsPlan *plan);

/* FNV-1a over steps, places and reuses as 16 hex digits: the same for the same plan on every
 * machine. */
void ls_plan_hash(const LsPlan *plan, char text[17]);

#endif
