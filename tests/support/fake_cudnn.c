/* tests/support/fake_cudnn.c -- a library with the functions of cuDNN's graph API that convolutions
 * use. It computes convolutions on the CPU, slowly, from the descriptors, and so checks graphs,
 * plans and addresses. Its "device" memory is the memory of this process. It refuses attributes
 * that a descriptor does not have (fake_cudnn_rules.h), descriptors that are not finalised, tensors
 * with less alignment than stated, and plans that first run while they are recorded.
 *
 * Engines: 7 rounds to TF32 (it does not really); 3 takes a workspace as large as x and y; 2 takes
 * 1000 bytes; 0 takes none; 9 is not deterministic; 5 compiles a kernel. Heuristics propose them in
 * this order. 8 rounds to halves, 6 adds less exactly: heuristics propose them only if asked for.
 *
 * Environment: FAKE_CUDNN_VERSION (91900), FAKE_CUDNN_ENGINES ("732905"), FAKE_CUDNN_MASK ("5"):
 * engines that apply a ReLU's gradient behind a convolution, FAKE_CUDNN_NO_DRIVER: no plan of
 * engine 5 can be made, FAKE_CUDNN_REFUSE: an engine whose stored plans do not run,
 * FAKE_CUDNN_NO_WEIGHTS: weight gradients of 3x3 of so many channels on both sides do not run,
 * FAKE_CUDNN_PROCESSORS (132) of the device, FAKE_CUDNN_WORD: in the text of plans. */
#include "runtime/cuda/cudnn_abi.h"
#include "tests/support/fake_cudnn_rules.h"
#include "tests/support/fake_stream.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/kernels/ls_kernel.h"  /* rounding to 16 bits */

enum {
    ATTRS = 16,
    RANK = 5,
    OPS = 4,
    TENSORS = 5,
    BAD = 2000,
    NOT_SUPPORTED = 3000,
    FAILED = 5000
};

typedef struct Attr { int name, type; int64_t n; void *value; } Attr;
typedef struct Desc {
    int type;
    bool finalized;
    Attr attr[ATTRS]; int nattr;
    int engine;                 /* ENGINE_CONFIG, ENGINE, PLAN */
    struct Desc *graph;         /* HEURISTICS, ENGINE_CONFIG */
    int64_t number[64];         /* PLAN: see encode */
    bool stored, ran;           /* PLAN: read from text; has run */
} Desc;

static int last_engine = -1;
static const char *last_error = "";

int fake_cudnn_last_engine(void);
int fake_cudnn_last_engine(void) { return last_engine; }

static int fail(int status, const char *why)
{
    last_error = why;
    return status;
}

static int64_t setting(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtoll(text, NULL, 10) : otherwise;
}

static const char *engines(void)
{
    const char *text = getenv("FAKE_CUDNN_ENGINES");
    return text != NULL ? text : "732905";
}

/* Whether an engine takes a graph with such an epilogue. */
static bool takes(char engine, bool mask)
{
    const char *masks = getenv("FAKE_CUDNN_MASK");
    return !mask || strchr(masks != NULL ? masks : "5", engine) != NULL;
}

static size_t type_size(int type)
{
    switch (type) {
    case LS_DNN_T_BOOLEAN: case LS_DNN_T_CHAR: return 1;
    case LS_DNN_T_INT64: case LS_DNN_T_DOUBLE: case LS_DNN_T_POINTER: case LS_DNN_T_DESC: return 8;
    default: return 4;
    }
}

static const Attr *find(const Desc *d, int name)
{
    for (int k = 0; k < d->nattr; k++)
        if (d->attr[k].name == name)
            return &d->attr[k];
    return NULL;
}

static Desc *desc_of(const Desc *d, int name)
{
    const Attr *a = find(d, name);
    return a != NULL && a->type == LS_DNN_T_DESC ? *(Desc **)a->value : NULL;
}

