/* codegen/fusion/head_in_update.h -- the update of a vocabulary head's weight computes the weight's
 * gradient, in parts of the classes (--head-gradient=parts).
 *
 * A head in chunks of positions (compiler/passes/head_chunks.h) adds up its weight's gradient chunk
 * by chunk: all of it is in memory through the whole backward part, since a table that shares the
 * weight comes last. The update's kernel (codegen/kernels/head_gradient.h) has only some rows of it
 * at a time, for one product more: it computes the scores once more. */
#ifndef LS_CODEGEN_FUSION_HEAD_IN_UPDATE_H
#define LS_CODEGEN_FUSION_HEAD_IN_UPDATE_H

#include "codegen/emit/target.h"
#include "compiler/ir/graph.h"

/* Changes g, before nodes are cut into tiles; made: globs over names of values and nodes that must
 * stay. Returns false after an error: the graph has no such update, and the error says why. */
bool ls_head_in_update(LsCtx *cx, LsGraph *g, const LsTarget *t, const char *const *made,
                       uint32_t nmade);

#endif
