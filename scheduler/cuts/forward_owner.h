/* scheduler/cuts/forward_owner.h -- the forward node that every other node belongs to, whatever the
 * cut. */
#ifndef LS_SCHEDULER_CUTS_FORWARD_OWNER_H
#define LS_SCHEDULER_CUTS_FORWARD_OWNER_H

#include "scheduler/graph/instance.h"
#include "scheduler/cuts/pipeline_schedules.h"

typedef struct LsAnchors {
    uint32_t *at;               /* by node: a node with p->forward, itself if it is one; LS_NO_ID:
                                 * it need not run */
    bool *loose;                /* by node: some cut puts it into another stage than its anchor */
    uint32_t nword;
    uint64_t *places;           /* by node: nword words, a set of nodes with p->forward. A forward
                                 * node is in the latest of their stages, another one in the
                                 * earliest */
} LsAnchors;

LsAnchors ls_anchors(LsArena *arena, const LsProb *p);

/* The phase of a needed node. */
LsPipePhase ls_phase_of(const LsProb *p, uint32_t node);

#endif
