/* runtime/data/weight_files.h -- named tensors of safetensors files (github
 * huggingface/safetensors): one file, or several with an index. */
#ifndef LS_RUNTIME_DATA_WEIGHT_FILES_H
#define LS_RUNTIME_DATA_WEIGHT_FILES_H

#include "runtime/data/npy.h"

enum { LS_WEIGHT_RANK = LS_TENSOR_RANK + 1 };   /* members of an ensemble have an axis of their
                                                 * own */

typedef struct LsWeight {
    const char *name;
    char dtype[12];             /* as the file has it: "BF16" */
    bool is_real;               /* array.type says how its elements are read; else they are not */
    LsArray array;              /* data, type and count; its shape is `dim` */
    int rank;                   /* LS_WEIGHT_RANK + 1: more axes than that */
    int64_t dim[LS_WEIGHT_RANK];
    int file;
    bool used;                  /* by whoever reads */
} LsWeight;

typedef struct LsWeightFiles {
    LsWeight *item; int64_t n;  /* by name */
    LsFile *file; int nfile;
    char **text; int ntext;     /* paths and names */
} LsWeightFiles;

/* path: a file, an index (model.safetensors.index.json), or a folder with one of both. An unusable
 * file is an LS_EXIT_DATA error that names it. Close in any case. */
bool ls_weights_open(LsWeightFiles *w, const char *path, LsError *e);
void ls_weights_close(LsWeightFiles *w);
/* NULL: there is no such tensor. */
LsWeight *ls_weights_find(const LsWeightFiles *w, const char *name);
/* The tensors of one file in memory; f->path names it. */
bool ls_weights_read(LsWeightFiles *w, const LsFile *f, LsError *e);

#endif