static int64_t int_of(const Desc *d, int name)
{
    const Attr *a = d != NULL ? find(d, name) : NULL;
    return a == NULL ? -1 : type_size(a->type) == 8 ? *(int64_t *)a->value
                        : type_size(a->type) == 4   ? *(int32_t *)a->value
                                                    : *(char *)a->value;
}

/* ---- plans: the computation of a graph, as numbers ---- */
enum { KIND, AXES, TYPE, BIAS, RELU, MASK, ALIGNED, DIMS, STRIDES = DIMS + 3 * RANK,
       WINDOW = STRIDES + 3 * RANK, NUMBERS = WINDOW + 12 };

static bool put_tensor(int64_t *to, const Desc *t, int which, int64_t uid)
{
    const Attr *dims = t != NULL ? find(t, LS_DNN_TENSOR_DIMS) : NULL;
    const Attr *strides = t != NULL ? find(t, LS_DNN_TENSOR_STRIDES) : NULL;
    if (dims == NULL || strides == NULL || !t->finalized || dims->n != to[AXES] + 2
        || (int_of(t, LS_DNN_TENSOR_VIRTUAL) == 0 && int_of(t, LS_DNN_TENSOR_UID) != uid))
        return false;
    memcpy(to + DIMS + which * RANK, dims->value, (size_t)dims->n * 8);
    memcpy(to + STRIDES + which * RANK, strides->value, (size_t)dims->n * 8);
    int64_t type = int_of(t, LS_DNN_TENSOR_TYPE);
    if (int_of(t, LS_DNN_TENSOR_VIRTUAL) == 0)
        to[TYPE] = type;
    int64_t aligned = int_of(t, LS_DNN_TENSOR_ALIGNMENT);
    to[ALIGNED] = aligned > to[ALIGNED] ? aligned : to[ALIGNED];
    return true;
}

/* One number for each channel of the result. */
static bool is_bias(const int64_t *p, const Desc *b)
{
    const Attr *dims = find(b, LS_DNN_TENSOR_DIMS);
    bool is = dims->n == p[AXES] + 2 && int_of(b, LS_DNN_TENSOR_UID) == 4;
    for (int64_t k = 0; is && k < dims->n; k++)
        is = ((int64_t *)dims->value)[k]
             == (k != 1 ? 1 : p[DIMS + (p[KIND] == 1 ? 0 : 2) * RANK + 1]);
    return is;
}

static bool put_window(int64_t *to, const Desc *conv)
{
    static const int name[] = {LS_DNN_CONV_STRIDES, LS_DNN_CONV_DILATIONS, LS_DNN_CONV_PRE_PADS,
                               LS_DNN_CONV_POST_PADS};
    if (conv == NULL || int_of(conv, LS_DNN_CONV_MODE) != LS_DNN_CROSS_CORRELATION)
        return false;
    to[AXES] = int_of(conv, LS_DNN_CONV_SPATIAL);
    for (int k = 0; k < 4; k++) {
        const Attr *a = find(conv, name[k]);
        if (a == NULL || a->n != to[AXES])
            return false;
        memcpy(to + WINDOW + 3 * k, a->value, (size_t)a->n * 8);
    }
    return true;
}

/* y = (x + pads - span) / stride + 1, as cuDNN demands. */
static bool sizes_agree(const int64_t *p)
{
    for (int k = 0; k < p[AXES]; k++) {
        const int64_t *v = p + WINDOW + k;
        int64_t room = p[DIMS + 2 + k] + v[6] + v[9] - ((p[DIMS + RANK + 2 + k] - 1) * v[3] + 1);
        if (room < 0 || room / v[0] + 1 != p[DIMS + 2 * RANK + 2 + k])
            return false;
    }
    return p[DIMS + 1] % p[DIMS + RANK + 1] == 0 && p[DIMS + RANK] == p[DIMS + 2 * RANK + 1];
}

