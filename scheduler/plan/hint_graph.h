/* scheduler/plan/hint_graph.h -- the changed graph of keep_forget_hints.h. */
#ifndef LS_SCHEDULER_PLAN_HINT_GRAPH_H
#define LS_SCHEDULER_PLAN_HINT_GRAPH_H

#include "base/arena.h"
#include "scheduler/graph/dag.h"

typedef struct LsHinted {
    const LsDag *from;          /* the original graph */
    LsDag *dag;                 /* the changed graph, to be planned */
    uint32_t *node_of;          /* by node of dag: its original in `from` */
    uint32_t *tensor_of;        /* by tensor of dag: its original; UINT32_MAX: the tensor that marks
                                 * the turn */
    uint32_t turn;              /* the node of dag that ends the forward part; UINT32_MAX: there are
                                 * no copies */
    uint32_t ncopy;             /* number of copies: second nodes for the same original */
} LsHinted;

typedef struct LsHintMarks {
    const LsDag *dag;
    uint32_t *maker;            /* by tensor: the ordinary node that makes it; UINT32_MAX: none */
    uint32_t turn;              /* the last node of the forward part; UINT32_MAX: none */
    bool *changed;              /* by tensor: the forward part updates it */
    bool *kept;                 /* by node: a hint makes it run once */
    bool *forgotten;            /* by tensor */
    bool no_alternative;        /* alternatives count as recomputation and are left out */
} LsHintMarks;

/* Returns the marks with maker and turn of dag; nothing is kept or forgotten. */
LsHintMarks ls_hint_marks(LsArena *arena, const LsDag *dag);

/* Returns NULL, or why the tensor cannot be recomputed in the backward part: the end of a sentence
 * that begins with its name. */
const char *ls_hint_obstacle(const LsHintMarks *m, uint32_t tensor);

/* Makes the changed graph. No forgotten tensor may have an obstacle. */
void ls_hint_graph(LsArena *arena, const LsHintMarks *m, LsHinted *out);

#endif
