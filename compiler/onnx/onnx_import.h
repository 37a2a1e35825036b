/* compiler/onnx/onnx_import.h -- from a model file to the forward graph. */
#ifndef LS_COMPILER_ONNX_ONNX_IMPORT_H
#define LS_COMPILER_ONNX_ONNX_IMPORT_H

#include "compiler/ir/ir.h"
#include "compiler/ir/diag.h"
#include "compiler/onnx/import_options.h"
#include "compiler/onnx/onnx_model.h"

/* Reads and checks the model; NULL after diagnostics (all problems, by node). The file's small
 * tensors are copied into the arena once; its large initializers stay in the file, which is mapped
 * until the arena is freed. Initial values point to them where their type allows. */
LsGraph *ls_onnx_import(LsCtx *cx, const char *path, const LsImportOptions *o);

/* The same for a model that is open already, for which it is the last use of its nodes: those of
 * bodies are appended. */
LsGraph *ls_onnx_import_model(LsCtx *cx, LsOnnxModel *m, const LsImportOptions *o);

#endif
