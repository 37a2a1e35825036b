/* codegen/program/program_text.h -- the text of a training program. */
#ifndef LS_CODEGEN_PROGRAM_PROGRAM_TEXT_H
#define LS_CODEGEN_PROGRAM_PROGRAM_TEXT_H

#include "codegen/program/program_contents.h"

/* Prints the C file to `to`, and the kernels to `device` for a target that keeps them in a text of
 * their own (else NULL). False after diagnostics. Afterwards c->addresses has all constants. The
 * file expects ls_constant_data and ls_onnx_data, which ls_program_print_data defines. */
bool ls_program_print(LsCtx *cx, const LsCode *c, FILE *to, FILE *device);

/* Prints assembler text that embeds the two blobs from files beside it, and the device's code, if
 * any. onnx_file NULL: that file is attached to the linked program, and the text has an empty
 * section for it. */
void ls_program_print_data(FILE *to, const char *constant_file, const char *onnx_file,
                           const char *device_file);

#endif
