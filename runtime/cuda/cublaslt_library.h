/* runtime/cuda/cublaslt_library.h -- the functions of libcublasLt in use, loaded at run time. */
#ifndef LS_CUBLASLT_LIBRARY_H
#define LS_CUBLASLT_LIBRARY_H

#include "runtime/base/run_error.h"

#include <cublasLt.h>

#define LS_CUBLASLT_FUNCTIONS(F)                                                                   \
    F(Create) F(Destroy) F(GetVersion) F(GetStatusString)                                          \
    F(MatmulDescCreate) F(MatmulDescDestroy) F(MatmulDescSetAttribute)                             \
    F(MatrixLayoutCreate) F(MatrixLayoutDestroy) F(MatrixLayoutSetAttribute)                       \
    F(MatmulPreferenceCreate) F(MatmulPreferenceDestroy) F(MatmulPreferenceSetAttribute)           \
    F(MatmulAlgoGetHeuristic) F(MatmulAlgoCheck) F(Matmul)

typedef struct LsCublasLibrary {
    void *so;
    char name[64];              /* file and version: "libcublasLt.so.13 13.1.0" */
#define LS_MEMBER(name) __typeof__(&cublasLt##name) name;
    LS_CUBLASLT_FUNCTIONS(LS_MEMBER)
#undef LS_MEMBER
} LsCublasLibrary;

/* path: NULL for the usual names, from the loader's paths, else from the toolkit. False with
 * LS_EXIT_DEVICE: no library found, or it is too old. */
bool ls_cublas_library_open(LsCublasLibrary *l, const char *path, LsError *e);
void ls_cublas_library_close(LsCublasLibrary *l);

#endif