/* The ReLU's gradient: of a tensor with x's dims, by the convolution's result. */
static bool put_mask(int64_t *to, const Desc *op)
{
    const Desc *of = desc_of(op, LS_DNN_OP_POINTWISE_X), *in = desc_of(op, LS_DNN_OP_POINTWISE_DY);
    const Desc *out = desc_of(op, LS_DNN_OP_POINTWISE_DX);
    const Attr *dims = of != NULL ? find(of, LS_DNN_TENSOR_DIMS) : NULL;
    to[MASK] = 1;
    return dims != NULL && int_of(of, LS_DNN_TENSOR_UID) == TENSORS
        && int_of(of, LS_DNN_TENSOR_VIRTUAL) == 0 && int_of(in, LS_DNN_TENSOR_VIRTUAL) == 1
        && int_of(out, LS_DNN_TENSOR_UID) == 1 && dims->n == to[AXES] + 2 && to[KIND] == 1
        && memcmp(dims->value, to + DIMS, (size_t)dims->n * 8) == 0;
}

static bool put_pointwise(int64_t *to, const Desc *op)
{
    int64_t mode = int_of(desc_of(op, LS_DNN_OP_POINTWISE_DESC), LS_DNN_POINTWISE_MODE);
    const Desc *b = desc_of(op, LS_DNN_OP_POINTWISE_B);
    if (mode == LS_DNN_RELU_GRAD)
        return put_mask(to, op);
    to[mode == LS_DNN_ADD ? BIAS : RELU] = 1;
    return desc_of(op, LS_DNN_OP_POINTWISE_Y) != NULL && (mode == LS_DNN_ADD) == (b != NULL)
        && (b == NULL || is_bias(to, b));
}

static bool encode(const Desc *graph, int64_t *to)
{
    static const struct { int type, x, w, y, conv; } row[] = {
        {LS_DNN_OP_CONV_FORWARD, LS_DNN_FORWARD_X, LS_DNN_FORWARD_W, LS_DNN_FORWARD_Y,
         LS_DNN_FORWARD_CONV},
        {LS_DNN_OP_CONV_DATA, LS_DNN_DATA_DX, LS_DNN_DATA_W, LS_DNN_DATA_DY, LS_DNN_DATA_CONV},
        {LS_DNN_OP_CONV_WEIGHTS, LS_DNN_WEIGHTS_X, LS_DNN_WEIGHTS_DW, LS_DNN_WEIGHTS_DY,
         LS_DNN_WEIGHTS_CONV},
    };
    const Attr *ops = find(graph, LS_DNN_GRAPH_OPS);
    for (int64_t k = 0; ops != NULL && k < ops->n; k++) {
        const Desc *op = ((Desc **)ops->value)[k];
        for (int r = 0; r < 3; r++)
            if (op->type == row[r].type) {
                to[KIND] = r;
                if (!put_window(to, desc_of(op, row[r].conv))
                    || !put_tensor(to, desc_of(op, row[r].x), 0, 1)
                    || !put_tensor(to, desc_of(op, row[r].w), 1, 2)
                    || !put_tensor(to, desc_of(op, row[r].y), 2, 3))
                    return false;
            }
        if ((op->type == LS_DNN_OP_POINTWISE && !put_pointwise(to, op))
            || op->type == LS_DNN_OP_STATISTICS)
            return false;
    }
    return sizes_agree(to);
}

static int64_t count(const int64_t *p, int which)
{
    int64_t n = 1;
    for (int k = 0; k < p[AXES] + 2; k++)
        n *= p[DIMS + which * RANK + k];
    return n;
}

static int64_t element_bytes(const int64_t *p)
{
    return p[TYPE] == LS_DNN_DOUBLE ? 8 : p[TYPE] == LS_DNN_FLOAT ? 4 : 2;
}

static int64_t workspace(const Desc *plan)
{
    const int64_t *p = plan->number;
    return plan->engine == 3   ? (count(p, 0) + count(p, 2)) * element_bytes(p)
           : plan->engine == 2 ? 1000
                               : 0;
}

