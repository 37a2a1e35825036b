/* codegen/planning/measured_costs.h -- times of a program's steps, as its --profile wrote them, in the place of
 * the cost model's.
 *
 * A step and a node are the same when the name of the ONNX node, its role (forward, backward,
 * update), the operator and the sizes of all results are the same; several of one kind are told
 * apart by their order. So the profile of a program with a budget, which runs some nodes again,
 * serves as well as that of one without, and so does one made with another optimizer. */
#ifndef LS_CODEGEN_PLANNING_MEASURED_COSTS_H
#define LS_CODEGEN_PLANNING_MEASURED_COSTS_H

#include "codegen/planning/plan_problem.h"

typedef struct LsMeasuredNode {
    const char *key;            /* name, role, operator, sizes */
    uint32_t node;              /* of the plan it ran under */
    double ns;                  /* mean over its runs in a step */
} LsMeasuredNode;

typedef struct LsMeasured {
    const char *path, *model;
    int threads, real_bytes, batch;
    LsMeasuredNode *row; uint32_t nrow;     /* by node */
    uint32_t nodes, matched;    /* of the problem last priced: that have a cost; that were found */
} LsMeasured;

/* Reads a profile; false after LS_E_IO or LS_E_OPTION. Everything is in cx->arena. */
bool ls_measured_load(LsCtx *cx, const char *path, LsMeasured *out);

/* By node of the problem: its measured time in ns, or -1 where the profile has none. */
const double *ls_measured_find(LsCtx *cx, const LsMeasured *from, const LsProblem *p);

/* Sets the costs of the problem's nodes: those found to their measured times, the others to what
 * the machine's figures say times measured / modelled of their class (or of all). False after
 * LS_E_OPTION when the profile is of another precision, batch or model: when less than half of the
 * modelled time is found. */
bool ls_measured_price(LsCtx *cx, LsMeasured *from, LsProblem *p, const LsMachine *m);

#endif
