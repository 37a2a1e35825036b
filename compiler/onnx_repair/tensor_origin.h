/* compiler/onnx_repair/tensor_origin.h -- the origin of a file's tensors: PyTorch's exporter notes
 * for each tensor that it is a parameter or a buffer of the module, or what it was folded from. */
#ifndef LS_COMPILER_ONNX_REPAIR_TENSOR_ORIGIN_H
#define LS_COMPILER_ONNX_REPAIR_TENSOR_ORIGIN_H

#include "base/name_ids.h"
#include "onnx.pb-c.h"

#include <stdbool.h>

typedef enum { LS_FROM_UNKNOWN, LS_FROM_PARAMETER, LS_FROM_BUFFER, LS_FROM_CONSTANT } LsSourceKind;

typedef struct LsOnnxSource {
    LsSourceKind kind;
    const char *placeholder;    /* of calls, lower case: p_fc_weight; NULL */
    const char *folded_from;    /* a printed list of names; NULL: not folded */
} LsOnnxSource;

/* a tensor, and what it comes from; NULL: nothing */
typedef struct LsUntied { const char *name, *from; } LsUntied;

typedef struct LsOnnxSources {
    LsNames names; LsOnnxSource *item;          /* by id */
    LsNames placeholders;       /* placeholders that calls read, in lower case */
    LsNames parameters;         /* of the module, in the file or not; empty: not noted */
    bool traced;                /* by torch.export: notes tell parameters from buffers */
    bool optimised;             /* constants were folded, nodes rewritten */
    /* Convolutions with a folded batch norm: the bias that it made (or the weight), and the
     * node. */
    LsUntied *folded_norm; uint32_t nfolded_norms, cap_folded_norms;
} LsOnnxSources;

LsOnnxSources *ls_onnx_sources(LsArena *a, const Onnx__GraphProto *g);
/* The source of that tensor; never NULL. */
const LsOnnxSource *ls_onnx_source(const LsOnnxSources *s, const char *name);

/* The placeholder in calls for a tensor of this name: p_ or b_, then the name in lower case, with _
 * for every character that is neither letter nor digit. */
const char *ls_source_placeholder(LsArena *a, LsSourceKind kind, const char *name);

/* Number of parameters among the names that a tensor was folded from, and the first of them. A name
 * is a parameter's when a call or a value of the file says so; else when it ends like a layer's
 * weight. */
uint32_t ls_source_parameters(LsArena *a, const LsOnnxSources *s, const char *folded_from,
                              const char **first);

/* All of them: 'a.weight', 'b.weight'. */
const char *ls_source_parameter_list(LsArena *a, const LsOnnxSources *s, const char *folded_from);

/* The last part of a dotted name; a copy in lower case. */
const char *ls_source_leaf(const char *name);
const char *ls_source_lower(LsArena *a, const char *s);
/* The name ends like a trained tensor of a layer: weight, bias, gamma, kernel, ... */
bool ls_source_weight_name(const char *name);
/* The name comes from an exporter, not from a person: val_7, onnx::MatMul_31, 12,
 * /blocks.0/Constant_output_0. */
bool ls_source_made_up(const char *name);
/* The name of a node's result, but for Constant nodes, as the older exporter of PyTorch and
 * programs that rewrite its files choose it: /blocks.0/Gather_output_0, _v_7. */
bool ls_source_result_name(const char *name);

#endif
