/* compiler/onnx/onnx_caches.c -- see the header. Exporters differ in names: past_key_values.0.key,
 * past_0, past.0.key for the inputs, past_sequence_length, past_seq_len for the dimension. */
#include "compiler/onnx/onnx_caches.h"

#include <string.h>

static const Onnx__TensorShapeProto *shape_of(const Onnx__ValueInfoProto *p)
{
    const bool tensor = p->type != NULL
                        && p->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE
                        && p->type->tensor_type != NULL;
    return tensor ? p->type->tensor_type->shape : NULL;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* "": the dimension has no name. */
static const char *symbol(const Onnx__TensorShapeProto__Dimension *d)
{
    const bool named = d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
    return named ? ls_text(d->dim_param) : "";
}

static bool is_open(const Onnx__TensorShapeProto__Dimension *d)
{
    return d->value_case != ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE
           || d->dim_value <= 0;
}

int ls_cache_axis(const Onnx__ValueInfoProto *p)
{
    const Onnx__TensorShapeProto *s = shape_of(p);
    const char *name = ls_text(p->name);
    if (s == NULL || s->n_dim < 3 || strstr(name, "encoder") != NULL
        || strstr(name, "cross") != NULL)
        return -1;
    for (size_t k = 0; k < s->n_dim && k < LS_MAX_RANK; k++)
        if (begins(symbol(s->dim[k]), "past") && strchr(symbol(s->dim[k]), '+') == NULL)
            return (int)k;
    /* [N,H,P,D], or [2,N,H,P,D] */
    const size_t k = s->n_dim - 2;
    return begins(name, "past") && s->n_dim >= 4 && s->n_dim <= 5 && is_open(s->dim[k]) ? (int)k
                                                                                         : -1;
}

bool ls_cache_is_empty(const LsImportOptions *o, const Onnx__ValueInfoProto *p)
{
    const int axis = ls_cache_axis(p);
    if (axis < 0)
        return false;
    const char *of = symbol(shape_of(p)->dim[axis]);
    for (int i = 0; i < o->ndim; i++)
        if (strcmp(o->dim[i].name, of) == 0)
            return false;
    for (int i = 0; i < o->nshape; i++)
        if (strcmp(o->shape[i].input, ls_text(p->name)) == 0)
            return false;
    return true;
}

bool ls_cache_any(const LsImportOptions *o, const Onnx__GraphProto *g)
{
    for (size_t i = 0; i < g->n_input; i++)
        if (ls_cache_is_empty(o, g->input[i]))
            return true;
    return false;
}

bool ls_cache_is_switch(const Onnx__ValueInfoProto *p)
{
    return strcmp(ls_text(p->name), "use_cache_branch") == 0 && shape_of(p) != NULL
           && p->type->tensor_type->elem_type == ONNX__TENSOR_PROTO__DATA_TYPE__BOOL;
}

bool ls_cache_is_total(const char *of)
{
    return begins(of, "total_seq") || (begins(of, "past") && strchr(of, '+') != NULL);
}

const Onnx__ValueInfoProto *ls_cache_tokens(const Onnx__GraphProto *g)
{
    for (size_t i = 0; i < g->n_input; i++) {
        const Onnx__TensorShapeProto *s = shape_of(g->input[i]);
        if (s != NULL && (s->n_dim == 2 || s->n_dim == 3) && ls_cache_axis(g->input[i]) < 0
            && !ls_cache_is_total(symbol(s->dim[1])))
            return g->input[i];
    }
    return NULL;
}

bool ls_cache_is_extended(const char *output) { return begins(output, "present"); }

void ls_onnx_hint_caches(LsImport *im)
{
    const LsDecisions *d = im->decisions;
    LsArena *a = im->cx->arena;
    if (d->nempty > 0)
        ls_warn(im->cx, LS_NOWHERE,
                d->past[0] != '\0' ? ls_arena_printf(a, "--dim %s=N gives them a length", d->past)
                                   : "--shape gives them a length",
                "%u input%s of past keys and values ha%s no tokens, and %u output%s with the new "
                "ones %s left out",
                d->nempty, d->nempty > 1 ? "s" : "", d->nempty > 1 ? "ve" : "s", d->nextended,
                d->nextended != 1 ? "s" : "", d->nextended != 1 ? "are" : "is");
}
