/* compiler/ops/random.h -- streams of random numbers: which of them a node draws from. */
#ifndef LS_COMPILER_OPS_RANDOM_H
#define LS_COMPILER_OPS_RANDOM_H

#include "compiler/ir/graph.h"

/* Nodes without a seed differ by their place in the graph: the stream of the node appended next. */
double ls_random_stream_of_node(const LsGraph *g);
/* Equal seeds give equal streams. */
double ls_random_stream_of_seed(uint32_t seed);

#endif
