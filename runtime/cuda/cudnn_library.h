/* runtime/cuda/cudnn_library.h -- opening cuDNN. */
#ifndef LS_CUDNN_LIBRARY_H
#define LS_CUDNN_LIBRARY_H

#include "runtime/cuda/cudnn_abi.h"

#include <stdbool.h>

typedef struct LsDnn {          /* an open library */
    LsDnnApi api;
    void *library;              /* handle of dlopen */
    int64_t version;            /* e.g. 91900 for 9.19.0 */
    char file[512];             /* the opened file */
} LsDnn;

/* Opens the file named by the environment variable LOWERSET_CUDNN, else libcudnn.so.9 from the
 * loader's paths, else from the folders of the CUDA toolkit. False with a sentence in err that
 * names the file: not found, older than 9, without the graph API. Needs no driver and no device. */
bool ls_dnn_open(LsDnn *lib, char *err, size_t size);
void ls_dnn_close(LsDnn *lib);

#endif
