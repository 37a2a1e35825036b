/* runtime/cuda/cudnn_graph.h -- descriptors of cuDNN's graph API, made in sequence and dropped
 * together. After the first failure all calls do nothing: check once, at the end. */
#ifndef LS_CUDNN_GRAPH_H
#define LS_CUDNN_GRAPH_H

#include "runtime/cuda/cudnn_library.h"
#include "runtime/cuda/cudnn_shape.h"

/* uids of tensors in graphs and plans */
enum {
    LS_DNN_X = 1, LS_DNN_W, LS_DNN_Y, LS_DNN_B, LS_DNN_MASK, LS_DNN_SUM, LS_DNN_SQUARES,
};

typedef struct LsDnnScope {
    const LsDnn *lib;
    LsDnnDesc *desc; int ndesc, cap;
    bool failed;
    char err[400];              /* the sentence of the first failure */
} LsDnnScope;

/* A new descriptor of this type; NULL after a failure. what: named in the error sentence. */
LsDnnDesc ls_dnn_make(LsDnnScope *s, int type);
void ls_dnn_set(LsDnnScope *s, LsDnnDesc d, int name, int type, int64_t n, const void *value);
void ls_dnn_set_desc(LsDnnScope *s, LsDnnDesc d, int name, LsDnnDesc value);
void ls_dnn_set_int(LsDnnScope *s, LsDnnDesc d, int name, int64_t value);
void ls_dnn_finalize(LsDnnScope *s, LsDnnDesc d, const char *what);
void ls_dnn_scope_drop(LsDnnScope *s);
/* Drops a descriptor that was taken out of its scope; NULL is allowed. */
void ls_dnn_drop(const LsDnn *lib, LsDnnDesc desc);
/* "WHAT: bad parameter (cuDNN's own words)". */
void ls_dnn_describe(const LsDnn *lib, const char *what, int status, char *err, size_t size);

/* The finalised operation graph of a convolution. */
LsDnnDesc ls_dnn_conv_graph(LsDnnScope *s, const LsDnnConv *c);

#endif
