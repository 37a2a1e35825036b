/* compiler/ir/graph_text.h -- the graph as text, for people and tests. */
#ifndef LS_COMPILER_IR_GRAPH_TEXT_H
#define LS_COMPILER_IR_GRAPH_TEXT_H

#include "compiler/ir/graph.h"
#include "compiler/ir/ir.h"

void ls_graph_print(const LsGraph *g, FILE *to);    /* one line a node: %7 =
                                                     * Conv x %3 : 8x64x56x56 */

#endif
