/* compiler/adapters/safetensors.h -- reads a safetensors file (github huggingface/safetensors). */
#ifndef LS_COMPILER_ADAPTERS_SAFETENSORS_H
#define LS_COMPILER_ADAPTERS_SAFETENSORS_H

#include "compiler/ir/diag.h"

typedef struct LsSafeTensor {
    const char *name;
    int rank;
    int64_t dim[8];
    const float *data;          /* F16 and BF16 are widened; in the arena */
    bool used;                  /* by whoever reads the file */
} LsSafeTensor;

typedef struct LsSafeTensors {
    const char *path;
    LsSafeTensor *item; uint32_t n;
} LsSafeTensors;

/* Reads all of the file, whose tensors are reals. NULL after a diagnostic. */
LsSafeTensors *ls_safetensors_read(LsCtx *cx, const char *path);
/* NULL: there is no such tensor. */
LsSafeTensor *ls_safetensors_find(const LsSafeTensors *s, const char *name);

#endif
