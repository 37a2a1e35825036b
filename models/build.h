/* models/build.h -- a small builder of ONNX graphs (opset 17, training form).
 *
 * Layers are functions from tensors to tensors. A tensor knows its name and shape, so a wrong size
 * is an error here and not in the file's reader. The first error is kept in `err`, and later calls
 * are harmless: families need no checks between layers. Weights are described, not filled: their
 * bytes are made when the file is written (model_write.h), in constant memory. */
#ifndef LS_MODELS_BUILD_H
#define LS_MODELS_BUILD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "onnx.pb-c.h"

enum { LS_MODEL_OPSET = 17, LS_MODEL_IR = 8, LS_MODEL_RANK = 4 };

typedef struct LsTensor {
    const char *name;           /* of the ONNX value */
    int rank;
    int64_t dim[LS_MODEL_RANK]; /* N C H W, N T D, N F; dim[0] = 0 is the symbolic dimension "N" */
} LsTensor;

typedef enum {
    LS_FILL_ZERO, LS_FILL_ONE,
    LS_FILL_UNIFORM,            /* in [-scale, scale) */
    LS_FILL_NORMAL,             /* mean 0, standard deviation `scale` */
    LS_FILL_COUNT,              /* int64: 0, 1, 2, ... */
    LS_FILL_CAUSAL,             /* bool [..., T, T]: column > row, the positions that a token must
                                 * not attend to */
} LsFill;

/* One initializer. Float weights are trainable, except `statistic`: the running statistics of batch
 * norm. */
typedef struct LsWeight {
    const char *name;
    int rank;
    int64_t dim[LS_MODEL_RANK];
    LsFill fill;
    float scale;
    bool statistic;
} LsWeight;

/* How a family initialises the weights of its convolutions and linear layers. */
typedef enum {
    LS_DRAW_DEFAULT,            /* PyTorch's default: uniform up to 1 / sqrt(fan_in), bias as
                                 * well */
    LS_DRAW_FAN_OUT,            /* He et al. 2015 for ReLU, by fan-out: sqrt(2 / fan_out) */
    LS_DRAW_FAN_IN,             /* the same by fan-in: sqrt(2 / fan_in) */
    LS_DRAW_NORMAL,             /* normal with a given standard deviation */
} LsDrawKind;
typedef struct LsDraw {
    LsDrawKind kind;
    float deviation;            /* LS_DRAW_NORMAL */
    bool zero_bias;             /* otherwise the bias has PyTorch's default */
} LsDraw;

typedef struct LsBuild {
    LsArena *arena;
    int64_t batch;              /* 0: symbolic */
    LsDraw conv, linear;
    bool norm_bias;             /* convolutions in front of batch norms have biases, too */
    double dropout;             /* probability; 0 leaves the nodes out */
    Onnx__NodeProto **node;     uint32_t nnode, cap_node;
    LsWeight *weight;           uint32_t nweight, cap_weight;
    Onnx__ValueInfoProto *input[2], *output[2];
    size_t ninput, noutput;
    uint32_t nconst;            /* small constants so far, to number their names */
    bool failed;
    char err[256];
} LsBuild;

/* Always false, so callers write: return ls_build_fail(...). The first message stays. */
__attribute__((format(printf, 2, 3)))
bool ls_build_fail(LsBuild *b, const char *fmt, ...);
/* A formatted name, in the arena. */
__attribute__((format(printf, 2, 3)))
const char *ls_build_name(LsBuild *b, const char *fmt, ...);

LsTensor ls_build_input(LsBuild *b, const char *name, int elem_type, LsTensor shape);
/* Renames the value at its definition and its uses, and makes it an output of the graph. */
void ls_build_output(LsBuild *b, const char *name, LsTensor x);

void ls_build_weight(LsBuild *b, LsWeight w);

/* Appends a node; the ls_build_*attr functions then set attributes of the node last appended. The
 * value is named after the node, `at`; nin input names, "" for an absent input. */
LsTensor ls_build_node(LsBuild *b, const char *op, const char *at, int nin,
                       const char *const in[], LsTensor shape);
void ls_build_extra_output(LsBuild *b, const char *name);
void ls_build_int_attr(LsBuild *b, const char *name, int64_t i);
void ls_build_float_attr(LsBuild *b, const char *name, float f);
void ls_build_ints_attr(LsBuild *b, const char *name, int n, const int64_t i[]);
void ls_build_string_attr(LsBuild *b, const char *name, const char *s);

/* Constant nodes; equal constants are not shared, as in exporters' files. Returns the value's
 * name. */
const char *ls_build_floats(LsBuild *b, int n, const float v[]);
const char *ls_build_ints(LsBuild *b, int n, const int64_t v[]);
const char *ls_build_scalar(LsBuild *b, float v);
const char *ls_build_true(LsBuild *b);

/* Trainable elements: all but running statistics and integer or boolean tables. */
int64_t ls_build_parameters(const LsBuild *b);
int64_t ls_weight_elements(const LsWeight *w);
static inline bool ls_weight_is_float(const LsWeight *w) { return w->fill < LS_FILL_COUNT; }

#endif
