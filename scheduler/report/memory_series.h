/* scheduler/report/memory_series.h -- the live bytes of a plan over time, by owner. */
#ifndef LS_SCHEDULER_REPORT_MEMORY_SERIES_H
#define LS_SCHEDULER_REPORT_MEMORY_SERIES_H

#include "scheduler/candidates/plan_steps.h"

typedef enum {
    LS_OWNER_KEPT,              /* made by a forward node before the turn, read after it */
    LS_OWNER_PASSING,           /* made by a forward node, gone before the turn */
    LS_OWNER_AGAIN,             /* made by a run that is not the node's first */
    LS_OWNER_GRADIENT,          /* made by the first run of a backward or optimizer node */
    LS_OWNER_WORKSPACE,
    LS_NOWNERS
} LsOwner;

typedef struct LsSeriesRun {
    uint32_t node;
    bool again;
    double start;               /* ns of predicted time */
    int64_t bytes[LS_NOWNERS];  /* live while it runs; sizes as in the graph */
    int64_t total;
    uint32_t freed, nfreed;     /* LsSeries.freed[freed ..]: tensors that end with this run, also
                                 * those whose place a result takes */
} LsSeriesRun;

typedef struct LsSeriesLive { uint32_t tensor; LsOwner owner; int64_t bytes; } LsSeriesLive;

typedef struct LsSeries {
    LsSeriesRun *run; uint32_t nrun;
    uint32_t *freed; uint32_t nfreed;
    uint32_t turn;              /* first run of a backward node; nrun: there is none */
    uint32_t peak;              /* first run with the largest total */
    LsSeriesLive *live; uint32_t nlive;     /* tensors at the peak, largest first; a result in the
                                             * place of an operand is not counted in addition */
    uint32_t *runs;             /* by node: how often it runs */
    uint8_t *owner;             /* by tensor: LsOwner of its first instance;
                                 * LS_NOWNERS: never made */
} LsSeries;

/* Makes the series of a plan that ls_audit accepts. */
LsSeries *ls_series_new(LsArena *arena, const LsDag *dag, const LsPlan *plan);

#endif
