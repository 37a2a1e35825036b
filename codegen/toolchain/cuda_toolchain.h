/* codegen/toolchain/cuda_toolchain.h -- from the device text of a program to code for GPUs: by NVRTC where it
 * is found, else by nvcc. */
#ifndef LS_CODEGEN_TOOLCHAIN_CUDA_TOOLCHAIN_H
#define LS_CODEGEN_TOOLCHAIN_CUDA_TOOLCHAIN_H

#include "compiler/ir/diag.h"

enum { LS_CUDA_ARCHS = 12 };
enum { LS_CUDA_OLDEST_ARCH = 75, LS_CUDA_PTX_ARCH = 80 };

typedef struct LsCudaArch {
    int number;                 /* 90: compute capability 9.0 */
    bool exact;                 /* 90a: also what only this one has, and for no other */
} LsCudaArch;

typedef struct LsCudaArchs {
    LsCudaArch arch[LS_CUDA_ARCHS]; int n;      /* code is made for these, rising */
    int ptx;                    /* and PTX for this one: it serves all later ones */
    const char *text;           /* for people: "sm_80, sm_90a, PTX compute_80" */
} LsCudaArchs;

/* option: "90a", "80,sm_86,90a", NULL: that of the device of this machine, else 90a. False after a
 * diagnostic. */
bool ls_cuda_archs(LsCtx *cx, const char *option, LsCudaArchs *archs);

typedef struct LsCudaTool {
    LsCudaArchs archs;
    const char *nvcc;           /* NULL: NVRTC if it is found, else $NVCC, else nvcc */
    bool lines;                 /* line numbers for profilers */
    bool verbose, dry_run;      /* say what is done; do nothing */
} LsCudaTool;

/* Turns DIR/BASE.cu into DIR/BASE.fatbin; include: the folder that has runtime/ in it. False after a diagnostic,
 * which has the kernel's name when it does not compile. Files in DIR made on the way are removed.
 */
bool ls_cuda_build(LsCtx *cx, const LsCudaTool *t, const char *dir, const char *base,
                   const char *include);

#endif
