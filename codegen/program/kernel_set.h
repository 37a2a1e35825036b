/* codegen/program/kernel_set.h -- the distinct kernels of a program. */
#ifndef LS_CODEGEN_PROGRAM_KERNEL_SET_H
#define LS_CODEGEN_PROGRAM_KERNEL_SET_H

#include "codegen/emit/kernel_emit.h"

typedef struct LsKernelSet LsKernelSet;

LsKernelSet *ls_kernel_set_new(LsCtx *cx, const LsTarget *target);

/* The name of node n's kernel, e.g. "k12_conv"; equal texts share one kernel. Adds the node to the
 * names in the kernel's comment. NULL after a diagnostic (no emitter). */
const char *ls_kernel_set_add(LsKernelSet *set, const LsGraph *g, LsNodeId n);

/* On a GPU: lets kernels that differ only in numbers share one text, which takes the numbers at
 * launch (lift_constants.h). Call after the last ls_kernel_set_add. */
void ls_kernel_set_share(LsKernelSet *set);

/* On a GPU: adds the kernel that adds up what ranks send, rank_add
 * (runtime/cuda_kernels/ls_cuda_add.h). */
void ls_kernel_set_add_sums(LsKernelSet *set);

/* Some kernel adds up products of bfloat16 (runtime/kernels/ls_dot16.h). */
bool ls_kernel_set_has_dots(const LsKernelSet *set);

/* Prints the includes of the kernels' text. */
void ls_kernel_set_print_includes(const LsKernelSet *set, FILE *to);
/* Prints all kernels in order of their first node, each under a comment with its nodes and
 * shapes. */
void ls_kernel_set_print(const LsKernelSet *set, FILE *to);
/* On CUDA, for the text that launches the kernels: prints the table of their parts (LsCudaPart) and
 * the functions that launch them. */
void ls_kernel_set_print_host(const LsKernelSet *set, FILE *to);

#endif
