/* scheduler/plan/hint_graph.h -- the graph that keep_forget_hints.h speaks of. */
#ifndef LS_SCHEDULER_PLAN_HINT_GRAPH_H
#define LS_SCHEDULER_PLAN_HINT_GRAPH_H

#include "base/arena.h"
#include "scheduler/graph/dag.h"

typedef struct LsHinted {
    const LsDag *from;          /* the graph as it was */
    LsDag *dag;                 /* the one to plan */
    uint32_t *node_of;          /* by node of dag: that of from which it stands for */
    uint32_t *tensor_of;        /* by tensor of dag: likewise; UINT32_MAX: the sign of the turn */
    uint32_t turn;              /* node of dag that ends the forward part; UINT32_MAX: no copies */
    uint32_t ncopy;             /* nodes that stand for a node which is there itself */
} LsHinted;

typedef struct LsHintMarks {
    const LsDag *dag;
    uint32_t *maker;            /* by tensor: the ordinary node that makes it; UINT32_MAX: none */
    uint32_t turn;              /* the last node of the forward part; UINT32_MAX: there is none */
    bool *changed;              /* by tensor: the forward part updates it */
    bool *kept;                 /* by node: runs once because a hint says so */
    bool *forgotten;            /* by tensor */
    bool no_alternative;        /* other ways to make a tensor are forms of recomputation */
} LsHintMarks;

/* maker and turn of dag; nothing kept or forgotten. */
LsHintMarks ls_hint_marks(LsArena *arena, const LsDag *dag);

/* NULL, or why the tensor cannot be made again in the backward part: the end of a sentence that
 * begins with its name. */
const char *ls_hint_obstacle(const LsHintMarks *m, uint32_t tensor);

/* Every forgotten tensor must be without an obstacle. */
void ls_hint_graph(LsArena *arena, const LsHintMarks *m, LsHinted *out);

#endif