/* ---- computing ---- */
static double load(const int64_t *p, const char *at, int64_t k)
{
    const void *all = at;
    switch (p[TYPE]) {
    case LS_DNN_DOUBLE: return ((const double *)all)[k];
    case LS_DNN_BRAIN:  return (double)ls_from_bf16(((const ls_bf16 *)all)[k]);
    case LS_DNN_HALF:   return (double)ls_from_f16(((const ls_f16 *)all)[k]);
    default:            return ((const float *)all)[k];
    }
}

static void store(const int64_t *p, char *at, int64_t k, double v)
{
    void *all = at;
    switch (p[TYPE]) {
    case LS_DNN_DOUBLE: ((double *)all)[k] = v; break;
    case LS_DNN_BRAIN:  ((ls_bf16 *)all)[k] = ls_to_bf16(ls_round_brain((float)v)); break;
    case LS_DNN_HALF:   ((ls_f16 *)all)[k] = ls_to_f16(ls_round_half((float)v)); break;
    default:            ((float *)all)[k] = (float)v;
    }
}

static int64_t place(const int64_t *p, int which, const int64_t *index)
{
    int64_t at = 0;
    for (int k = 0; k < p[AXES] + 2; k++)
        at += index[k] * p[STRIDES + which * RANK + k];
    return at;
}

static bool next(const int64_t *dim, int rank, int64_t *index)
{
    for (int k = rank - 1; k >= 0; k--) {
        if (++index[k] < dim[k])
            return true;
        index[k] = 0;
    }
    return false;
}

/* For an element of y the places of the window inside x: offsets of x and of w, without channels.
 * Returns their number. */
static int64_t find_taps(const int64_t *p, const int64_t *y, int64_t (*tap)[2])
{
    const int64_t *xs = p + STRIDES, *ws = p + STRIDES + RANK, *v = p + WINDOW;
    int64_t n = 0, w[RANK] = {0};
    do {
        bool inside = true;
        tap[n][0] = tap[n][1] = 0;
        for (int a = 0; a < p[AXES]; a++) {
            int64_t x = y[2 + a] * v[a] + w[2 + a] * v[3 + a] - v[6 + a];
            inside &= x >= 0 && x < p[DIMS + 2 + a];
            tap[n][0] += x * xs[2 + a];
            tap[n][1] += w[2 + a] * ws[2 + a];
        }
        n += inside;
    } while (next(p + DIMS + RANK + 2, (int)p[AXES], w + 2));
    return n;
}

/* Adds the products of an element of y to the sums of tensor `out`. */
static void add_products(const int64_t *p, char *const at[], int out, const int64_t *y,
                         int64_t (*tap)[2], double *sum)
{
    const int64_t *wd = p + DIMS + RANK, *xs = p + STRIDES, *ws = p + STRIDES + RANK;
    const int64_t filters = wd[0] / (p[DIMS + 1] / wd[1]), n = find_taps(p, y, tap);
    const int a = out == 0 ? 1 : 0, b = 3 - out - a;
    for (int64_t c = 0; c < wd[1]; c++)
        for (int64_t k = 0; k < n; k++) {
            const int64_t of[3] = {y[0] * xs[0] + (y[1] / filters * wd[1] + c) * xs[1] + tap[k][0],
                                   y[1] * ws[0] + c * ws[1] + tap[k][1], place(p, 2, y)};
            sum[of[out]] += load(p, at[a], of[a]) * load(p, at[b], of[b]);
        }
}

static void compute(const int64_t *p, char *const at[TENSORS])
{
    int out = p[KIND] == 0 ? 2 : p[KIND] == 1 ? 0 : 1, rank = (int)p[AXES] + 2;
    int64_t n = count(p, out), y[RANK] = {0};
    double *sum = calloc((size_t)n, sizeof *sum);
    int64_t (*tap)[2] = calloc((size_t)count(p, 1) + 1, sizeof *tap);
    do
        add_products(p, at, out, y, tap, sum);
    while (next(p + DIMS + 2 * RANK, rank, y));
    for (int64_t i = 0; i < n; i++) {
        double v = sum[i];
        if (p[BIAS])
            v += load(p, at[3], i % p[DIMS + out * RANK + 1]);
        v = p[RELU] && v < 0 ? 0 : v;
        v = p[MASK] && !(load(p, at[4], i) > 0) ? 0 : v;
        store(p, at[out], i, v);
    }
    free(tap);
    free(sum);
}

