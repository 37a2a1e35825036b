/* compiler/onnx/onnx_outputs.c -- graph outputs, and the shapes that the file declares for
 * values. */
#include "compiler/onnx/onnx_outputs.h"

#include "compiler/ir/graph.h"
#include "compiler/onnx/onnx_caches.h"
#include "compiler/onnx_file/onnx_tensor.h"

#include <inttypes.h>

static const Onnx__TypeProto__Tensor *tensor_type(const Onnx__ValueInfoProto *p)
{
    const Onnx__TypeProto *t = p->type;
    return t != NULL && t->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ? t->tensor_type
                                                                             : NULL;
}

/* Rank and fixed dimensions agree; symbols and open dimensions agree with anything, a fixed batch
 * with one of its parts. */
static bool shape_agrees(const Onnx__TensorShapeProto *declared, const LsShape *s, int64_t parts)
{
    if (declared == NULL)
        return true;
    if (declared->n_dim != (size_t)s->rank)
        return false;
    for (int k = 0; k < s->rank; k++) {
        const Onnx__TensorShapeProto__Dimension *d = declared->dim[k];
        bool fixed = d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        if (fixed && d->dim_value > 0 && d->dim_value != s->dim[k]
            && !(k == 0 && d->dim_value == parts * s->dim[0]))
            return false;
    }
    return true;
}

const char *ls_onnx_declared_text(LsArena *a, const Onnx__TensorShapeProto *s)
{
    if (s == NULL)
        return "of any shape";
    const char *text = s->n_dim == 0 ? "scalar" : "";
    for (size_t k = 0; k < s->n_dim && k < 2 * LS_MAX_RANK; k++) {
        const Onnx__TensorShapeProto__Dimension *d = s->dim[k];
        bool fixed = d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        bool named = d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
        const char *dim = fixed ? ls_arena_printf(a, "%" PRId64, d->dim_value)
                                : named ? ls_text(d->dim_param) : "?";
        text = ls_arena_printf(a, "%s%s%s", text, k > 0 ? "x" : "", dim);
    }
    return text;
}

static LsValueId value_of(const LsImport *im, const char *name)
{
    return im->value[ls_names_find(&im->m->names, name)].v;
}

/* Prints one warning for all values: exporters leave stale shapes behind, and the computed shapes
 * are used. */
static void check_declared(LsImport *im, Onnx__ValueInfoProto *const *list, size_t n,
                           const char *what)
{
    uint32_t wrong = 0;
    const Onnx__ValueInfoProto *first = NULL;
    for (size_t i = 0; i < n; i++) {
        LsValueId v = value_of(im, ls_text(list[i]->name));
        const Onnx__TypeProto__Tensor *t = tensor_type(list[i]);
        if (!ls_is(v) || t == NULL || shape_agrees(t->shape, ls_shape(im->g, v), im->o->parts))
            continue;
        first = wrong++ == 0 ? list[i] : first;
    }
    if (wrong > 0)
        ls_warn(im->cx, LS_NOWHERE, "the computed shape is used",
                "the file declares %s '%s' as %s, it is %s%s", what, ls_text(first->name),
                ls_onnx_declared_text(im->cx->arena, tensor_type(first)->shape),
                ls_shape_text(im->cx->arena, ls_shape(im->g, value_of(im, ls_text(first->name)))),
                wrong > 1 ? ls_arena_printf(im->cx->arena, " (and %u more)", wrong - 1) : "");
}

static bool check_type(LsImport *im, const Onnx__ValueInfoProto *p, LsValueId v)
{
    const Onnx__TypeProto__Tensor *t = tensor_type(p);
    LsType type;
    if (t == NULL || t->elem_type == 0 || !ls_onnx_type(t->elem_type, &type))
        return true;
    bool integers = type != LS_REAL && ls_type(im->g, v) != LS_REAL;
    if (type == ls_type(im->g, v) || integers)
        return true;
    static const char *const name[] = {"float", "int64", "int32", "bool"};
    return ls_error(im->cx, LS_NOWHERE, LS_E_TYPE, NULL,
                    "graph output '%s' is declared %s, its node gives %s",
                    ls_text(p->name), ls_onnx_type_name(t->elem_type), name[ls_type(im->g, v)]);
}

bool ls_onnx_add_outputs(LsImport *im)
{
    const Onnx__GraphProto *p = im->m->graph;
    LsGraph *g = im->g;
    bool good = true;
    g->output = ls_arena_alloc(im->cx->arena, p->n_output + 1, sizeof *g->output);
    if (p->n_output == 0)
        return ls_error(im->cx, LS_NOWHERE, LS_E_NAME, NULL, "the graph has no output");
    for (size_t i = 0; i < p->n_output; i++) {
        uint32_t id = ls_names_find(&im->m->names, ls_text(p->output[i]->name));
        const LsOnnxValue *v = &im->value[id];
        if (im->decisions->nempty > 0 && ls_cache_is_extended(ls_text(p->output[i]->name))) {
            im->decisions->nextended++;
            continue;
        }
        if (ls_is(v->v)) {
            good &= check_type(im, p->output[i], v->v);
            g->output[g->noutput++] = v->v;
            continue;
        }
        good = false;
        /* else by a node that was reported */
        if (!v->poison && im->m->maker[id] >= 0 && im->cx->nerror == 0)
            ls_error(im->cx, LS_NOWHERE, LS_E_UNSUPPORTED, NULL,
                     "graph output '%s' is a result that is not computed",
                     ls_text(p->output[i]->name));
    }
    if (good && im->o->training) {
        check_declared(im, p->output, p->n_output, "output");
        check_declared(im, p->value_info, p->n_value_info, "value");
    }
    return good;
}
