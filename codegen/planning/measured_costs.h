/* codegen/planning/measured_costs.h -- a program's step times, from its --profile, in place of the
 * cost model's.
 *
 * A step matches a node if the name of the ONNX node, its role (forward, backward, update), the
 * operator, the sizes of all results and their types of 16 bits are the same; their order tells
 * several such nodes apart. So a profile of a program with a budget, which recomputes some nodes,
 * serves as well as one without, and so does a profile made with another optimizer. */
#ifndef LS_CODEGEN_PLANNING_MEASURED_COSTS_H
#define LS_CODEGEN_PLANNING_MEASURED_COSTS_H

#include "codegen/planning/plan_problem.h"

typedef struct LsMeasuredNode {
    const char *key;            /* name, role, operator, sizes */
    uint32_t node;              /* of the plan that the program ran */
    double ns;                  /* mean over its runs in a step */
} LsMeasuredNode;

typedef struct LsMeasured {
    const char *path, *model;
    int threads, real_bytes, batch;
    LsMeasuredNode *row; uint32_t nrow;     /* by node */
    uint32_t nodes, matched;    /* of the problem last priced: nodes with a cost; nodes found */
} LsMeasured;

/* Reads a profile; false after LS_E_IO or LS_E_OPTION. Everything is in cx->arena. */
bool ls_measured_load(LsCtx *cx, const char *path, LsMeasured *out);

/* By node of the problem: its measured time in ns, or -1 where the profile has none. */
const double *ls_measured_find(LsCtx *cx, const LsMeasured *from, const LsProblem *p);

/* Sets the costs of the problem's nodes, in ns: to the measured time for nodes found, else to the
 * machine model's time scaled by measured / modelled of the node's class (or of all classes). False
 * after LS_E_OPTION if the profile is of another precision, batch or model (less than half of the
 * modelled time is found). */
bool ls_measured_price(LsCtx *cx, LsMeasured *from, LsProblem *p, const LsMachine *m);

#endif