typedef struct Convolution {    /* as requested */
    int64_t number[64];
    char *tensor[TENSORS], *room;
    size_t bytes;
} Convolution;

static void convolve(const void *data)
{
    Convolution c = *(const Convolution *)data;
    if (c.bytes > 0)
        memset(c.room, 0xff, c.bytes);
    compute(c.number, c.tensor);
}

/* ---- the API ---- */
#define API __attribute__((visibility("default")))
API size_t cudnnGetVersion(void);
API const char *cudnnGetErrorString(int status);
API void cudnnGetLastErrorString(char *text, size_t size);
API int cudnnCreate(void **handle);
API int cudnnDestroy(void *handle);
API int cudnnSetStream(void *handle, void *stream);
API int cudnnBackendCreateDescriptor(int type, LsDnnDesc *desc);
API int cudnnBackendDestroyDescriptor(LsDnnDesc desc);
API int cudnnBackendFinalize(LsDnnDesc desc);
API int cudnnBackendSetAttribute(LsDnnDesc desc, int name, int type, int64_t n, const void *value);
API int cudnnBackendGetAttribute(LsDnnDesc desc, int name, int type, int64_t room, int64_t *n,
                                 void *value);
API int cudnnBackendExecute(void *handle, LsDnnDesc plan, LsDnnDesc pack);

size_t cudnnGetVersion(void) { return (size_t)setting("FAKE_CUDNN_VERSION", 91900); }
const char *cudnnGetErrorString(int status) { return status == 0 ? "success" : "failure"; }
void cudnnGetLastErrorString(char *text, size_t size) { snprintf(text, size, "%s", last_error); }

int cudnnCreate(void **handle)
{
    *handle = calloc(1, sizeof (void *));      /* its stream */
    return 0;
}

int cudnnDestroy(void *handle)
{
    free(handle);
    return 0;
}

int cudnnSetStream(void *handle, void *stream)
{
    if (handle == NULL)
        return BAD;
    *(void **)handle = stream;
    return 0;
}

int cudnnBackendCreateDescriptor(int type, LsDnnDesc *desc)
{
    Desc *d = calloc(1, sizeof *d);
    d->type = type;
    d->engine = -1;
    *desc = d;
    return 0;
}

int cudnnBackendDestroyDescriptor(LsDnnDesc desc)
{
    Desc *d = desc;
    for (int k = 0; k < d->nattr; k++)
        free(d->attr[k].value);
    free(d);
    return 0;
}

int cudnnBackendSetAttribute(LsDnnDesc desc, int name, int type, int64_t n, const void *value)
{
    Desc *d = desc;
    if (d->finalized || d->nattr == ATTRS || find(d, name) != NULL
        || !fake_allowed(fake_rule, FAKE_RULES, d->type, name, type, n))
        return fail(BAD, "set");
    for (int64_t k = 0; type == LS_DNN_T_DESC && k < n; k++)
        if (((Desc *const *)value)[k] == NULL || !((Desc *const *)value)[k]->finalized)
            return fail(BAD, "a descriptor that is not finalised");
    size_t bytes = (size_t)n * type_size(type);
    Attr *a = &d->attr[d->nattr++];
    *a = (Attr){name, type, n, calloc(bytes + 1, 1)};
    memcpy(a->value, value, bytes);
    return 0;
}

