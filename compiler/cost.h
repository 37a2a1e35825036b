/* compiler/cost.h -- what running a node costs on a machine: the roofline model that the
 * scheduler plans with until times are measured. */
#ifndef LS_COMPILER_COST_H
#define LS_COMPILER_COST_H

#include "compiler/graph.h"

typedef struct LsMachine {
    double product_per_ns;      /* operations per ns in convolutions and matrix products */
    double flops_per_ns;        /* operations per ns in everything else */
    double bytes_per_ns;        /* memory traffic */
    double launch_ns;           /* of every node, however small */
} LsMachine;
extern const LsMachine ls_machine_cpu;      /* two cores of a current server */

/* Floating-point operations; a transcendental function counts as ten. */
double ls_node_flops(const LsGraph *g, LsNodeId n);
/* Bytes that must pass between the node and memory: what it reads of its operands, its results,
 * and state it changes twice. */
double ls_node_bytes(const LsGraph *g, LsNodeId n, int real_bytes);
/* ns of one run in float; 0 for a view. */
double ls_node_cost(const LsGraph *g, LsNodeId n, const LsMachine *m);

#endif
