/* compiler/cost.h -- what running a node costs on a machine: a roofline with two levels of memory,
 * by which the scheduler plans until times are measured.
 *
 * A node has a class, operations, and bytes that it reads and writes. Its time is that of its
 * class for a run (launch), plus computing, plus moving -- or, where they overlap, the longer of
 * the two. Bytes move at the memory's speed when the node touches much more than the cache holds,
 * at the cache's when much less, and in between in between. */
#ifndef LS_COMPILER_COST_H
#define LS_COMPILER_COST_H

#include "compiler/graph.h"
#include "compiler/machine.h"

/* How the program's kernel computes a convolution; codegen/ knows (LsEmitter.way). */
typedef enum { LS_WAY_DIRECT, LS_WAY_FEW, LS_WAY_WINOGRAD, LS_WAY_DEPTHWISE } LsCostWay;

typedef struct LsWork {
    LsCostClass kind;
    bool none;                  /* a view: no code */
    double flops;               /* operations that are carried out, padding included */
    double packing;             /* operations on an operand that it computes itself */
    double read, written;       /* bytes */
} LsWork;

/* Floating-point operations by definition; a transcendental function counts as ten. */
double ls_node_flops(const LsGraph *g, LsNodeId n);
/* Bytes that must pass between the node and memory: what it reads of its operands (a value read
 * twice counts once), its results, and state it changes twice. */
double ls_node_bytes(const LsGraph *g, LsNodeId n, int real_bytes);

/* What the kernel does on a machine. way: of convolutions; a GPU's library has its own. */
LsWork ls_node_work(const LsGraph *g, LsNodeId n, const LsMachine *m, LsCostWay way,
                    int real_bytes);
/* ns of one run; 0 for a view. */
double ls_work_ns(const LsMachine *m, const LsWork *w, int real_bytes);
/* Both in float, for nodes other than convolutions. */
double ls_node_cost(const LsGraph *g, LsNodeId n, const LsMachine *m);

#endif
