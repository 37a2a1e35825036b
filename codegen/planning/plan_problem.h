/* codegen/planning/plan_problem.h -- the graph as the scheduler sees it. */
#ifndef LS_CODEGEN_PLANNING_PLAN_PROBLEM_H
#define LS_CODEGEN_PLANNING_PLAN_PROBLEM_H

#include "compiler/cost/roofline.h"
#include "codegen/emit/target.h"
#include "scheduler/graph/dag.h"

typedef struct LsProblem {
    const LsGraph *g;
    LsTarget target;
    LsDag dag;
    LsNodeId *node_of;          /* by dag node: the graph's node */
    const uint32_t *whole;      /* of a part: by dag node: that of the whole problem. NULL: this is
                                 * the whole one */
    LsValueId *value_of;        /* by dag tensor: the graph's value (never a view) */
    int64_t *tensor_of;         /* by graph value: dag tensor of its bytes, views resolved; -1:
                                 * none */
} LsProblem;

/* Makes the problem of g, with or without alternatives (codegen/fusion/fused_alternatives.h). Views
 * cost nothing and vanish; state, inputs and constants are persistent tensors. The loss lives to
 * the end; model outputs must be made. Costs are those of the built-in machine "cpu". name: of the
 * dag. */
LsProblem *ls_problem_new(LsCtx *cx, const LsGraph *g, const char *name,
                          const LsTarget *target);

/* The state in whose memory, at its beginning, a node's result lies; none: it lies in the arena. The
 * tensor of such a result has no bytes. */
LsValueId ls_problem_home(const LsGraph *g, LsValueId v);

/* The work of a dag node on a machine. */
LsWork ls_problem_work(const LsProblem *p, uint32_t node, const LsMachine *m);
/* Sets the cost of every node to the model's figure for machine m. */
void ls_problem_price(LsProblem *p, const LsMachine *m);

enum { LS_ALIGNMENT = 64 };     /* bytes, of every address in the arena and the state */

#endif
