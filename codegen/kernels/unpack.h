/* codegen/kernels/unpack.h -- tensors in codes, as kernels read them. */
#ifndef LS_CODEGEN_KERNELS_UNPACK_H
#define LS_CODEGEN_KERNELS_UNPACK_H

#include "base/arena.h"
#include "codegen/emit/kernel_emit.h"

/* "{LS_PACKED_NF4, 4096, ...}", of type LsPacked. */
const char *ls_packed_literal(LsArena *a, const LsPackedCodes *c);
/* Prints `const LsPacked NAME = ...`, and asks for the headers that read codes. */
void ls_unpack_emit_codes(const LsKernelText *k, const char *name, const LsPackedCodes *c);

#endif
