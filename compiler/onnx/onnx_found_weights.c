/* compiler/onnx/onnx_found_weights.c -- weights that are not initializers of the file.
 *
 * Old exporters write them as Constant nodes, ONNX's light models as ConstantOfShape nodes: where
 * operators expect a weight, such constants become parameters. Files made only for planning list
 * weights as graph inputs; that is accepted when no values are requested. */
#include "compiler/onnx/onnx_found_weights.h"

#include <string.h>

#include "compiler/ir/graph.h"
#include "compiler/onnx/import_state.h"

typedef struct Position {
    const char *op;
    unsigned operands;          /* bit k: operand k */
    bool never_data; /* a graph input at this place must be a weight */
} Position;

static const Position position[] = {
    {"BatchNormalization", 0x1e, true},
    {"Conv", 6, true},
    {"ConvTranspose", 6, true},
    {"Gather", 1, false},
    {"Gemm", 6, true},
    {"GRU", 0x0e, true},
    {"GroupNormalization", 6, true},
    {"InstanceNormalization", 6, true},
    {"LSTM", 0x8e, true},
    {"LayerNormalization", 6, true},
    {"MatMul", 2, false},
    {"RNN", 0x0e, true},
};

static void promote(LsOnnxNode *n, int k, bool never_data)
{
    LsImport *im = n->import;
    if (im == NULL || k >= n->nin || !ls_is(n->in[k]))
        return;
    LsValue *v = &im->g->value[n->in[k].i];
    const LsOnnxValue *known = &im->value[ls_names_find(&im->m->names, v->name)];
    if (v->type != LS_REAL || known->v.i != n->in[k].i)
        return;
    bool input = v->kind == LS_V_INPUT && never_data;
    im->nweight_inputs += input;
    if ((input && im->o->weightless) || (v->kind == LS_V_CONST && known->weight))
        v->kind = LS_V_PARAM;
}

void ls_onnx_weight(LsOnnxNode *n, int k)
{
    promote(n, k, false);
}

void ls_onnx_weights(LsOnnxNode *n)
{
    for (size_t i = 0; i < sizeof position / sizeof *position; i++)
        for (int k = 0; strcmp(position[i].op, n->op) == 0 && k < n->nin; k++)
            if (position[i].operands >> k & 1)
                promote(n, k, position[i].never_data);
}

bool ls_onnx_check_states(LsImport *im)
{
    bool good = true;
    for (uint32_t i = 1; i < im->g->nvalue; i++) {
        const LsValue *v = &im->g->value[i];
        const LsOnnxValue *known = &im->value[ls_names_find(&im->m->names, v->name)];
        if (v->data == NULL || !ls_is_state(im->g, (LsValueId){i}))
            continue;
        if (known->v.i == i && known->stored)
            continue;
        good = ls_error(im->cx, (LsWhere){-1, v->name, NULL}, LS_E_UNSUPPORTED,
                        "make it an initializer of the graph",
                        "a weight or running statistic is computed from constants, or is a "
                        "constant inside a function");
    }
    return good;
}

void ls_onnx_drop_weight_inputs(LsGraph *g)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < g->ninput; i++)
        if (g->value[g->input[i].i].kind == LS_V_INPUT)
            g->input[kept++] = g->input[i];
    g->ninput = kept;
}
