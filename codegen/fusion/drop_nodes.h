/* codegen/fusion/drop_nodes.h -- removal of nodes whose results' readers find the elements
 * elsewhere (implicit_concat.c, implicit_pad.c). */
#ifndef LS_CODEGEN_FUSION_DROP_NODES_H
#define LS_CODEGEN_FUSION_DROP_NODES_H

#include "codegen/emit/target.h"
#include "compiler/ir/graph.h"

/* Whether a step updates v: its elements may then change before a kernel reads them. */
bool ls_is_updated(const LsGraph *g, LsValueId v);

/* The node that makes v, if it is dropped; else 0. */
uint32_t ls_dropped_maker(const LsGraph *g, const bool *goes, LsValueId v);

/* Whether a glob matches the name of the node or of its first result. */
bool ls_is_named(const LsGraph *g, LsNodeId n, const char *const *glob, uint32_t nglob);

/* Clears goes[n] of nodes that must stay: their results are outputs of the graph or gradients asked
 * for, or a glob matches the name of the node or of its first result. */
void ls_drop_none_wanted(const LsGraph *g, const char *const *glob, uint32_t nglob, bool *goes);

/* Takes gradients that no node makes any more out of g->grad. */
void ls_forget_gradients(LsGraph *g);

/* Turns the nodes with goes[n] into NOP, and alternatives whose sums now run in another order than
 * those of the node they replace. Does nothing if no node goes. Returns the nodes dropped. */
uint32_t ls_drop_nodes(LsGraph *g, const LsTarget *t, const bool *goes);

#endif
