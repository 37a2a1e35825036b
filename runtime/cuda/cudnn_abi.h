/* runtime/cuda/cudnn_abi.h -- the part of cuDNN 9's graph API ("backend API") that convolutions
 * need.
 *
 * Numbers and signatures are those of NVIDIA's cudnn_graph.h; tests/runtime/test_cudnn_abi.c
 * compares them where that header is installed. They are repeated here so that neither the compiler
 * nor a training program needs the CUDA toolkit to build: the library is opened on demand. */
#ifndef LS_CUDNN_ABI_H
#define LS_CUDNN_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef void *LsDnnDesc;        /* cudnnBackendDescriptor_t */

enum { LS_DNN_OK = 0 };         /* cudnnStatus_t */

enum {                          /* cudnnBackendDescriptorType_t */
    LS_DNN_POINTWISE = 0,
    LS_DNN_CONVOLUTION = 1,
    LS_DNN_ENGINE = 2,
    LS_DNN_ENGINE_CONFIG = 3,
    LS_DNN_HEURISTICS = 4,
    LS_DNN_PLAN = 5,
    LS_DNN_OP_CONV_FORWARD = 10,
    LS_DNN_OP_CONV_WEIGHTS = 11,
    LS_DNN_OP_CONV_DATA = 12,
    LS_DNN_OP_POINTWISE = 13,
    LS_DNN_OP_STATISTICS = 14,
    LS_DNN_GRAPH = 15,
    LS_DNN_VARIANT_PACK = 16,
    LS_DNN_TENSOR = 17,
    LS_DNN_DEVICE = 38,
};

enum {                          /* cudnnBackendAttributeName_t */
    LS_DNN_POINTWISE_MODE = 0,
    LS_DNN_POINTWISE_PRECISION = 1,
    LS_DNN_CONV_PRECISION = 100,
    LS_DNN_CONV_MODE = 101,
    LS_DNN_CONV_DILATIONS = 102,
    LS_DNN_CONV_STRIDES = 103,
    LS_DNN_CONV_POST_PADS = 104,
    LS_DNN_CONV_PRE_PADS = 105,
    LS_DNN_CONV_SPATIAL = 106,
    LS_DNN_HEURISTICS_MODE = 200,
    LS_DNN_HEURISTICS_GRAPH = 201,
    LS_DNN_HEURISTICS_RESULTS = 202,
    LS_DNN_HEURISTICS_DEVICE = 204,
    LS_DNN_CONFIG_ENGINE = 300,
    LS_DNN_PLAN_CONFIG = 401,
    LS_DNN_PLAN_WORKSPACE = 402,
    LS_DNN_PLAN_JSON = 405,
    LS_DNN_PLAN_DEVICE = 407,
    LS_DNN_FORWARD_ALPHA = 700,
    LS_DNN_FORWARD_BETA = 701,
    LS_DNN_FORWARD_CONV = 702,
    LS_DNN_FORWARD_W = 703,
    LS_DNN_FORWARD_X = 704,
    LS_DNN_FORWARD_Y = 705,
    LS_DNN_DATA_ALPHA = 706,
    LS_DNN_DATA_BETA = 707,
    LS_DNN_DATA_CONV = 708,
    LS_DNN_DATA_W = 709,
    LS_DNN_DATA_DX = 710,
    LS_DNN_DATA_DY = 711,
    LS_DNN_WEIGHTS_ALPHA = 712,
    LS_DNN_WEIGHTS_BETA = 713,
    LS_DNN_WEIGHTS_CONV = 714,
    LS_DNN_WEIGHTS_DW = 715,
    LS_DNN_WEIGHTS_X = 716,
    LS_DNN_WEIGHTS_DY = 717,
    LS_DNN_OP_POINTWISE_DESC = 750,
    LS_DNN_OP_POINTWISE_X = 751,
    LS_DNN_OP_POINTWISE_B = 752,
    LS_DNN_OP_POINTWISE_Y = 753,
    LS_DNN_OP_POINTWISE_DX = 756,
    LS_DNN_OP_POINTWISE_DY = 757,
    LS_DNN_STATISTICS_MODE = 770,
    LS_DNN_STATISTICS_PRECISION = 771,
    LS_DNN_STATISTICS_X = 772,
    LS_DNN_STATISTICS_SUM = 773,
    LS_DNN_STATISTICS_SQUARES = 774,
    LS_DNN_GRAPH_OPS = 801,
    LS_DNN_TENSOR_ALIGNMENT = 900,
    LS_DNN_TENSOR_TYPE = 901,
    LS_DNN_TENSOR_DIMS = 902,
    LS_DNN_TENSOR_STRIDES = 903,
    LS_DNN_TENSOR_UID = 906,
    LS_DNN_TENSOR_VIRTUAL = 907,
    LS_DNN_PACK_UIDS = 1000,
    LS_DNN_PACK_POINTERS = 1001,
    LS_DNN_PACK_WORKSPACE = 1003,
    LS_DNN_ENGINE_INDEX = 1301,
    LS_DNN_ENGINE_NUMERICS = 1303,
    LS_DNN_ENGINE_BEHAVIOR = 1305,
    LS_DNN_DEVICE_ID = 2700,
    LS_DNN_DEVICE_JSON = 2702,
};

