/* compiler/passes/kernels_16.h -- which kernels read and write elements of 16 bits: a table for
 * each target. */
#ifndef LS_COMPILER_PASSES_KERNELS_16_H
#define LS_COMPILER_PASSES_KERNELS_16_H

#include "compiler/ir/graph.h"

/* The node's kernel reads and writes elements of this type of 16 bits. gpu: that of a GPU. */
bool ls_takes_16(const LsGraph *g, LsNodeId n, LsType type, bool gpu);

/* The product's kernel on processors rounds its factors to the type, also where they are stored in
 * 32 bits; else it multiplies in f32 whatever it reads. */
bool ls_multiplies_16(const LsGraph *g, LsNodeId n, LsType type);

/* Pointwise kernels and views: they take every mixture of types. */
bool ls_takes_any(LsOpCode op);

/* Operands, by bits, that such a kernel reads in 16 bits as well as in 32. */
unsigned ls_either_width(LsOpCode op);

/* Of those, the operands that must have one width: the kernel passes over rows of all of them
 * together. */
unsigned ls_same_width(LsOpCode op, bool gpu);

/* The kernel's result is stored in 16 bits if its operands are. */
bool ls_writes_alike(LsOpCode op, bool gpu);

#endif
