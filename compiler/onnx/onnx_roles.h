/* compiler/onnx/onnx_roles.h -- decides which tensors of reals of a file are trained, here and
 * nowhere else: from the readers of a tensor, its shape, its name and the exporter's notes. */
#ifndef LS_COMPILER_ONNX_ONNX_ROLES_H
#define LS_COMPILER_ONNX_ONNX_ROLES_H

#include "compiler/onnx/import_options.h"
#include "compiler/onnx/onnx_decisions.h"
#include "compiler/onnx/onnx_row.h"

struct LsImport;                /* import_state.h */

/* Fills im->verdict. */
void ls_onnx_decide(struct LsImport *im);
LsValueKind ls_role_kind(LsRole role);
bool ls_onnx_told_to_train(const LsImportOptions *o, const char *name);
bool ls_onnx_told_to_freeze(const LsImportOptions *o, const char *name);
/* Called once all nodes are built: freezes parameters that nodes made, fills im->decisions, and
 * reports globs without a match. */
void ls_onnx_record(struct LsImport *im);

/* The exporter's notes say that this batch norm was traced in training mode, whatever its form in
 * the file. */
bool ls_onnx_traced_training(const LsOnnxNode *n);
void ls_onnx_note_batch_norm(const LsOnnxNode *n, LsBnBy by);

#endif