static int finalize_plan(Desc *d)
{
    const Attr *text = find(d, LS_DNN_PLAN_JSON);
    if (desc_of(d, LS_DNN_PLAN_DEVICE) == NULL)
        return fail(BAD, "a plan is for a device");
    if (text == NULL) {
        const Desc *config = desc_of(d, LS_DNN_PLAN_CONFIG);
        d->engine = config->engine;
        if (d->engine == 5 && setting("FAKE_CUDNN_NO_DRIVER", 0))
            return fail(FAILED, "no driver loads the kernel");
        return encode(config->graph, d->number) ? 0 : fail(BAD, "graph");
    }
    const char *at = strstr(text->value, "\"engine\":");
    const char *list = strstr(text->value, "\"numbers\":[");
    if (at == NULL || list == NULL)
        return fail(BAD, "text");
    d->engine = atoi(at + 9);
    d->stored = true;
    char *s = (char *)(uintptr_t)list + 11;
    for (int k = 0; k < NUMBERS; k++)
        d->number[k] = strtoll(s, &s, 10), s++;
    return 0;
}

int cudnnBackendFinalize(LsDnnDesc desc)
{
    Desc *d = desc;
    int64_t number[NUMBERS] = {0};
    int status = d->finalized ? fail(BAD, "finalised twice") : 0;
    for (int k = 0; k < FAKE_RULES && status == 0; k++)
        if (fake_rule[k].of == d->type && fake_rule[k].least > 0
            && find(d, fake_rule[k].name) == NULL)
            status = fail(BAD, "an attribute is missing");
    if (status != 0)
        return status;
    if (d->type == LS_DNN_PLAN)
        status = finalize_plan(d);
    if (d->type == LS_DNN_GRAPH && !encode(d, number))
        status = fail(NOT_SUPPORTED, "no such graph");
    if (d->type == LS_DNN_TENSOR && int_of(d, LS_DNN_TENSOR_ALIGNMENT) < 16)
        status = fail(BAD, "alignment");
    d->finalized = status == 0;
    return status;
}

static int give_text(const char *text, int64_t room, int64_t *n, void *value)
{
    *n = (int64_t)strlen(text) + 1;
    if (room > 0)
        memcpy(value, text, (size_t)(room < *n ? room : *n));
    return 0;
}

static int device_text(const Desc *d, int64_t room, int64_t *n, void *value)
{
    char text[200];
    const Attr *given = find(d, LS_DNN_DEVICE_JSON);
    snprintf(text, sizeof text, "{\"multiProcessorCount\":%d,\"deviceVer\":900,"
             "\"deviceName\":\"NVIDIA Fake\"}", (int)setting("FAKE_CUDNN_PROCESSORS", 132));
    return give_text(given != NULL ? given->value : text, room, n, value);
}

static int plan_text(const Desc *d, int64_t room, int64_t *n, void *value)
{
    char text[2000];
    const char *word = getenv("FAKE_CUDNN_WORD");
    size_t at = (size_t)snprintf(
        text, sizeof text, "{\"cudnnVersion\":%d,\"multiProcessorCount\":%d,\"deviceVer\":900,"
        "\"deviceName\":\"NVIDIA Fake\",\"word\":\"%s\",\"engine\":%d,\"numbers\":[",
        (int)cudnnGetVersion(), (int)setting("FAKE_CUDNN_PROCESSORS", 132),
        word != NULL ? word : "", d->engine);
    for (int k = 0; k < NUMBERS; k++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%lld%s", (long long)d->number[k],
                               k + 1 < NUMBERS ? "," : "]}");
    return give_text(text, room, n, value);
}

static int configs(const Desc *h, int64_t room, int64_t *n, void *value)
{
    const char *list = int_of(h, LS_DNN_HEURISTICS_MODE) == LS_DNN_MODE_A ? engines() : "";
    int64_t number[NUMBERS] = {0};
    bool mask = encode(desc_of(h, LS_DNN_HEURISTICS_GRAPH), number) && number[MASK] != 0;
    *n = 0;
    for (; *list != '\0'; list++)
        if (takes(*list, mask) && (*n)++ < room) {
            Desc *config = ((Desc **)value)[*n - 1];
            config->engine = *list - '0';
            config->finalized = true;
            config->graph = desc_of(h, LS_DNN_HEURISTICS_GRAPH);
        }
    return 0;
}

