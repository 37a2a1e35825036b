/* runtime/cuda/ls_cublaslt.h -- matrix products of a program for NVIDIA GPUs, through cuBLASLt:
 * what the program says. Plain C.
 *
 * The library is opened at run time. A product is described by plain data that the compiler prints;
 * descriptors are made and an algorithm is chosen when it runs first, which must be before the step
 * is captured. After that a product allocates nothing and waits for nothing.
 *
 * The choice depends on the shape, the device and the library alone, never on addresses or free
 * memory, and only algorithms whose sums have a fixed order are taken: the same product gives
 * the same bits under every budget. */
#ifndef LS_CUBLASLT_H
#define LS_CUBLASLT_H

#include "runtime/cuda/cublaslt_matmul.h"
#include "runtime/cuda/ls_cuda_run.h"

/* Puts one product on the stream of the run. */
void ls_cuda_matmul(LsRun *run, const LsCudaMatmul *p, void *const arg[]);

/* Row of LsCudaProgram.use; its data is NULL. */
extern const LsCudaLibrary ls_cublaslt;

#endif
