/* compiler/cost/roofline.h -- what running a node costs on a machine: a roofline with two levels of memory,
 * by which the scheduler plans until times are measured.
 *
 * A node has a class, operations, and bytes that it reads and writes. Its time is that of its
 * class for a run (launch), plus the longer of computing and moving, plus what of the shorter the
 * longer does not hide. Bytes move at the cache's speed when little was touched since they were
 * touched last (their age, cache_reuse.h), at the memory's when much more than the cache holds, and in
 * between in between. Ages are those of runs in a program (codegen/planning/step_replay.h); a node by itself,
 * which is what the scheduler weighs, touches its operands and results as if all had been touched
 * just before. */
#ifndef LS_COMPILER_COST_ROOFLINE_H
#define LS_COMPILER_COST_ROOFLINE_H

#include "compiler/cost/machine.h"
#include "compiler/ir/graph.h"

/* How the program's kernel computes a convolution; codegen/ knows (LsEmitter.way). */
typedef enum { LS_WAY_DIRECT, LS_WAY_FEW, LS_WAY_WINOGRAD, LS_WAY_DEPTHWISE } LsCostWay;

typedef struct LsTouch { double bytes, age; bool write; } LsTouch;

typedef struct LsWork {
    LsCostClass kind;
    bool none;                  /* a view: no code */
    double flops;               /* operations that are carried out, padding included */
    double packing;             /* operations on an operand that it computes itself */
    double read, written;       /* bytes */
    const LsTouch *touch; uint32_t ntouch;      /* of operands and results; 0: ages unknown */
} LsWork;

/* Floating-point operations by definition; a transcendental function counts as ten. */
double ls_node_flops(const LsGraph *g, LsNodeId n);
/* Bytes that must pass between the node and memory: what it reads of its operands (a value read
 * twice counts once), its results, and state it changes twice. */
double ls_node_bytes(const LsGraph *g, LsNodeId n, int real_bytes);

/* What the kernel does on a machine. way: of convolutions; a GPU's library has its own. */
LsWork ls_node_work(const LsGraph *g, LsNodeId n, const LsMachine *m, LsCostWay way,
                    int real_bytes);
/* Share of the memory's time that a byte takes which the run reads (write: writes), with a cache
 * of so many bytes, `near` times as fast as the memory. */
double ls_work_slow(const LsWork *w, bool write, double cache, double near);
/* ns of one run; 0 for a view. */
double ls_work_ns(const LsMachine *m, const LsWork *w, int real_bytes);
/* Both in float, for nodes other than convolutions. */
double ls_node_cost(const LsGraph *g, LsNodeId n, const LsMachine *m);

#endif
