/* codegen/emit/target.h -- what a program is made for. */
#ifndef LS_CODEGEN_EMIT_TARGET_H
#define LS_CODEGEN_EMIT_TARGET_H

#include <stdbool.h>

typedef enum { LS_TARGET_CPU, LS_TARGET_CUDA, LS_NTARGETS } LsTargetKind;

enum { LS_GPU_PROCESSORS = 132 };       /* multiprocessors of a large GPU */

typedef struct LsTarget {
    LsTargetKind kind;
    int real_bytes;             /* of a real number: 4, or 8 */
    bool direct;                /* CPU: convolutions sum term by term, never Winograd's algorithm
                                 * (which is for float only in any case) */
    bool tf32;                  /* CUDA: products of floats may round their factors to TF32 */
    const char *device;         /* CUDA: the machine whose description plans are made by, "h200" */
    struct LsConvPlanner *convs;        /* CUDA: who chooses engines of cuDNN (cuda/conv_plan.h);
                                         * NULL: workspaces are estimates */
} LsTarget;

/* The CPU, and no choices made. */
static inline LsTarget ls_target_cpu(int real_bytes)
{
    return (LsTarget){.kind = LS_TARGET_CPU, .real_bytes = real_bytes};
}

#endif
