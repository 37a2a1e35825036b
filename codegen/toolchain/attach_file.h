/* codegen/toolchain/attach_file.h -- attaches a file to a linked program
 * (runtime/base/attached_file.h). */
#ifndef LS_CODEGEN_TOOLCHAIN_ATTACH_FILE_H
#define LS_CODEGEN_TOOLCHAIN_ATTACH_FILE_H

#include "compiler/ir/diag.h"

/* Copies the file behind the program's last byte, and makes it the content of the section that
 * ls_program_print_data prints. A program that is no ELF file, such as the script of a wrapper
 * around the compiler, stays as it is. shift: bytes of the section before the file.
 * False after a diagnostic. */
bool ls_attach_file(LsCtx *cx, const char *program, const char *file, int64_t shift);

#endif
