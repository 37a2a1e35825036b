/* runtime/cuda/cudnn_graph.c -- see cudnn_graph.h. */
#include "runtime/cuda/cudnn_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ls_dnn_describe(const LsDnn *lib, const char *what, int status, char *err, size_t size)
{
    char more[200] = "";
    lib->api.GetLastErrorString(more, sizeof more);
    more[strcspn(more, "\n")] = '\0';
    const char *name = lib->api.GetErrorString(status);
    snprintf(err, size, "%s: %s%s%s", what, name != NULL ? name : "unknown error",
             more[0] != '\0' ? ": " : "", more);
}

static void note(LsDnnScope *s, int status, const char *what)
{
    if (status == LS_DNN_OK || s->failed)
        return;
    s->failed = true;
    ls_dnn_describe(s->lib, what, status, s->err, sizeof s->err);
}

LsDnnDesc ls_dnn_make(LsDnnScope *s, int type)
{
    if (s->failed)
        return NULL;
    if (s->ndesc == s->cap) {
        int cap = s->cap > 0 ? 2 * s->cap : 32;
        LsDnnDesc *more = realloc(s->desc, (size_t)cap * sizeof *more);
        if (more == NULL) {
            s->failed = true;
            snprintf(s->err, sizeof s->err, "out of memory");
            return NULL;
        }
        s->desc = more;
        s->cap = cap;
    }
    LsDnnDesc d = NULL;
    note(s, s->lib->api.BackendCreateDescriptor(type, &d), "descriptor");
    if (s->failed)
        return NULL;
    return s->desc[s->ndesc++] = d;
}

void ls_dnn_set(LsDnnScope *s, LsDnnDesc d, int name, int type, int64_t n, const void *value)
{
    if (!s->failed)
        note(s, s->lib->api.BackendSetAttribute(d, name, type, n, value), "attribute");
}

void ls_dnn_set_desc(LsDnnScope *s, LsDnnDesc d, int name, LsDnnDesc value)
{
    ls_dnn_set(s, d, name, LS_DNN_T_DESC, 1, &value);
}

void ls_dnn_set_int(LsDnnScope *s, LsDnnDesc d, int name, int64_t value)
{
    ls_dnn_set(s, d, name, LS_DNN_T_INT64, 1, &value);
}

void ls_dnn_finalize(LsDnnScope *s, LsDnnDesc d, const char *what)
{
    if (!s->failed)
        note(s, s->lib->api.BackendFinalize(d), what);
}

void ls_dnn_drop(const LsDnn *lib, LsDnnDesc desc)
{
    if (desc != NULL)
        lib->api.BackendDestroyDescriptor(desc);
}

void ls_dnn_scope_drop(LsDnnScope *s)
{
    while (s->ndesc > 0)
        ls_dnn_drop(s->lib, s->desc[--s->ndesc]);
    free(s->desc);
    s->desc = NULL;
    s->cap = 0;
}

/* ---- operations ---- */
enum { ALIGNMENT = 64, ANY_UID = 100 };     /* bytes, of every address; uids of virtual tensors */

/* Of sums, and of tensors inside the graph. */
static int compute_type(const LsDnnConv *c)
{
    return c->real_bytes == 8 ? LS_DNN_DOUBLE : LS_DNN_FLOAT;
}

/* Of tensors in memory. */
static int stored_type(const LsDnnConv *c)
{
    return c->real_bytes != 2 ? compute_type(c) : c->brain ? LS_DNN_BRAIN : LS_DNN_HALF;
}

/* A channels-last tensor. uid from ANY_UID on: a virtual tensor, internal to the graph. */
static LsDnnDesc tensor(LsDnnScope *s, const LsDnnConv *c, int64_t uid, const int64_t dim[])
{
    bool inner = uid >= ANY_UID;
    int rank = 2 + c->axes, type = inner ? compute_type(c) : stored_type(c);
    int64_t stride[LS_DNN_RANK];
    int64_t step = dim[1];
    for (int k = rank - 1; k >= 2; k--) {
        stride[k] = step;
        step *= dim[k];
    }
    stride[0] = step;
    stride[1] = 1;
    LsDnnDesc d = ls_dnn_make(s, LS_DNN_TENSOR);
    ls_dnn_set_int(s, d, LS_DNN_TENSOR_UID, uid);
    ls_dnn_set_int(s, d, LS_DNN_TENSOR_ALIGNMENT, ALIGNMENT);
    ls_dnn_set(s, d, LS_DNN_TENSOR_TYPE, LS_DNN_T_DATA_TYPE, 1, &type);
    ls_dnn_set(s, d, LS_DNN_TENSOR_DIMS, LS_DNN_T_INT64, rank, dim);
    ls_dnn_set(s, d, LS_DNN_TENSOR_STRIDES, LS_DNN_T_INT64, rank, stride);
    ls_dnn_set(s, d, LS_DNN_TENSOR_VIRTUAL, LS_DNN_T_BOOLEAN, 1, &inner);
    ls_dnn_finalize(s, d, "tensor");
    return d;
}