int cudnnBackendGetAttribute(LsDnnDesc desc, int name, int type, int64_t room, int64_t *n,
                             void *value)
{
    Desc *d = desc;
    if (!d->finalized
        || !fake_allowed(fake_answer, FAKE_ANSWERS, d->type, name, type, room))
        return fail(BAD, "get");
    *n = 1;
    switch (name) {
    case LS_DNN_DEVICE_JSON: return device_text(d, room, n, value);
    case LS_DNN_PLAN_JSON: return plan_text(d, room, n, value);
    case LS_DNN_HEURISTICS_RESULTS: return configs(d, room, n, value);
    case LS_DNN_PLAN_WORKSPACE: *(int64_t *)value = workspace(d); return 0;
    case LS_DNN_CONFIG_ENGINE:
        (*(Desc **)value)->engine = d->engine;
        (*(Desc **)value)->finalized = true;
        return 0;
    case LS_DNN_ENGINE_INDEX: *(int64_t *)value = d->engine; return 0;
    case LS_DNN_ENGINE_BEHAVIOR:
        *n = d->engine == 5;
        *(int *)value = LS_DNN_RUNTIME_COMPILATION;
        return 0;
    case LS_DNN_ENGINE_NUMERICS:
        *n = d->engine >= 6;
        *(int *)value = d->engine == 6   ? LS_DNN_REDUCED_SUMS
                        : d->engine == 7 ? LS_DNN_TENSOR_CORE
                        : d->engine == 8 ? LS_DNN_DOWN_CONVERT : LS_DNN_NONDETERMINISTIC;
        return 0;
    default: return fail(BAD, "get");
    }
}

/* An engine that the environment excludes. */
static bool is_refused(const Desc *d)
{
    const int64_t *w = d->number + DIMS + RANK;
    int64_t refused = setting("FAKE_CUDNN_NO_WEIGHTS", -1);
    return (d->stored && d->engine == setting("FAKE_CUDNN_REFUSE", -1))
        || (d->number[KIND] == 2 && w[2] == 3 && w[3] == 3
            && w[0] == refused && w[1] == refused);
}

int cudnnBackendExecute(void *handle, LsDnnDesc plan, LsDnnDesc pack)
{
    Desc *d = plan;
    const Desc *a = pack;
    const Attr *uid = find(a, LS_DNN_PACK_UIDS), *at = find(a, LS_DNN_PACK_POINTERS);
    char *tensor[TENSORS] = {NULL}, *room = (char *)(uintptr_t)int_of(a, LS_DNN_PACK_WORKSPACE);
    if (handle == NULL || uid == NULL || at == NULL || uid->n != at->n || !d->finalized
        || !a->finalized)
        return fail(BAD, "execute");
    if (is_refused(d))
        return fail(FAILED, "no such kernel");
    for (int64_t k = 0; k < uid->n; k++) {
        tensor[((int64_t *)uid->value)[k] - 1] = ((char **)at->value)[k];
        if ((uintptr_t)((char **)at->value)[k] % (uintptr_t)d->number[ALIGNED] != 0)
            return fail(BAD, "a tensor is not aligned");
    }
    if (!d->ran && fake_stream_records(*(void **)handle))
        return fail(FAILED, "a plan is recorded that never ran");
    d->ran = true;
    if (tensor[0] == NULL || tensor[1] == NULL || tensor[2] == NULL
        || (tensor[3] != NULL) != (d->number[BIAS] != 0)
        || (tensor[4] != NULL) != (d->number[MASK] != 0))
        return fail(BAD, "tensors");
    if (workspace(d) > 0 && ((uintptr_t)room % 256 != 0 || room == NULL))
        return fail(BAD, "workspace");
    Convolution c = {.room = room, .bytes = (size_t)workspace(d)};
    memcpy(c.number, d->number, sizeof c.number);
    memcpy(c.tensor, tensor, sizeof c.tensor);
    fake_stream_work(*(void **)handle, convolve, &c, sizeof c);
    last_engine = d->engine;
    return 0;
}
