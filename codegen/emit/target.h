/* codegen/emit/target.h -- the target that a program is compiled for. */
#ifndef LS_CODEGEN_EMIT_TARGET_H
#define LS_CODEGEN_EMIT_TARGET_H

#include <stdbool.h>

typedef enum { LS_TARGET_CPU, LS_TARGET_CUDA, LS_NTARGETS } LsTargetKind;

enum { LS_GPU_PROCESSORS = 132 };       /* multiprocessors of a large GPU */

/* The order in which products of bfloat16 add up (runtime/kernels/ls_dot16.h); 0: the C compiler's
 * target decides. */
typedef enum { LS_DOTS_AUTO, LS_DOTS_PAIRS, LS_DOTS_TILES } LsDotSums;

typedef struct LsTarget {
    LsTargetKind kind;
    int real_bytes;             /* bytes of a real number: 4 or 8 */
    bool direct;                /* CPU: convolutions sum term by term, without Winograd's algorithm
                                 * (which exists for float only) */
    double dot_rate;            /* CPU: speed of products of bfloat16 relative to those of f32; 0:
                                 * not known, 1 */
    LsDotSums sums;             /* CPU */
    bool tf32;                  /* CUDA: products of floats may round their factors to TF32 */
    const char *device;         /* CUDA: the machine that plans are made for, "h200" */
    struct LsConvPlanner *convs;        /* CUDA: chooses cuDNN's engines (cuda/conv_plan.h);
                                         * NULL: workspaces are estimates */
} LsTarget;

/* The CPU with default choices. */
static inline LsTarget ls_target_cpu(int real_bytes)
{
    return (LsTarget){.kind = LS_TARGET_CPU, .real_bytes = real_bytes};
}

#endif
