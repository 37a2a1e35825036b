/* codegen/program/program_text.h -- the text of a training program. */
#ifndef LS_CODEGEN_PROGRAM_PROGRAM_TEXT_H
#define LS_CODEGEN_PROGRAM_PROGRAM_TEXT_H

#include "codegen/program/program_contents.h"

/* Prints the C file, and for a target whose kernels are a text of their own that to `device` (else
 * NULL); false after diagnostics. Constants are complete in c->addresses afterwards.
 * The file expects ls_constant_data and ls_onnx_data, as ls_program_print_data makes them. */
bool ls_program_print(LsCtx *cx, const LsCode *c, FILE *to, FILE *device);

/* Assembler text that embeds the two blobs from files beside it, and the device's code, if any. */
void ls_program_print_data(FILE *to, const char *constant_file, const char *onnx_file,
                           const char *device_file);

#endif
