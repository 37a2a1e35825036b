/* runtime/trainer/state_floats.h -- the elements of a state tensor as float32, in the order of the
 * ONNX file: whatever its layout is, and whether they are reals or codes. */
#ifndef LS_RUNTIME_TRAINER_STATE_FLOATS_H
#define LS_RUNTIME_TRAINER_STATE_FLOATS_H

#include "runtime/base/tensor_copy.h"
#include "runtime/engine/program_memory.h"

typedef struct LsStateFloats {
    const LsStateTensor *s;
    int real_bytes;
    const void *from;           /* the tensor, or a copy of it until another one is looked at */
    LsWalk walk;
    int64_t next;
} LsStateFloats;

LsStateFloats ls_state_floats(const LsMemory *m, const LsStateTensor *s);
/* The next n. */
void ls_state_floats_take(LsStateFloats *f, float *to, int64_t n);

#endif
