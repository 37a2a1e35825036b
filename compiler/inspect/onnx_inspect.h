/* compiler/inspect/onnx_inspect.h -- what a model file holds and what stands in the way of training it. */
#ifndef LS_COMPILER_INSPECT_ONNX_INSPECT_H
#define LS_COMPILER_INSPECT_ONNX_INSPECT_H

#include "compiler/ir/diag.h"
#include "compiler/onnx/import_options.h"

/* Writes the report as text, or as one JSON object ("schema": 1). Dimensions that the options leave
 * open are taken as 1, so that the rest can be looked at. Problems are part of the report, not
 * diagnostics: false only when the file cannot be read as a model. all: every tensor has a line in the
 * text, however many there are. *trainable: nothing that the report knows of stands in the way. */
bool ls_inspect(LsCtx *cx, const char *path, const LsImportOptions *o, FILE *to, bool json, bool all,
                bool *trainable);

#endif
