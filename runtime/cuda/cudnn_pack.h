/* runtime/cuda/cudnn_pack.h -- cuDNN's variant packs: the addresses of a convolution's tensors,
 * made once for each set of addresses. */
#ifndef LS_CUDNN_PACK_H
#define LS_CUDNN_PACK_H

#include "runtime/base/run_error.h"
#include "runtime/cuda/cudnn_conv_step.h"
#include "runtime/cuda/cudnn_library.h"

typedef struct LsDnnPacks {     /* of one convolution; zeros: none yet */
    struct LsDnnPack *pack; int n, cap;
} LsDnnPacks;

/* The pack for the arguments of a step. Packs are few, as equal steps share a convolution. alone:
 * for a plan without epilogue. NULL with a sentence in e. */
LsDnnDesc ls_dnn_pack(LsDnnPacks *p, const LsDnn *lib, const LsCudaConv *c, bool alone,
                      void *const arg[], LsError *e);
void ls_dnn_packs_drop(LsDnnPacks *p, const LsDnn *lib);

#endif
