/* scheduler/candidates/plan_steps.h -- a plan: an ordered list of steps, and the offset of every
 * result. */
#ifndef LS_SCHEDULER_CANDIDATES_PLAN_STEPS_H
#define LS_SCHEDULER_CANDIDATES_PLAN_STEPS_H

#include "base/arena.h"
#include "scheduler/graph/dag.h"

typedef struct LsPlanStep {
    bool free;                  /* the step ends the live instance of tensor `id`; else it runs node
                                 * `id` */
    bool again;                 /* run: not the node's first run */
    uint32_t id;
    uint32_t offset;            /* run: index into LsPlan.offset of its first result */
    int64_t workspace_offset;   /* run: bytes; -1: no workspace */
    uint32_t reuse, nreuse;     /* run: LsPlan.reuse[reuse .. +nreuse): results that lie in the
                                 * place of an operand; this run ends the operand, so no free step
                                 * follows for it */
} LsPlanStep;

typedef struct LsPlan {
    const char *strategy;       /* the maker: "none", "chen", "exact-tc", … */
    LsPlanStep *step; uint32_t nstep;
    int64_t *offset; uint32_t noffset;      /* offsets in the arena, bytes, per result of each
                                             * run */
    bool unplaced;              /* no offsets were chosen: they are -1, and the arena is the live
                                 * peak */
    LsDagPair *reuse; uint32_t nreuse;
    int64_t live_peak, arena;   /* bytes */
    double cost, base_cost;     /* overhead = cost / base_cost - 1 */
} LsPlan;

/* Copies the plan with its arrays; nothing of `from` is shared but the strategy's name. */
void ls_plan_copy(LsArena *arena, const LsPlan *from, LsPlan *to);

/* Returns the cost of all runs over the cost of every node once, minus one: 0 without
 * recomputation, less when cheaper alternatives run. */
double ls_plan_overhead(const LsPlan *plan);

/* Returns whether cost a exceeds b. The tolerance covers sums of the same costs in another
 * order. */
static inline bool ls_dearer(double a, double b) { return a > b + 1e-9 * b; }

typedef struct LsPlanAgain {    /* recomputations: runs that are not their node's first */
    uint32_t runs;
    int64_t bytes;              /* of their results */
    double cost;                /* ns */
} LsPlanAgain;

/* Totals of what the plan keeps for the backward part and what it recomputes. */
typedef struct LsPlanTurn {
    int64_t kept_bytes;         /* bytes live when the first node of the backward part begins */
    uint32_t nkept;             /* tensors that these bytes hold */
    LsPlanAgain again[LS_DAG_OPTIMIZER + 1], all;   /* by LsDagKind, and in all */
} LsPlanTurn;

LsPlanTurn ls_plan_turn(const LsDag *dag, const LsPlan *plan);

/* Writes the FNV-1a hash of steps, offsets and reuses as 16 hex digits: equal plans have equal
 * hashes on every machine. */
void ls_plan_hash(const LsPlan *plan, char text[17]);

#endif
