/* runtime/ls_kernel.h -- the primitives that generated kernels are written in, for the CPU.
 *
 * Included once by every generated program, before any kernel, with LS_F64 defined or not. Everything is
 * static and needs only <math.h> and <stdint.h>, so a generated file is one translation unit that the C
 * compiler sees whole. */
#ifndef LS_KERNEL_H
#define LS_KERNEL_H

#include "ls_program.h"

#include <math.h>
#include <string.h>

#ifdef LS_F64
typedef double real;
#else
typedef float real;
#endif
#define LS_R(x) ((real)(x))

#endif
