/* compiler/adapters/adapters.h -- low-rank adapters as a change of a model file: the nodes and
 * tensors that they add, what is trained, and where each tensor goes in peft's files. */
#ifndef LS_COMPILER_ADAPTERS_ADAPTERS_H
#define LS_COMPILER_ADAPTERS_ADAPTERS_H

#include "base/name_ids.h"
#include "compiler/adapters/adapted.h"
#include "compiler/adapters/adapter_spec.h"
#include "compiler/onnx_repair/file_edit.h"

/* A tensor of peft's adapter file. */
typedef struct LsAdapterTensor { const char *name, *key; } LsAdapterTensor;     /* in the model; in
                                                                                 * that file */

typedef struct LsAdapters {
    const LsAdapterSpec *spec;
    /* set by ls_adapt: */
    LsNames trained;                    /* tensors that are trained, and no others */
    LsAdapterTensor *tensor; uint32_t ntensor, cap_tensor;
    LsAdapted *adapted; uint32_t nadapted, cap_adapted;
    const char *config;                 /* adapter_config.json */
} LsAdapters;

LsAdapters *ls_adapters_new(LsArena *a, const LsAdapterSpec *spec);

/* Adds the adapters to the graph of a file, whose index is made (ls_edit_index). opset: of ai.onnx.
 * False after diagnostics: a name that names no module, tensors of other shapes. */
bool ls_adapt(LsEditor *u, LsAdapters *a, int opset);

/* Whether no gradient flows through that value: the norms of DoRA. */
bool ls_adapters_stop(const LsAdapters *a, const char *value);
/* Whether the tensor is trained. */
bool ls_adapters_train(const LsAdapters *a, const char *tensor);

#endif
