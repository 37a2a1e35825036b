/* codegen/toolchain/attach_file.h -- attaches the evaluation form of its model to a linked program
 * (runtime/base/attached_file.h). */
#ifndef LS_CODEGEN_TOOLCHAIN_ATTACH_FILE_H
#define LS_CODEGEN_TOOLCHAIN_ATTACH_FILE_H

#include "compiler/onnx/onnx_form_write.h"

/* Writes the form behind the program's last byte, and makes it the content of the section that
 * ls_program_print_data prints. A program that is no ELF file, such as the script of a wrapper
 * around the compiler, stays as it is. False after a diagnostic. */
bool ls_attach_form(LsCtx *cx, const char *program, const LsOnnxForm *form);

#endif
