/* codegen/program/cuda_program_text.h -- what a program for NVIDIA GPUs says beside the tables of every
 * program. */
#ifndef LS_CODEGEN_PROGRAM_CUDA_PROGRAM_TEXT_H
#define LS_CODEGEN_PROGRAM_CUDA_PROGRAM_TEXT_H

#include "codegen/emit/text_emit.h"
#include "codegen/program/program_contents.h"

/* The LsCudaProgram `cuda` of runtime/cuda/ls_cuda_run.h; the table `part` stands before it. */
void ls_cuda_program_print(const LsCode *c, LsEmit *e);

#endif
