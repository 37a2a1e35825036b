/* runtime/cuda/cublaslt.h -- products by cuBLASLt, behind ls_cublaslt.h. This layer does not ask
 * for a device, so tests can substitute the library. */
#ifndef LS_CUBLASLT_PRODUCTS_H
#define LS_CUBLASLT_PRODUCTS_H

#include "runtime/base/run_error.h"
#include "runtime/cuda/cublaslt_matmul.h"
#include "runtime/cuda/stopwatch.h"

#include <stdio.h>

typedef struct LsCublas LsCublas;

typedef struct LsCublasSetup {
    const char *library;        /* path; NULL: libcublasLt.so.13, then .12, from the loader's paths,
                                 * else from the toolkit */
    const char *device;         /* name, e.g. "NVIDIA H200" */
    const char *cache;          /* folder of cached choices, created if missing; NULL: no cache */
    const LsStopwatch *tune;    /* not NULL: the first candidates are timed; the fastest is used and
                                 * cached */
    FILE *notes;                /* receives notes on operations that the library lacks; NULL: no
                                 * notes */
} LsCublasSetup;

/* Opens the library for the current device. False with LS_EXIT_DEVICE and a sentence that names the
 * file when the library is missing or has another version, or there is no device. */
bool ls_cublas_open(LsCublas **to, const LsCublasSetup *setup, LsError *e);
/* Caches new choices and closes; NULL is allowed. */
void ls_cublas_close(LsCublas *b);
/* "libcublasLt.so.13 13.1.0" */
const char *ls_cublas_name(const LsCublas *b);

/* From now on (watch not NULL) the first run of a product times the candidates, as with
 * LsCublasSetup.tune. */
void ls_cublas_tune(LsCublas *b, const LsStopwatch *watch);

/* Puts one product on the stream (a cudaStream_t). p must outlive b: its address identifies the
 * product. run: for p->behind, which does the part that the library cannot do; node: named in
 * notes, or NULL. */
bool ls_cublas_multiply(LsCublas *b, LsRun *run, const LsCudaMatmul *p, void *const arg[],
                        const char *node, void *stream, LsError *e);

#endif
