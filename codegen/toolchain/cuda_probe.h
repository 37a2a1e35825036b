/* codegen/toolchain/cuda_probe.h -- what of CUDA this machine has: devices, driver, libraries. Nothing is
 * linked: everything is opened, in a process of its own, so that a broken driver breaks nothing
 * here. */
#ifndef LS_CODEGEN_TOOLCHAIN_CUDA_PROBE_H
#define LS_CODEGEN_TOOLCHAIN_CUDA_PROBE_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { LS_CUDA_DEVICES = 16 };
typedef struct LsCudaFound {
    int driver;                 /* CUDA version, 1000 major + 10 minor; 0: no driver */
    int ndevice;
    struct { char name[96]; int major, minor; int64_t bytes; } device[LS_CUDA_DEVICES];
    int nvrtc;                  /* 10 major + minor; 0: not found; likewise below: */
    int cudnn;                  /* 10000 major + 100 minor + patch */
    int cublaslt;               /* the same */
} LsCudaFound;

/* libraries: look for those too, which takes longer. */
void ls_cuda_probe(LsCudaFound *f, bool libraries);
/* Of the first device: "90a", "86"; NULL: there is none. */
const char *ls_cuda_device_arch(LsArena *a);
/* The toolkit's folder that is used: $CUDA_HOME, $CUDA_PATH, where this program was built with, or
 * the usual place. NULL: there is none. */
const char *ls_cuda_home(LsArena *a);
/* What `lowerset targets` says of it. */
void ls_cuda_report(LsArena *a, FILE *to);

#endif
