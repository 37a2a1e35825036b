/* codegen/toolchain/cuda_probe.h -- finds this machine's CUDA devices, driver and libraries. The
 * libraries are not linked but opened at run time, in a process of its own, so a broken driver
 * breaks nothing here. */
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
    int nvrtc;                  /* version, 10 major + minor; 0: not found */
    int cudnn;                  /* 10000 major + 100 minor + patch; 0: not found */
    int cublaslt;               /* as cudnn */
} LsCudaFound;

/* libraries: look for the libraries, too, which takes longer. */
void ls_cuda_probe(LsCudaFound *f, bool libraries);
/* The first device's architecture: "90a", "86"; NULL: there is no device. */
const char *ls_cuda_device_arch(LsArena *a);
/* The folder of the CUDA toolkit: $CUDA_HOME, $CUDA_PATH, the folder set at build time, or the
 * usual place. NULL: there is none. */
const char *ls_cuda_home(LsArena *a);
/* Prints the lines of `lowerset targets` about CUDA. */
void ls_cuda_report(LsArena *a, FILE *to);

#endif
