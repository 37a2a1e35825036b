/* compiler/ops/row.c -- see row.h. */
#include "compiler/ops/row.h"

static bool all_const(const LsGraph *g, LsNodeId n)
{
    for (int k = 0; k < g->node[n.i].nin; k++)
        if (ls_is(ls_in(g, n, k)) && !ls_is_const(g, ls_in(g, n, k)))
            return false;
    return true;
}

bool ls_infer_out(LsCtx *cx, LsGraph *g, LsNodeId n, LsType type, const LsShape *shape)
{
    int64_t count = 1;
    for (int k = 0; k < shape->rank; k++) {
        if (shape->dim[k] < 0 || (shape->dim[k] == 0 && !all_const(g, n)))
            return ls_error(cx, ls_where(g, n), LS_E_SHAPE, NULL,
                            "the result would be %s, of length %" PRId64 " along axis %d",
                            ls_shape_text(g->arena, shape), shape->dim[k], k);
        if (__builtin_mul_overflow(count, shape->dim[k], &count) || count > LS_MOST_ELEMENTS)
            return ls_error(cx, ls_where(g, n), LS_E_SHAPE, NULL,
                            "the result would be %s: more elements than any machine holds",
                            ls_shape_text(g->arena, shape));
    }
    ls_set_out(g, n, 0, type, shape);
    return true;
}

static bool same_types(LsCtx *cx, LsGraph *g, LsNodeId n, int first)
{
    const LsOp *row = ls_op[g->node[n.i].op];
    LsType type = ls_type(g, ls_in(g, n, first));
    for (int k = first + 1; k < g->node[n.i].nin; k++)
        if (ls_type(g, ls_in(g, n, k)) != type)
            return ls_error(cx, ls_where(g, n), LS_E_TYPE, "insert a Cast on one side",
                            "operand %d is %s, operand %d is %s", first, ls_type_name(type), k,
                            ls_type_name(ls_type(g, ls_in(g, n, k))));
    if (type != LS_REAL && row->eval_int == NULL)
        return ls_error(cx, ls_where(g, n), LS_E_TYPE, "insert a Cast to float",
                        "the operand is %s, %s takes float", ls_type_name(type), row->name);
    return true;
}

bool ls_infer_map_from(LsCtx *cx, LsGraph *g, LsNodeId n, int first)
{
    const LsOp *row = ls_op[g->node[n.i].op];
    if (!same_types(cx, g, n, first))
        return false;
    LsShape shape = *ls_in_shape(g, n, 0);
    for (int k = 1; k < g->node[n.i].nin; k++)
        if (!ls_shape_broadcast(&shape, ls_in_shape(g, n, k)))
            return ls_error(cx, ls_where(g, n), LS_E_SHAPE,
                            "aligned at the last axis, lengths must be equal or 1",
                            "%s and %s do not broadcast", ls_shape_text(g->arena, &shape),
                            ls_dims(g, ls_in(g, n, k)));
    LsType type = row->type != NULL ? row->type(g, n) : ls_type(g, ls_in(g, n, first));
    return ls_infer_out(cx, g, n, type, &shape);
}

bool ls_infer_map(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    return ls_infer_map_from(cx, g, n, 0);
}

static bool like(LsGraph *g, LsNodeId n, int k)
{
    LsShape s = *ls_in_shape(g, n, k);
    ls_set_out(g, n, 0, LS_REAL, &s);
    return true;
}

bool ls_infer_like0(LsCtx *cx, LsGraph *g, LsNodeId n) { return (void)cx, like(g, n, 0); }
bool ls_infer_like1(LsCtx *cx, LsGraph *g, LsNodeId n) { return (void)cx, like(g, n, 1); }

LsType ls_infer_bool(const LsGraph *g, LsNodeId n)
{
    (void)g, (void)n;
    return LS_BOOL;
}

void ls_grad_zero(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[], const bool want[],
                  LsValueId dx[])
{
    (void)cx, (void)g, (void)n, (void)dy, (void)want, (void)dx;
}

bool ls_onnx_simple(LsOnnxNode *n, LsValueId out[], LsOpCode op, int nin)
{
    if (!ls_onnx_takes(n, nin, nin))
        return false;
    out[0] = ls_append(n->cx, n->g, op, nin, n->in, NULL);
    return ls_is(out[0]);
}

LsValueId ls_const_ints(LsCtx *cx, LsGraph *g, int count, const int64_t v[])
{
    int64_t *data = ls_arena_alloc(g->arena, (size_t)count, sizeof *data);
    if (count > 0)
        memcpy(data, v, (size_t)count * sizeof *data);
    return ls_const_add(cx, g, LS_I64, &(LsShape){1, {count}}, data);
}
