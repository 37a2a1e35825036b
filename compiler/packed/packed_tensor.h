/* compiler/packed/packed_tensor.h -- weights that a program keeps in few bits: those whose codes
 * are in the file, and those whose codes are made of their values. */
#ifndef LS_COMPILER_PACKED_PACKED_TENSOR_H
#define LS_COMPILER_PACKED_PACKED_TENSOR_H

#include "base/arena.h"
#include "compiler/ir/packed.h"
#include "compiler/ir/types.h"

#include <stdio.h>

/* Reals as a file has them, at any address. */
typedef enum { LS_STORED_AS_F32, LS_STORED_AS_BF16, LS_STORED_AS_F16 } LsStoredAs;
typedef struct LsStoredReals { const unsigned char *bytes; LsStoredAs as; } LsStoredReals;

typedef struct LsPackedTensor {
    const char *name;           /* of the weight */
    LsPackedCodes codes;
    bool asked;                 /* by its name: an error where the weight is trained */
    const uint8_t *code;        /* of the file; NULL: they are made of `values` */
    const unsigned char *scale; /* floats, at any address; with `code` */
    const uint8_t *zero;        /* a byte for each scale; with codes.zeros */
    LsStoredReals values;
    LsShape shape;              /* of the weight */
    bool used;                  /* the program keeps it so: it is not trained, and read */
} LsPackedTensor;

/* A compilation's packed tensors. */
typedef struct LsPackedTensors {
    LsArena *arena;
    LsPackedTensor **tensor; uint32_t n, cap;
} LsPackedTensors;

/* A copy of t, in the list. */
LsPackedTensor *ls_packed_add(LsPackedTensors *all, const LsPackedTensor *t);
/* NULL: there is none of that name; `all` may be NULL. */
LsPackedTensor *ls_packed_named(const LsPackedTensors *all, const char *name);

/* Elements from .. from + n of stored reals. */
void ls_stored_floats(const LsStoredReals *r, int64_t from, int64_t n, float *to);
/* What the file's codes stand for: all elements. */
void ls_packed_values(const LsPackedTensor *t, float *to);
/* Writes all parts (ls_packed_parts). `values` are read once, in order, and let go of. False: errno
 * says why. */
bool ls_packed_write(const LsPackedTensor *t, LsArena *a, FILE *to);

#endif
