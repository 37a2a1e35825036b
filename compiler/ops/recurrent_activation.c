/* compiler/ops/recurrent_activation.c -- see the header. */
#include "compiler/ops/recurrent_activation.h"

#include <strings.h>

#include "compiler/fold/append.h"

enum { MAX_FUNCTIONS = 6 };     /* three each of two directions */

static LsValueId real(LsCtx *cx, LsGraph *g, double v) { return ls_const_real(cx, g, v); }

static LsValueId plain(LsCtx *cx, LsGraph *g, LsOpCode op, const LsActivation *f, LsValueId v)
{
    return ls_append1(cx, g, op, v, &(LsAttr){.scalar = {.a = f->alpha, .b = f->beta}});
}

#define PLAIN(name, op) \
    static LsValueId name(LsCtx *cx, LsGraph *g, const LsActivation *f, LsValueId v) \
    { return plain(cx, g, op, f, v); }
PLAIN(sigmoid, LS_OP_SIGMOID)
PLAIN(hyperbolic, LS_OP_TANH)
PLAIN(relu, LS_OP_RELU)
PLAIN(leaky_relu, LS_OP_LEAKY_RELU)
PLAIN(hard_sigmoid, LS_OP_HARD_SIGMOID)
PLAIN(elu, LS_OP_ELU)
PLAIN(softplus, LS_OP_SOFTPLUS)

static LsValueId affine(LsCtx *cx, LsGraph *g, const LsActivation *f, LsValueId v)
{
    v = ls_append2(cx, g, LS_OP_MUL, v, real(cx, g, f->alpha), NULL);
    return ls_append2(cx, g, LS_OP_ADD, v, real(cx, g, f->beta), NULL);
}

/* alpha tanh(beta x) */
static LsValueId scaled_tanh(LsCtx *cx, LsGraph *g, const LsActivation *f, LsValueId v)
{
    v = ls_append2(cx, g, LS_OP_MUL, v, real(cx, g, f->beta), NULL);
    v = ls_append1(cx, g, LS_OP_TANH, v, NULL);
    return ls_append2(cx, g, LS_OP_MUL, v, real(cx, g, f->alpha), NULL);
}

static LsValueId thresholded_relu(LsCtx *cx, LsGraph *g, const LsActivation *f, LsValueId v)
{
    LsValueId above = ls_append2(cx, g, LS_OP_GREATER, v, real(cx, g, f->alpha), NULL);
    return ls_append3(cx, g, LS_OP_WHERE, above, v, real(cx, g, 0), NULL);
}

static LsValueId softsign(LsCtx *cx, LsGraph *g, const LsActivation *f, LsValueId v)
{
    (void)f;
    LsValueId size = ls_append1(cx, g, LS_OP_ABS, v, NULL);
    size = ls_append2(cx, g, LS_OP_ADD, size, real(cx, g, 1), NULL);
    return ls_append2(cx, g, LS_OP_DIV, v, size, NULL);
}

/* Defaults are those of the operators of the same name. */
typedef struct Known {
    const char *name;
    LsActivation by_default;
    bool alpha, beta;           /* the function has the parameter */
    bool given;                 /* its parameters have no default */
} Known;

static const Known known[] = {
    {"Affine", {affine, 0, 0}, true, true, true},
    {"Elu", {elu, 1, 0}, true, false, false},
    {"HardSigmoid", {hard_sigmoid, 0.2, 0.5}, true, true, false},
    {"LeakyRelu", {leaky_relu, 0.01, 0}, true, false, false},
    {"Relu", {relu, 0, 0}, false, false, false},
    {"ScaledTanh", {scaled_tanh, 0, 0}, true, true, true},
    {"Sigmoid", {sigmoid, 0, 0}, false, false, false},
    {"Softplus", {softplus, 0, 0}, false, false, false},
    {"Softsign", {softsign, 0, 0}, false, false, false},
    {"Tanh", {hyperbolic, 0, 0}, false, false, false},
    {"ThresholdedRelu", {thresholded_relu, 1, 0}, true, false, false},
};

static const Known *find(const char *name)
{
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (strcasecmp(known[k].name, name) == 0)
            return &known[k];
    return NULL;
}

typedef struct Values { const char *attr; double v[MAX_FUNCTIONS]; int n, used; } Values;

/* Functions without the parameter consume no value. */
static bool take(LsOnnxNode *n, const Known *f, Values *from, double *to)
{
    if (from->used < from->n)
        *to = from->v[from->used++];
    else if (f->given)
        return ls_onnx_error(n, LS_E_ATTR, NULL, "%s has no value for %s, which has no default",
                             from->attr, f->name);
    return true;
}

static bool all_used(LsOnnxNode *n, const Values *from)
{
    if (from->used == 0 || from->used >= from->n)
        return true;
    return ls_onnx_error(n, LS_E_ATTR, "give one value for each function that has the parameter",
                         "%s has %d values, the activations take %d", from->attr, from->n,
                         from->used);
}

static bool read_values(LsOnnxNode *n, Values *to)
{
    if (!ls_onnx_has(n, to->attr))
        return true;
    to->n = ls_onnx_floats(n, to->attr, MAX_FUNCTIONS, to->v);
    return to->n >= 0;
}

bool ls_activations(LsOnnxNode *n, int count, const char *const names[], int ndefault,
                    LsActivation to[])
{
    const char *list[MAX_FUNCTIONS];
    Values alpha = {.attr = "activation_alpha"}, beta = {.attr = "activation_beta"};
    bool good = read_values(n, &alpha) && read_values(n, &beta);
    for (int k = 0; k < count; k++)
        list[k] = names[k % ndefault];
    int have = ls_onnx_has(n, "activations") ? ls_onnx_strings(n, "activations", count, list)
                                             : count;
    if (good && have >= 0 && have != count)
        return ls_onnx_error(n, LS_E_ATTR, NULL, "activations names %d functions, %s needs %d",
                             have, n->op, count);
    for (int k = 0; good && k < have; k++) {
        const Known *f = find(list[k]);
        if (f == NULL)
            return ls_onnx_error(n, LS_E_ATTR, NULL, "activation '%s' is not known", list[k]);
        to[k] = f->by_default;
        good = (!f->alpha || take(n, f, &alpha, &to[k].alpha))
            && (!f->beta || take(n, f, &beta, &to[k].beta));
        if (good && to[k].build == elu && !(to[k].alpha >= 0))
            return ls_onnx_error(n, LS_E_UNSUPPORTED, NULL,
                                 "alpha of Elu is %g; below 0 it is not handled", to[k].alpha);
    }
    return good && have >= 0 && all_used(n, &alpha) && all_used(n, &beta);
}

LsValueId ls_activate(LsCtx *cx, LsGraph *g, const LsActivation *f, LsValueId v)
{
    return f->build(cx, g, f, v);
}
