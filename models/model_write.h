/* models/model_write.h -- a built network into an ONNX file, in one pass and constant memory. */
#ifndef LS_MODELS_MODEL_WRITE_H
#define LS_MODELS_MODEL_WRITE_H

#include "models/build.h"

typedef enum {
    LS_WEIGHTS_RANDOM = 1,      /* in the file; beside it, as EXTERNAL, past protobuf's 2 GiB */
    LS_WEIGHTS_EXTERNAL,        /* in FILE.weights beside FILE.onnx */
    LS_WEIGHTS_NONE,            /* they refer to FILE.weights, and no such file is written */
} LsWeightsPlace;

typedef struct LsModelFile {
    const char *path;           /* of the .onnx file */
    const char *name, *doc;     /* of the graph; a sentence on how it was made */
    uint64_t seed;
    LsWeightsPlace weights;
} LsModelFile;

/* False with b->err set when something cannot be written; what was begun is removed then.
 * The bytes depend on the network, the seed and the file's name alone. */
bool ls_model_save(LsBuild *b, const LsModelFile *f);

#endif