static LsDnnDesc window(LsDnnScope *s, const LsDnnConv *c)
{
    int mode = LS_DNN_CROSS_CORRELATION, type = compute_type(c);
    LsDnnDesc d = ls_dnn_make(s, LS_DNN_CONVOLUTION);
    ls_dnn_set(s, d, LS_DNN_CONV_PRECISION, LS_DNN_T_DATA_TYPE, 1, &type);
    ls_dnn_set(s, d, LS_DNN_CONV_MODE, LS_DNN_T_CONV_MODE, 1, &mode);
    ls_dnn_set_int(s, d, LS_DNN_CONV_SPATIAL, c->axes);
    ls_dnn_set(s, d, LS_DNN_CONV_DILATIONS, LS_DNN_T_INT64, c->axes, c->dilation);
    ls_dnn_set(s, d, LS_DNN_CONV_STRIDES, LS_DNN_T_INT64, c->axes, c->stride);
    ls_dnn_set(s, d, LS_DNN_CONV_PRE_PADS, LS_DNN_T_INT64, c->axes, c->pad_lo);
    ls_dnn_set(s, d, LS_DNN_CONV_POST_PADS, LS_DNN_T_INT64, c->axes, c->pad_hi);
    ls_dnn_finalize(s, d, "convolution");
    return d;
}

static LsDnnDesc convolution(LsDnnScope *s, const LsDnnConv *c, LsDnnDesc x, LsDnnDesc w,
                             LsDnnDesc y)
{
    static const struct { int op, x, w, y, conv, alpha, beta; } name[] = {
        [LS_DNN_CONV_FORWARD] = {LS_DNN_OP_CONV_FORWARD, LS_DNN_FORWARD_X, LS_DNN_FORWARD_W,
                                 LS_DNN_FORWARD_Y, LS_DNN_FORWARD_CONV, LS_DNN_FORWARD_ALPHA,
                                 LS_DNN_FORWARD_BETA},
        [LS_DNN_CONV_DATA] = {LS_DNN_OP_CONV_DATA, LS_DNN_DATA_DX, LS_DNN_DATA_W, LS_DNN_DATA_DY,
                              LS_DNN_DATA_CONV, LS_DNN_DATA_ALPHA, LS_DNN_DATA_BETA},
        [LS_DNN_CONV_WEIGHTS] = {LS_DNN_OP_CONV_WEIGHTS, LS_DNN_WEIGHTS_X, LS_DNN_WEIGHTS_DW,
                                 LS_DNN_WEIGHTS_DY, LS_DNN_WEIGHTS_CONV, LS_DNN_WEIGHTS_ALPHA,
                                 LS_DNN_WEIGHTS_BETA},
    };
    float one = 1, none = 0;
    double one8 = 1, none8 = 0;
    bool wide = c->real_bytes == 8;
    int type = wide ? LS_DNN_T_DOUBLE : LS_DNN_T_FLOAT, k = c->kind;
    LsDnnDesc conv = window(s, c), d = ls_dnn_make(s, name[k].op);
    ls_dnn_set_desc(s, d, name[k].x, x);
    ls_dnn_set_desc(s, d, name[k].w, w);
    ls_dnn_set_desc(s, d, name[k].y, y);
    ls_dnn_set_desc(s, d, name[k].conv, conv);
    ls_dnn_set(s, d, name[k].alpha, type, 1, wide ? (void *)&one8 : (void *)&one);
    ls_dnn_set(s, d, name[k].beta, type, 1, wide ? (void *)&none8 : (void *)&none);
    ls_dnn_finalize(s, d, "convolution operation");
    return d;
}

static LsDnnDesc pointwise_mode(LsDnnScope *s, const LsDnnConv *c, int mode)
{
    int type = compute_type(c);
    LsDnnDesc p = ls_dnn_make(s, LS_DNN_POINTWISE);
    ls_dnn_set(s, p, LS_DNN_POINTWISE_MODE, LS_DNN_T_POINTWISE_MODE, 1, &mode);
    ls_dnn_set(s, p, LS_DNN_POINTWISE_PRECISION, LS_DNN_T_DATA_TYPE, 1, &type);
    ls_dnn_finalize(s, p, "pointwise");
    return p;
}

