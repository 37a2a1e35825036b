/* compiler/passes/channels_last.h -- chooses row-major or channels-last layout for every value. */
#ifndef LS_COMPILER_PASSES_CHANNELS_LAST_H
#define LS_COMPILER_PASSES_CHANNELS_LAST_H

#include "compiler/ir/graph.h"

/* Sets the layout of every value and inserts CONVERT nodes. like: a graph of the same model whose
 * state and inputs, matched by name, already have their layouts (the training graph, when g is the
 * evaluation form); NULL: none. */
bool ls_layout(LsCtx *cx, LsGraph *g, const LsGraph *like);

#endif
