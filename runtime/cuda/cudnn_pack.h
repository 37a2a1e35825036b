/* runtime/cuda/cudnn_pack.h -- the addresses of a convolution's tensors in the form that cuDNN takes
 * ("variant packs"), made once for each set of them. */
#ifndef LS_CUDNN_PACK_H
#define LS_CUDNN_PACK_H

#include "runtime/base/run_error.h"
#include "runtime/cuda/cudnn_conv_step.h"
#include "runtime/cuda/cudnn_library.h"

typedef struct LsDnnPacks {     /* of one convolution; zeros: none yet */
    struct LsDnnPack *pack; int n, cap;
} LsDnnPacks;

/* The pack for the arguments of a step: few are made, as equal steps share a convolution. alone: for
 * a plan of the convolution alone. NULL with a sentence in e. */
LsDnnDesc ls_dnn_pack(LsDnnPacks *p, const LsDnn *lib, const LsCudaConv *c, bool alone,
                      void *const arg[], LsError *e);
void ls_dnn_packs_drop(LsDnnPacks *p, const LsDnn *lib);

#endif
