/* runtime/cuda/cudnn_graph.h -- descriptors of cuDNN's graph API, made in a row and dropped
 * together. After the first failure all calls do nothing: check once, at the end. */
#ifndef LS_CUDNN_GRAPH_H
#define LS_CUDNN_GRAPH_H

#include "runtime/cuda/cudnn_conv.h"

typedef struct LsDnnScope {
    const LsDnn *lib;
    LsDnnDesc *desc; int ndesc, cap;
    bool failed;
    char err[400];              /* the sentence of the first failure */
} LsDnnScope;

/* A new descriptor of this type; NULL after a failure. what: for the sentence. */
LsDnnDesc ls_dnn_make(LsDnnScope *s, int type);
void ls_dnn_set(LsDnnScope *s, LsDnnDesc d, int name, int type, int64_t n, const void *value);
void ls_dnn_set_desc(LsDnnScope *s, LsDnnDesc d, int name, LsDnnDesc value);
void ls_dnn_set_int(LsDnnScope *s, LsDnnDesc d, int name, int64_t value);
void ls_dnn_finalize(LsDnnScope *s, LsDnnDesc d, const char *what);
void ls_dnn_scope_drop(LsDnnScope *s);
/* "WHAT: bad parameter (cuDNN's own words)". */
void ls_dnn_describe(const LsDnn *lib, const char *what, int status, char *err, size_t size);

/* The finalised operation graph of a convolution. */
LsDnnDesc ls_dnn_conv_graph(LsDnnScope *s, const LsDnnConv *c);

#endif
