/* compiler/onnx_file/onnx_subgraph.h -- the bodies of If, Loop, Scan, SequenceMap: graphs in
 * attributes, which read values of the graphs around them by name. */
#ifndef LS_COMPILER_ONNX_FILE_ONNX_SUBGRAPH_H
#define LS_COMPILER_ONNX_FILE_ONNX_SUBGRAPH_H

#include "base/name_ids.h"
#include "compiler/onnx_file/onnx_wire.h"

/* The body in that attribute; NULL: there is none. */
const Onnx__GraphProto *ls_subgraph(const Onnx__NodeProto *node, const char *attribute);
/* The node has a body. */
bool ls_subgraph_any(const Onnx__NodeProto *node);
/* Adds the names that the body itself defines: inputs, initializers, results of nodes. */
void ls_subgraph_own(const Onnx__GraphProto *body, LsNames *to);
/* Adds the names that the node's bodies read from outside, each once, in order. */
void ls_subgraph_captures(const Onnx__NodeProto *node, LsNames *to);
/* Adds all names of the node's bodies. */
void ls_subgraph_names(const Onnx__NodeProto *node, LsNames *to);
/* Calls visit for every operand (a node of a body, and its number) that is read from outside. */
void ls_subgraph_reads(const Onnx__NodeProto *node,
                       void (*visit)(void *of, const Onnx__NodeProto *reader, size_t k), void *of);

/* Moves initializers of all bodies into the graph, where they may be trained and are stored. A name
 * that the file uses twice becomes NODE/NAME. */
void ls_subgraph_hoist(LsArena *a, Onnx__GraphProto *g);

#endif
