/* codegen/program/cuda_program_text.h -- the text that only programs for NVIDIA GPUs have. */
#ifndef LS_CODEGEN_PROGRAM_CUDA_PROGRAM_TEXT_H
#define LS_CODEGEN_PROGRAM_CUDA_PROGRAM_TEXT_H

#include "codegen/emit/text_emit.h"
#include "codegen/program/program_contents.h"

/* Prints the LsCudaProgram `cuda` (runtime/cuda/ls_cuda_run.h); the table `part` must precede
 * it. */
void ls_cuda_program_print(const LsCode *c, LsEmit *e);

#endif
