/* compiler/onnx_file/onnx_widen.c -- replaces double, float16 and bfloat16 by float32 wherever a
 * model names a type. */
#include "compiler/onnx_file/onnx_widen.h"

#include "compiler/onnx_file/onnx_domain.h"
#include "compiler/onnx_file/onnx_tensor.h"

#include <string.h>

enum { FLOAT = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT };

static bool other_real(int64_t data_type)
{
    return data_type != FLOAT && data_type > 0 && data_type < 64 &&
           ls_onnx_type_is_float((int)data_type);
}

bool ls_onnx_has_other_reals(const Onnx__ModelProto *m)
{
    for (size_t i = 0; i < m->graph->n_initializer; i++)
        if (other_real(m->graph->initializer[i]->data_type))
            return true;
    return false;
}

static void float_values(Onnx__ValueInfoProto **list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        Onnx__TypeProto *t = list[i]->type;
        if (t != NULL && t->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE &&
            t->tensor_type != NULL && other_real(t->tensor_type->elem_type))
            t->tensor_type->elem_type = FLOAT;
    }
}

/* A Cast to 16 bits, which ls_onnx_infer_form follows with one to float. */
static bool rounds(const Onnx__NodeProto *p, const Onnx__AttributeProto *a)
{
    return strcmp(ls_text(p->op_type), "Cast") == 0 && ls_onnx_domain(p->domain)[0] == '\0'
        && strcmp(ls_text(a->name), "to") == 0 && a->i != ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE;
}

static bool float_graph(LsCtx *cx, Onnx__GraphProto *g);

static bool float_nodes(LsCtx *cx, Onnx__NodeProto **list, size_t n)
{
    bool good = true;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < list[i]->n_attribute; k++) {
            Onnx__AttributeProto *a = list[i]->attribute[k];
            const char *name = ls_text(a->name);
            if (a->g != NULL)
                good &= float_graph(cx, a->g);
            else if (a->t != NULL && other_real(a->t->data_type))
                good &= ls_tensor_to_float(cx, LS_NOWHERE, NULL, a->t);
            else if (rounds(list[i], a))
                continue;
            else if ((strcmp(name, "to") == 0 || strcmp(name, "dtype") == 0) && other_real(a->i))
                a->i = FLOAT;
        }
    return good;
}

static bool float_graph(LsCtx *cx, Onnx__GraphProto *g)
{
    float_values(g->input, g->n_input);
    float_values(g->output, g->n_output);
    float_values(g->value_info, g->n_value_info);
    return float_nodes(cx, g->node, g->n_node);
}

bool ls_onnx_all_float(LsCtx *cx, Onnx__ModelProto *m)
{
    bool good = float_graph(cx, m->graph);
    for (size_t i = 0; i < m->n_functions; i++)
        good &= float_nodes(cx, m->functions[i]->node, m->functions[i]->n_node);
    return good;
}