enum {                          /* cudnnBackendAttributeType_t */
    LS_DNN_T_DATA_TYPE = 1,
    LS_DNN_T_BOOLEAN = 2,
    LS_DNN_T_INT64 = 3,
    LS_DNN_T_FLOAT = 4,
    LS_DNN_T_DOUBLE = 5,
    LS_DNN_T_POINTER = 6,
    LS_DNN_T_CONV_MODE = 7,
    LS_DNN_T_HEURISTICS_MODE = 8,
    LS_DNN_T_NUMERICS = 11,
    LS_DNN_T_POINTWISE_MODE = 14,
    LS_DNN_T_DESC = 15,
    LS_DNN_T_STATISTICS_MODE = 16,
    LS_DNN_T_BEHAVIOR = 19,
    LS_DNN_T_INT32 = 23,
    LS_DNN_T_CHAR = 24,
};

/* cudnnDataType_t */
enum { LS_DNN_FLOAT = 0, LS_DNN_DOUBLE = 1, LS_DNN_HALF = 2, LS_DNN_BRAIN = 9 };
enum { LS_DNN_CROSS_CORRELATION = 1 };                          /* cudnnConvolutionMode_t */
enum {                          /* cudnnPointwiseMode_t */
    LS_DNN_ADD = 0,
    LS_DNN_MUL = 1,
    LS_DNN_RELU = 100,
    LS_DNN_RELU_GRAD = 200,
};
enum { LS_DNN_SUM_AND_SQUARES = 0 };                            /* cudnnGenStatsMode_t */
enum { LS_DNN_MODE_B = 1, LS_DNN_MODE_FALLBACK = 2, LS_DNN_MODE_A = 3 };

enum {                          /* cudnnBackendNumericalNote_t */
    LS_DNN_TENSOR_CORE = 0,
    LS_DNN_DOWN_CONVERT = 1,
    LS_DNN_REDUCED_SUMS = 2,
    LS_DNN_NONDETERMINISTIC = 4,
    LS_DNN_NUMERICS = 32,       /* upper limit, with room for later versions */
};
enum {                          /* cudnnBackendBehaviorNote_t */
    LS_DNN_RUNTIME_COMPILATION = 0,
    LS_DNN_NEEDS_CUBLASLT = 4,
    LS_DNN_BEHAVIORS = 32,
};

/* The functions, named without the prefix "cudnn"; an int result is a cudnnStatus_t. */
typedef struct LsDnnApi {
    size_t (*GetVersion)(void);
    const char *(*GetErrorString)(int status);
    void (*GetLastErrorString)(char *text, size_t size);
    int (*Create)(void **handle);
    int (*Destroy)(void *handle);
    int (*SetStream)(void *handle, void *stream);
    int (*BackendCreateDescriptor)(int type, LsDnnDesc *desc);
    int (*BackendDestroyDescriptor)(LsDnnDesc desc);
    int (*BackendFinalize)(LsDnnDesc desc);
    int (*BackendSetAttribute)(LsDnnDesc desc, int name, int type, int64_t n, const void *value);
    int (*BackendGetAttribute)(LsDnnDesc desc, int name, int type, int64_t room, int64_t *n,
                               void *value);
    int (*BackendExecute)(void *handle, LsDnnDesc plan, LsDnnDesc pack);
} LsDnnApi;

#endif
