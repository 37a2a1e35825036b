/* compiler/onnx_file/onnx_skim.h -- a model's bytes without the data of its large initializers. */
#ifndef LS_COMPILER_ONNX_FILE_ONNX_SKIM_H
#define LS_COMPILER_ONNX_FILE_ONNX_SKIM_H

#include <stdbool.h>

#include "base/arena.h"
#include "onnx.pb-c.h"

typedef struct LsSlim {
    unsigned char *bytes; size_t n;
    struct LsSlimPart *part; uint32_t npart;    /* the parts that were cut out */
} LsSlim;

/* bytes: a well-formed ModelProto, which must stay in place. False: nothing to cut out. */
bool ls_slim(LsArena *a, const unsigned char *bytes, size_t n, LsSlim *s);
/* Gives the unpacked graph's initializers their data back, pointing into the original bytes. */
void ls_slim_restore(const LsSlim *s, Onnx__GraphProto *g);

#endif
