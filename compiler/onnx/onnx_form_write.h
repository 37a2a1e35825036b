/* compiler/onnx/onnx_form_write.h -- writes the evaluation form of a model, piece by piece: it may
 * be larger than memory. */
#ifndef LS_COMPILER_ONNX_ONNX_FORM_WRITE_H
#define LS_COMPILER_ONNX_ONNX_FORM_WRITE_H

#include "compiler/onnx/onnx_export.h"

#include <stdio.h>

/* Writes the form from the stream's position on, which is its end. Large runs of zeros become
 * holes, which take no room on the disk. False with errno. */
bool ls_onnx_form_put(LsCtx *cx, const LsOnnxForm *f, FILE *to);
/* Writes it as a file. False after a diagnostic. */
bool ls_onnx_form_write(LsCtx *cx, const LsOnnxForm *f, const char *path);

#endif
