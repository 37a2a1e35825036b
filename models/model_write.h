/* models/model_write.h -- writes a built network to an ONNX file, in one pass and constant
 * memory. */
#ifndef LS_MODELS_MODEL_WRITE_H
#define LS_MODELS_MODEL_WRITE_H

#include "models/build.h"

typedef enum {
    LS_WEIGHTS_RANDOM = 1,      /* in the file; beyond protobuf's 2 GiB beside it, as EXTERNAL */
    LS_WEIGHTS_EXTERNAL,        /* in FILE.weights beside FILE.onnx */
    LS_WEIGHTS_NONE,            /* the file refers to FILE.weights, which is not written */
} LsWeightsPlace;

typedef struct LsModelFile {
    const char *path;           /* of the .onnx file */
    const char *name, *doc;     /* of the graph; a sentence on its origin */
    uint64_t seed;
    LsWeightsPlace weights;
} LsModelFile;

/* False with b->err set when a file cannot be written; the incomplete file is then removed. The
 * bytes depend on the network, the seed and the file's name only. */
bool ls_model_save(LsBuild *b, const LsModelFile *f);

#endif
