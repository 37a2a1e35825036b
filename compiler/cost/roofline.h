/* compiler/cost/roofline.h -- the cost of a node on a machine: a roofline with two levels of
 * memory. The scheduler plans by it until times are measured.
 *
 * A node has a class, operations, and bytes that it reads and writes. Its time is the launch of its
 * class, plus the longer of compute and transfer time, plus the part of the shorter that the longer
 * does not hide. Bytes move at the cache's speed when their age (reuse distance, cache_reuse.h) is
 * small, at the memory's when it is much more than the cache holds, and at a speed in between
 * otherwise. Ages are those of runs in a program (codegen/planning/step_replay.h). The scheduler
 * weighs a node by itself: its operands and results count as touched just before. */
#ifndef LS_COMPILER_COST_ROOFLINE_H
#define LS_COMPILER_COST_ROOFLINE_H

#include "compiler/cost/machine.h"
#include "compiler/ir/graph.h"

/* The algorithm of the program's convolution kernel; codegen/ knows (LsEmitter.way). */
typedef enum { LS_WAY_DIRECT, LS_WAY_FEW, LS_WAY_WINOGRAD, LS_WAY_DEPTHWISE } LsCostWay;

typedef struct LsTouch { double bytes, age; bool write; } LsTouch;

typedef struct LsWork {
    LsCostClass kind;
    bool none;                  /* a view: no code */
    double flops;               /* operations carried out, padding included */
    double dots;                /* of these, operations of a product of bfloat16 factors */
    double packing;             /* operations on an operand that the kernel computes itself */
    double by_tile;             /* time of Winograd's tiles whatever their channels, as operations;
                                 * counts where ages are known, so that plans do not depend on it */
    double read, written;       /* bytes */
    const LsTouch *touch; uint32_t ntouch;      /* of operands and results; 0: ages unknown */
} LsWork;

/* Floating-point operations by definition; a transcendental function counts as ten. */
double ls_node_flops(const LsGraph *g, LsNodeId n);
/* Bytes that must pass between the node and memory: its operands (a value read twice counts once),
 * its results, and twice the state that it updates. */
double ls_node_bytes(const LsGraph *g, LsNodeId n, int real_bytes);

/* The work of the node's kernel on a machine. way: for convolutions; a GPU's library chooses its
 * own. */
LsWork ls_node_work(const LsGraph *g, LsNodeId n, const LsMachine *m, LsCostWay way,
                    int real_bytes);
/* Time per byte read (write: written), as a share of the memory's time per byte, with a cache of so
 * many bytes that is `near` times as fast as the memory. */
double ls_work_slow(const LsWork *w, bool write, double cache, double near);
/* Operations, with those of tiles where they count. */
double ls_work_flops(const LsWork *w);
/* ns of one run; 0 for a view. */
double ls_work_ns(const LsMachine *m, const LsWork *w, int real_bytes);
/* ls_work_ns of ls_node_work in float, for nodes other than convolutions. */
double ls_node_cost(const LsGraph *g, LsNodeId n, const LsMachine *m);

#endif