/* out = in + b, or max(in, 0) without b. */
static LsDnnDesc pointwise(LsDnnScope *s, const LsDnnConv *c, int mode, LsDnnDesc in, LsDnnDesc b,
                           LsDnnDesc out)
{
    LsDnnDesc d = ls_dnn_make(s, LS_DNN_OP_POINTWISE);
    ls_dnn_set_desc(s, d, LS_DNN_OP_POINTWISE_DESC, pointwise_mode(s, c, mode));
    ls_dnn_set_desc(s, d, LS_DNN_OP_POINTWISE_X, in);
    if (b != NULL)
        ls_dnn_set_desc(s, d, LS_DNN_OP_POINTWISE_B, b);
    ls_dnn_set_desc(s, d, LS_DNN_OP_POINTWISE_Y, out);
    ls_dnn_finalize(s, d, "pointwise operation");
    return d;
}

/* out = in where of is above 0, else 0: the gradient of the ReLU that made `of`. */
static LsDnnDesc relu_gradient(LsDnnScope *s, const LsDnnConv *c, LsDnnDesc in, LsDnnDesc of,
                               LsDnnDesc out)
{
    LsDnnDesc d = ls_dnn_make(s, LS_DNN_OP_POINTWISE);
    ls_dnn_set_desc(s, d, LS_DNN_OP_POINTWISE_DESC, pointwise_mode(s, c, LS_DNN_RELU_GRAD));
    ls_dnn_set_desc(s, d, LS_DNN_OP_POINTWISE_X, of);
    ls_dnn_set_desc(s, d, LS_DNN_OP_POINTWISE_DY, in);
    ls_dnn_set_desc(s, d, LS_DNN_OP_POINTWISE_DX, out);
    ls_dnn_finalize(s, d, "gradient operation");
    return d;
}

static LsDnnDesc statistics(LsDnnScope *s, const LsDnnConv *c, LsDnnDesc of, const int64_t dim[])
{
    int mode = LS_DNN_SUM_AND_SQUARES, type = compute_type(c);
    LsDnnDesc sum = tensor(s, c, LS_DNN_SUM, dim), squares = tensor(s, c, LS_DNN_SQUARES, dim);
    LsDnnDesc d = ls_dnn_make(s, LS_DNN_OP_STATISTICS);
    ls_dnn_set(s, d, LS_DNN_STATISTICS_MODE, LS_DNN_T_STATISTICS_MODE, 1, &mode);
    ls_dnn_set(s, d, LS_DNN_STATISTICS_PRECISION, LS_DNN_T_DATA_TYPE, 1, &type);
    ls_dnn_set_desc(s, d, LS_DNN_STATISTICS_X, of);
    ls_dnn_set_desc(s, d, LS_DNN_STATISTICS_SUM, sum);
    ls_dnn_set_desc(s, d, LS_DNN_STATISTICS_SQUARES, squares);
    ls_dnn_finalize(s, d, "statistics operation");
    return d;
}

LsDnnDesc ls_dnn_conv_graph(LsDnnScope *s, const LsDnnConv *c)
{
    enum { OPS = 4 };
    bool data = c->kind == LS_DNN_CONV_DATA;
    const int64_t *to = data ? c->x : c->y;             /* the tensor that epilogues work on */
    int64_t by_channel[LS_DNN_RANK] = {1, to[1], 1, 1, 1}, inner = ANY_UID;
    int nop = 0;
    LsDnnDesc op[OPS], x = NULL, y = NULL, w = tensor(s, c, LS_DNN_W, c->w);
    LsDnnDesc out = tensor(s, c, data ? LS_DNN_X : LS_DNN_Y, to);
    LsDnnDesc in = ls_dnn_has_epilogue(c) ? tensor(s, c, inner++, to) : out;
    x = data ? in : tensor(s, c, LS_DNN_X, c->x);
    y = data ? tensor(s, c, LS_DNN_Y, c->y) : in;
    op[nop++] = convolution(s, c, x, w, y);
    if (c->bias) {
        LsDnnDesc next = c->relu ? tensor(s, c, inner++, to) : out;
        op[nop++] = pointwise(s, c, LS_DNN_ADD, in, tensor(s, c, LS_DNN_B, by_channel), next);
        in = next;
    }
    if (c->relu)
        op[nop++] = pointwise(s, c, LS_DNN_RELU, in, NULL, out);
    if (c->mask)
        op[nop++] = relu_gradient(s, c, in, tensor(s, c, LS_DNN_MASK, to), out);
    if (c->statistics)
        op[nop++] = statistics(s, c, out, by_channel);
    LsDnnDesc graph = ls_dnn_make(s, LS_DNN_GRAPH);
    ls_dnn_set(s, graph, LS_DNN_GRAPH_OPS, LS_DNN_T_DESC, nop, op);
    ls_dnn_finalize(s, graph, "operation graph");
    return graph;
}
