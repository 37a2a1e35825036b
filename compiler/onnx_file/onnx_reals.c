/* compiler/onnx_file/onnx_reals.c -- see onnx_reals.h. */
#include "compiler/onnx_file/onnx_reals.h"

#include "compiler/ir/graph.h"

enum { FLOAT = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT };

bool ls_reals_open(LsReals *r, LsCtx *cx, LsWhere at, LsDataFolder *from,
                   const Onnx__TensorProto *t)
{
    LsShape shape;
    LsType type;
    r->arena = cx->arena;
    r->read = 0;
    if (!ls_tensor_shape(cx, at, t, &shape, &type) || type != LS_REAL)
        return false;
    r->count = ls_count(&shape);
    r->data_type = t->data_type;
    r->raw = t->data_type != FLOAT && ls_tensor_is_raw(t)
                 ? ls_tensor_raw(cx, at, from, t)
                 : (const unsigned char *)ls_tensor_reals(cx, at, from, t);
    if (!ls_tensor_is_raw(t))
        r->data_type = FLOAT;
    r->bytes = ls_onnx_type_bytes(r->data_type);
    return r->raw != NULL;
}

void ls_reals_let_go(LsReals *r)
{
    if (r->count > 0)
        ls_arena_let_go(r->arena, r->raw, (size_t)r->count * (size_t)r->bytes);
    r->read = 0;
}

const LsFileReal *ls_reals_from(LsReals *r, int64_t at, int64_t *n)
{
    const unsigned char *raw = r->raw + at * r->bytes;
    *n = r->count - at < LS_REALS_PART ? r->count - at : LS_REALS_PART;
    if (r->read * r->bytes >= LS_ARENA_PART)
        ls_reals_let_go(r);
    r->read += *n;
    if (r->data_type == FLOAT)
        return (const void *)raw;
    ls_raw_to_floats(r->data_type, raw, (size_t)*n, r->part);
    return (const void *)r->part;
}

float ls_reals_at(LsReals *r, int64_t at)
{
    float v;
    ls_raw_to_floats(r->data_type, r->raw + at * r->bytes, 1, &v);
    return v;
}
