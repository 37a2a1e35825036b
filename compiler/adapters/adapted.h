/* compiler/adapters/adapted.h -- a module with its adapter. */
#ifndef LS_COMPILER_ADAPTERS_ADAPTED_H
#define LS_COMPILER_ADAPTERS_ADAPTED_H

#include <stdbool.h>
#include <stdint.h>

/* An adapted weight: W becomes W + scale * B A, in the weight's layout. */
typedef struct LsAdapted {
    const char *module;
    const char *weight, *a, *b;         /* names of tensors */
    const char *magnitude;              /* of DoRA; else NULL */
    int64_t rank, in, out;
    double scale;
    bool turned;                        /* the weight is [in, out] */
} LsAdapted;

/* The end of the name of the norms of DoRA, whose gradient is no part of the loss's. */
#define LS_DORA_NORM ".lora_norm"

#endif
