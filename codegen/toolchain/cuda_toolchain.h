/* codegen/toolchain/cuda_toolchain.h -- compiles a program's device text to code for GPUs: by NVRTC
 * if it is found, else by nvcc. */
#ifndef LS_CODEGEN_TOOLCHAIN_CUDA_TOOLCHAIN_H
#define LS_CODEGEN_TOOLCHAIN_CUDA_TOOLCHAIN_H

#include "compiler/ir/diag.h"

enum { LS_CUDA_ARCHS = 12 };
enum { LS_CUDA_OLDEST_ARCH = 75, LS_CUDA_PTX_ARCH = 80 };

typedef struct LsCudaArch {
    int number;                 /* 90: compute capability 9.0 */
    bool exact;                 /* 90a: uses features of this one alone, and runs on no other */
} LsCudaArch;

typedef struct LsCudaArchs {
    LsCudaArch arch[LS_CUDA_ARCHS]; int n;      /* targets of machine code, in rising order */
    int ptx;                    /* target of the PTX, which serves all later ones */
    const char *text;           /* for people: "sm_80, sm_90a, PTX compute_80" */
} LsCudaArchs;

/* Reads the architectures. option: "90a", "80,sm_86,90a"; NULL: that of this machine's device, else
 * 90a. False after a diagnostic. */
bool ls_cuda_archs(LsCtx *cx, const char *option, LsCudaArchs *archs);

typedef struct LsCudaTool {
    LsCudaArchs archs;
    const char *nvcc;           /* NULL: NVRTC if it is found, else $NVCC, else nvcc */
    bool lines;                 /* line numbers for profilers */
    bool verbose, dry_run;      /* print the commands; do not run them */
} LsCudaTool;

/* Compiles DIR/BASE.cu to DIR/BASE.fatbin; include: the folder that contains runtime/. False after
 * a diagnostic, which names the kernel if it does not compile. Removes intermediate files from
 * DIR. */
bool ls_cuda_build(LsCtx *cx, const LsCudaTool *t, const char *dir, const char *base,
                   const char *include);

#endif
