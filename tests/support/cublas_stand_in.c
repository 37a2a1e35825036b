/* tests/support/cublas_stand_in.c -- see cublas_stand_in.h. Apart from the tests, because compiler
 * and runtime have exit codes of the same names. */
#include "tests/support/cublas_stand_in.h"

#include "runtime/cuda/cublaslt.h"

#include <stdio.h>
#include <stdlib.h>

static LsCublas *cublas;

static void insist(bool ok, const LsError *e)
{
    if (!ok) {
        fprintf(stderr, "%s\n", e->text);
        abort();
    }
}

void stand_in_open(const char *library)
{
    LsError e = {0};
    const LsCublasSetup setup = {.library = library, .device = "x"};
    insist(ls_cublas_open(&cublas, &setup, &e), &e);
}

void stand_in_close(void) { ls_cublas_close(cublas); }

void ls_cuda_matmul(LsRun *run, const LsCudaMatmul *p, void *const arg[])
{
    LsError e = {0};
    insist(ls_cublas_multiply(cublas, run, p, arg, "n", NULL, &e), &e);
}
