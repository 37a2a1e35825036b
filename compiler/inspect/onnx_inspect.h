/* compiler/inspect/onnx_inspect.h -- reports the contents of a model file and the obstacles to
 * training it. */
#ifndef LS_COMPILER_INSPECT_ONNX_INSPECT_H
#define LS_COMPILER_INSPECT_ONNX_INSPECT_H

#include "compiler/ir/diag.h"
#include "compiler/onnx/import_options.h"

/* Writes the report as text, or as one JSON object ("schema": 1). Dimensions that the options leave
 * open are taken as 1, so that the rest can be inspected. Problems are part of the report, not
 * diagnostics: false only when the file cannot be read as a model. all: the text has a line for
 * every tensor, however many there are. *trainable: the report knows of no obstacle. */
bool ls_inspect(LsCtx *cx, const char *path, const LsImportOptions *o, FILE *to, bool json,
                bool all, bool *trainable);

#endif
