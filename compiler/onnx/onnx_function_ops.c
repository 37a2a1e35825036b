/* compiler/onnx/onnx_function_ops.c -- function bodies from the operator definitions in onnx/defs.
 *
 * A step may refer to an attribute of the call; the step's own value is then the default. */
#include "compiler/onnx/onnx_function_ops.h"

#include <string.h>

typedef struct Step {
    const char *op, *in, *out;  /* names separated by blanks */
    const char *attr, *ref;     /* an attribute of the step, and the call's attribute that gives its
                                 * value */
    double value;               /* its default, a float; or default_axes */
    bool axes;
} Step;

typedef struct Body {
    const char *op;
    int since, before;
    const char *in, *out;
    const Step *step;
} Body;

static const int64_t default_axes[] = {0, 2, 3};    /* MeanVarianceNormalization */

#define CONSTANT(name, v) {"Constant", "", name, "value_float", NULL, v, false}
#define ATTRIBUTE(name, v) {"Constant", "", name, "value_float", name, v, false}
#define STEP(op, in, out) {op, in, out, NULL, NULL, 0, false}

/* alpha Elu(x / alpha). The equivalent max(0, x) + min(0, alpha (exp(x / alpha) - 1)) has an exp
 * and a gradient that are infinite where x is large. */
static const Step celu[] = {
    ATTRIBUTE("alpha", 1),
    STEP("Div", "X alpha", "r"),
    STEP("Elu", "r", "e"),
    STEP("Mul", "e alpha", "Y"),
    {0},
};
static const Step thresholded_relu[] = {
    ATTRIBUTE("alpha", 1), CONSTANT("zero", 0), STEP("Greater", "X alpha", "above"),
    STEP("Where", "above X zero", "Y"), {0},
};
/* x + bias below -lambd, x - bias above lambd, else 0 */
static const Step shrink[] = {
    ATTRIBUTE("lambd", 0.5),
    ATTRIBUTE("bias", 0),
    CONSTANT("zero", 0),
    STEP("Neg", "lambd", "minus"),
    STEP("Less", "X minus", "below"),
    STEP("Greater", "X lambd", "above"),
    STEP("Add", "X bias", "low"),
    STEP("Sub", "X bias", "high"),
    STEP("Where", "above high zero", "h"),
    STEP("Where", "below low h", "Y"),
    {0},
};

/* (x - E[x]) / (sqrt(E[(x - E[x])^2]) + 1e-9), as E[x^2] - E[x]^2 of the definition cancels. From
 * opset 18 the axes of a mean are an operand. */
#define MVN_END \
    STEP("Sqrt", "var", "std"), CONSTANT("eps", 1e-9), STEP("Add", "std eps", "s"), \
    STEP("Div", "d s", "Y"), {0}
static const Step mvn_attribute[] = {
    {"ReduceMean", "X", "mean", "axes", "axes", 0, true}, STEP("Sub", "X mean", "d"),
    STEP("Mul", "d d", "d2"), {"ReduceMean", "d2", "var", "axes", "axes", 0, true}, MVN_END,
};
static const Step mvn_operand[] = {
    {"Constant", "", "axes", "value_ints", "axes", 0, true}, STEP("ReduceMean", "X axes", "mean"),
    STEP("Sub", "X mean", "d"), STEP("Mul", "d d", "d2"), STEP("ReduceMean", "d2 axes", "var"),
    MVN_END,
};

static const Body body[] = {
    {"Celu", 12, 99, "X", "Y", celu},
    {"MeanVarianceNormalization", 9, 18, "X", "Y", mvn_attribute},
    {"MeanVarianceNormalization", 18, 99, "X", "Y", mvn_operand},
    {"Shrink", 9, 99, "X", "Y", shrink},
    {"ThresholdedRelu", 10, 99, "X", "Y", thresholded_relu},
};

static char **split(LsArena *a, const char *names, size_t *n)
{
    char **list = ls_arena_alloc(a, strlen(names) + 1, sizeof *list);
    for (const char *s = names; *s != '\0'; s += strspn(s, " ")) {
        size_t len = strcspn(s, " ");
        list[(*n)++] = ls_arena_printf(a, "%.*s", (int)len, s);
        s += len;
    }
    return list;
}

static Onnx__AttributeProto *attribute(LsArena *a, const Step *s)
{
    Onnx__AttributeProto *p = ls_arena_alloc(a, 1, sizeof *p);
    onnx__attribute_proto__init(p);
    p->name = ls_arena_strdup(a, s->attr);
    p->ref_attr_name = s->ref != NULL ? ls_arena_strdup(a, s->ref) : NULL;
    p->has_type = true;
    if (s->axes) {
        p->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
        p->n_ints = sizeof default_axes / sizeof *default_axes;
        p->ints = memcpy(ls_arena_alloc(a, p->n_ints, sizeof *p->ints), default_axes,
                         sizeof default_axes);
    } else {
        p->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
        p->has_f = true;
        p->f = (float)s->value;
    }
    return p;
}

static Onnx__NodeProto *node(LsArena *a, const Step *s)
{
    Onnx__NodeProto *p = ls_arena_alloc(a, 1, sizeof *p);
    onnx__node_proto__init(p);
    p->op_type = ls_arena_strdup(a, s->op);
    p->input = split(a, s->in, &p->n_input);
    p->output = split(a, s->out, &p->n_output);
    if (s->attr != NULL) {
        p->attribute = ls_arena_alloc(a, 1, sizeof *p->attribute);
        p->attribute[p->n_attribute++] = attribute(a, s);
    }
    return p;
}

static const Onnx__FunctionProto *function(LsArena *a, const Body *b)
{
    Onnx__FunctionProto *f = ls_arena_alloc(a, 1, sizeof *f);
    onnx__function_proto__init(f);
    f->name = ls_arena_strdup(a, b->op);
    f->input = split(a, b->in, &f->n_input);
    f->output = split(a, b->out, &f->n_output);
    while (b->step[f->n_node].op != NULL)
        f->n_node++;
    f->node = ls_arena_alloc(a, f->n_node, sizeof *f->node);
    for (size_t i = 0; i < f->n_node; i++)
        f->node[i] = node(a, &b->step[i]);
    return f;
}

const Onnx__FunctionProto *ls_onnx_body(LsArena *a, const char *op, int version)
{
    for (size_t i = 0; i < sizeof body / sizeof *body; i++)
        if (strcmp(body[i].op, op) == 0 && version >= body[i].since && version < body[i].before)
            return function(a, &body[i]);
    return NULL;
}

const char *ls_onnx_body_name(size_t k, int *since)
{
    if (k >= sizeof body / sizeof *body)
        return NULL;
    *since = body[k].since;
    return body[k].op;
}
