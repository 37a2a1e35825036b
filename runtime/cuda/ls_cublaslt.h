/* runtime/cuda/ls_cublaslt.h -- matrix products of a program for NVIDIA GPUs, through cuBLASLt: the
 * interface of generated programs. Plain C.
 *
 * The library is opened at run time. The compiler prints a product as plain data. The product's
 * first run makes descriptors and chooses an algorithm; it must happen before the step is captured.
 * Later runs allocate nothing and wait for nothing.
 *
 * The choice depends on the shape, the device and the library only, never on addresses or free
 * memory, and only algorithms with a fixed order of summation qualify: the same product gives the
 * same bits under every budget. */
#ifndef LS_CUBLASLT_H
#define LS_CUBLASLT_H

#include "runtime/cuda/cublaslt_matmul.h"
#include "runtime/cuda/ls_cuda_run.h"

/* Puts one product on the stream of the run. */
void ls_cuda_matmul(LsRun *run, const LsCudaMatmul *p, void *const arg[]);

/* Row of LsCudaProgram.use; its data is NULL. */
extern const LsCudaLibrary ls_cublaslt;

#endif
