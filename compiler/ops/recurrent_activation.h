/* compiler/ops/recurrent_activation.h -- the activations that LSTM, GRU and RNN name in an
 * attribute. */
#ifndef LS_COMPILER_OPS_RECURRENT_ACTIVATION_H
#define LS_COMPILER_OPS_RECURRENT_ACTIVATION_H

#include "compiler/ir/graph.h"
#include "compiler/onnx/onnx_attr.h"

typedef struct LsActivation {
    LsValueId (*build)(LsCtx *, LsGraph *, const struct LsActivation *, LsValueId);
    double alpha, beta;
} LsActivation;

/* Reads activations, activation_alpha and activation_beta: `count` functions, by default the
 * `ndefault` ones of `names` over and over. False after an error: unknown name, wrong number, a
 * parameter that is missing. */
bool ls_activations(LsOnnxNode *n, int count, const char *const names[], int ndefault,
                    LsActivation to[]);
LsValueId ls_activate(LsCtx *cx, LsGraph *g, const LsActivation *f, LsValueId v);

#endif
