/* runtime/cuda/cublaslt.h -- the library behind ls_cublaslt.h, which asks for no device itself: tests
 * put another one in its place. */
#ifndef LS_CUBLASLT_PRODUCTS_H
#define LS_CUBLASLT_PRODUCTS_H

#include "runtime/base/run_error.h"
#include "runtime/cuda/cublaslt_matmul.h"
#include "runtime/cuda/stopwatch.h"

#include <stdio.h>

typedef struct LsCublas LsCublas;

typedef struct LsCublasSetup {
    const char *library;        /* path; NULL: libcublasLt.so.13, then .12, as the loader finds
                                 * them, else in the toolkit */
    const char *device;         /* name, e.g. "NVIDIA H200" */
    const char *cache;          /* folder of kept choices, made when missing; NULL: none is kept */
    const LsStopwatch *tune;    /* not NULL: the first candidates are timed, and the fastest is
                                 * taken and kept */
    FILE *notes;                /* where it is said what the library does not do; NULL: nowhere */
} LsCublasSetup;

/* Opens the library for the current device. Without the library, with one of another version or
 * without a device: false, LS_EXIT_DEVICE, and a sentence that names the file. */
bool ls_cublas_open(LsCublas **to, const LsCublasSetup *setup, LsError *e);
/* Keeps new choices and closes; NULL is allowed. */
void ls_cublas_close(LsCublas *b);
/* "libcublasLt.so.13 13.1.0" */
const char *ls_cublas_name(const LsCublas *b);

/* From now on (not NULL) candidates are timed when a product first runs, as by LsCublasSetup. */
void ls_cublas_tune(LsCublas *b, const LsStopwatch *watch);

/* Puts one product on the stream (a cudaStream_t). p must outlive b: its address is its name. run:
 * for p->behind, which does what the library cannot; node: that this is noted of, or NULL. */
bool ls_cublas_multiply(LsCublas *b, LsRun *run, const LsCudaMatmul *p, void *const arg[],
                        const char *node, void *stream, LsError *e);

#endif
