/* scheduler/cuts/cut_costs.h -- what the forward nodes between two lower sets cost as a stage: at
 * least so much time and so many bytes, whatever plan the stage gets. */
#ifndef LS_SCHEDULER_CUTS_CUT_COSTS_H
#define LS_SCHEDULER_CUTS_CUT_COSTS_H

#include "scheduler/cuts/cut_costs_types.h"
#include "scheduler/cuts/pipeline_schedules.h"

LsCutCosts *ls_cut_costs(LsArena *arena, const LsForward *f, const LsCutModel *model);

/* ns of everything in the stages of a lower set: that of a stage is the difference of two. */
double ls_cut_sum(const LsCutCosts *c, const uint64_t *low);

typedef struct LsCutLimits {    /* of one stage */
    LsKeepMode keep;
    double again;               /* of LS_KEEP_ALWAYS and _EXCEPT_LAST: the part of the micro-batches
                                 * that run things again */
    uint32_t slots;             /* micro-batches that the stage holds at once */
    int64_t bytes;              /* of the rank; 0: no limit */
} LsCutLimits;

/* The least bytes of a stage with the vertices of `set`. Of LS_KEEP_AUTO, with nothing made
 * again. */
int64_t ls_cut_bytes(const LsCutCosts *c, const LsCutLimits *l, const uint64_t *set);

/* The least mean time of a micro-batch in that stage: `ns` and the recomputation that mode and
 * limit force; INFINITY: it cannot keep the limit. */
double ls_cut_time(const LsCutCosts *c, const LsCutLimits *l, double ns, const uint64_t *set);

/* Bytes that are made in the lower set and read outside. */
int64_t ls_cut_crossing(const LsCutCosts *c, const uint64_t *low);

/* Whether the stage has all of the group or nothing. */
bool ls_cut_keeps(const LsCutCosts *c, const LsCutGroup *group, const uint64_t *set);

#endif
