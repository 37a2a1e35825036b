/* codegen/fusion/drop_nodes.h -- nodes that go, because the kernels that read what they make find it elsewhere
 * (implicit_concat.c, implicit_pad.c). */
#ifndef LS_CODEGEN_FUSION_DROP_NODES_H
#define LS_CODEGEN_FUSION_DROP_NODES_H

#include "codegen/emit/target.h"
#include "compiler/ir/graph.h"

/* What a step updates may be another by the time that a kernel reads it. */
bool ls_is_updated(const LsGraph *g, LsValueId v);

/* The node that makes v, if it goes; or 0. */
uint32_t ls_dropped_maker(const LsGraph *g, const bool *goes, LsValueId v);

/* Whether a glob names the node or its first result. */
bool ls_is_named(const LsGraph *g, LsNodeId n, const char *const *glob, uint32_t nglob);

/* Clears goes[n] of nodes whose results are outputs of the graph or gradients that are asked for,
 * and of those that a glob names by the node or its first result. */
void ls_drop_none_wanted(const LsGraph *g, const char *const *glob, uint32_t nglob, bool *goes);

/* Makes those nodes NOP, and alternatives whose sums now come in another order than those of what
 * they stand for; nothing where no node goes. Returns how many do. */
uint32_t ls_drop_nodes(LsGraph *g, const LsTarget *t, const bool *goes);

#endif
