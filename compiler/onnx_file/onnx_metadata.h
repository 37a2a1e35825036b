/* compiler/onnx_file/onnx_metadata.h -- metadata_props: an exporter's notes on a node, value or
 * tensor. */
#ifndef LS_COMPILER_ONNX_FILE_ONNX_METADATA_H
#define LS_COMPILER_ONNX_FILE_ONNX_METADATA_H

#include "base/arena.h"

#include <protobuf-c/protobuf-c.h>

/* The text under that key of a NodeProto, ValueInfoProto, TensorProto or GraphProto; NULL: no such
 * key. Works even where the distribution's ONNX definitions are older than the field. */
const char *ls_onnx_meta(LsArena *a, const ProtobufCMessage *m, const char *key);

/* Nodes in files of torch.export carry the traced call, such as
 *   %linear : [num_users=1] = call_function[target=...](args = (%x, %p_fc_weight, %p_fc_bias), ...)
 * where p_ marks a parameter and b_ a buffer. */
#define LS_META_CALL "pkg.torch.onnx.fx_node"
/* Nodes: ['', 'layers.0', 'layers.0.norm', 'layer_norm']: modules from outermost to innermost, then
 * the call. */
#define LS_META_SCOPES "pkg.torch.onnx.name_scopes"
/* Nodes: ['Net', 'torch.nn.modules.linear.Linear', 'aten.linear.default']: classes of these
 * modules, then the call's. */
#define LS_META_CLASSES "pkg.torch.onnx.class_hierarchy"
/* Values: PARAMETER, BUFFER, CONSTANT_TENSOR, USER_INPUT. */
#define LS_META_KIND "pkg.torch.export.graph_signature.InputSpec.kind"
/* Values: the name of the placeholder in calls, such as p_fc_weight. */
#define LS_META_PLACEHOLDER "pkg.torch.onnx.original_node_name"
/* Values: ['fc.weight', 'val_3']: the origins of a folded constant. */
#define LS_META_FOLDED "pkg.onnxscript.optimizer.folded_from"
/* Nodes: the rules that rewrote them, such as FuseBatchNormIntoConv. */
#define LS_META_RULE "pkg.onnxscript.rewriter.rule_name"

/* The graph: a line for each input of the module, p_fc_weight: PARAMETER target='fc.weight'. */
#define LS_META_SIGNATURE "pkg.torch.export.ExportedProgram.graph_signature"

/* The next text of a printed list such as ['a', 'b']; moves *at behind it. NULL at the end. */
const char *ls_meta_item(LsArena *a, const char **at);
/* Argument k of a traced call, as text; NULL: the call has fewer. */
const char *ls_meta_argument(LsArena *a, const char *call, int k);
/* The next placeholder (p_..., b_..., c_...) that the call reads; moves *at behind it. NULL at the
 * end. */
const char *ls_meta_placeholder(LsArena *a, const char **at);

#endif
