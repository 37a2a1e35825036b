/* compiler/adapters/adapt.h -- adds adapters to the graph of a model file. */
#ifndef LS_COMPILER_ADAPTERS_ADAPT_H
#define LS_COMPILER_ADAPTERS_ADAPT_H

#include "compiler/adapters/adapters.h"
#include "compiler/onnx_repair/file_edit.h"

/* A node whose result got another name. */
typedef struct LsAdapterChange { Onnx__NodeProto *node; char *result; } LsAdapterChange;

/* Adds the adapters to the graph of a file, whose index is made (ls_edit_index). opset: of ai.onnx.
 * False after diagnostics: a name that names no module, tensors of other shapes. */
bool ls_adapt(LsEditor *u, LsAdapters *a, int opset);

/* Takes the nodes out of the graph again, and gives results their own names; the tensors stay. */
void ls_adapters_remove(const LsAdapters *a, Onnx__GraphProto *g);

#endif
