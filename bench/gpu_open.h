/* bench/gpu_open.h -- opens cuDNN and the measured device: the machine's device, or a described
 * device. */
#ifndef LS_BENCH_GPU_OPEN_H
#define LS_BENCH_GPU_OPEN_H

#include "runtime/cuda/cudnn_conv.h"

#include <stdio.h>

/* description: a file of cuDNN's text; NULL: device 0, and a handle for it. False with a sentence
 * in err. */
static inline bool gpu_open(LsDnn *lib, const char *description, LsDnnDesc *device, void **handle,
                            char *err, size_t size)
{
    static char text[1 << 16];
    if (!ls_dnn_open(lib, err, size))
        return false;
    if (description != NULL) {
        FILE *f = fopen(description, "r");
        size_t n = f != NULL ? fread(text, 1, sizeof text - 1, f) : 0;
        if (f != NULL)
            fclose(f);
        text[n] = '\0';
        *device = ls_dnn_device_of_json(lib, text, err, size);
        return *device != NULL;
    }
    *device = ls_dnn_device_of_id(lib, 0, err, size);
    if (*device != NULL && lib->api.Create(handle) != LS_DNN_OK) {
        snprintf(err, size, "no handle of cuDNN");
        return false;
    }
    return *device != NULL;
}

#endif
