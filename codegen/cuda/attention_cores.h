/* codegen/cuda/attention_cores.h -- attention and its gradient on tensor cores. */
#ifndef LS_CODEGEN_CUDA_ATTENTION_CORES_H
#define LS_CODEGEN_CUDA_ATTENTION_CORES_H

#include "codegen/cuda/attention_text.h"

/* Prints all parts of either, and the function that launches them. */
void ls_att_emit_cores(const LsAttText *t);

#endif
