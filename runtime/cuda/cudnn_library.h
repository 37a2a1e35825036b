/* runtime/cuda/cudnn_library.h -- opening cuDNN. */
#ifndef LS_CUDNN_LIBRARY_H
#define LS_CUDNN_LIBRARY_H

#include "runtime/cuda/cudnn_abi.h"

#include <stdbool.h>

typedef struct LsDnn {          /* an open library */
    LsDnnApi api;
    void *library;              /* of dlopen */
    int64_t version;            /* 91900: 9.19.0 */
    char file[512];             /* that was opened */
} LsDnn;

/* Opens the file that the environment variable LOWERSET_CUDNN names, else libcudnn.so.9 where the
 * loader finds it, else in the folders of the CUDA toolkit. False with a sentence in err that says
 * which file it is about: nothing found, older than 9, without the graph API. Needs no driver and
 * no device. */
bool ls_dnn_open(LsDnn *lib, char *err, size_t size);
void ls_dnn_close(LsDnn *lib);

#endif
