/* compiler/passes/class_axis.c -- finds the class axis of an output of class scores.
 *
 * reads the forward part; changes nothing. The node with the weight that makes the scores
 * determines the axis: the last one for a product, axis 1 for a convolution; for a softmax, the
 * axis along which it sums. Nodes in between keep their axes or move them in a known way. */
#include "compiler/passes/passes.h"

#include <inttypes.h>

enum { FAR = 64 };              /* most nodes between the output and the node that makes its
                                 * classes */

typedef struct Trace {
    const LsGraph *g;
    bool *seen;                 /* by value: the search through it failed, or is in progress */
} Trace;

static int made_axis(const Trace *t, LsValueId v, int left);

/* A weight, perhaps transposed. */
static bool is_weight(const LsGraph *g, LsValueId v)
{
    while (g->value[v.i].def.i != 0) {
        LsNodeId n = g->value[v.i].def;
        if (g->node[n.i].op != LS_OP_TRANSPOSE && ls_op[g->node[n.i].op]->kernel != LS_K_VIEW)
            return false;
        v = ls_in(g, n, 0);
    }
    return ls_is_state(g, v) || ls_is_const(g, v);
}

/* The axis for a product by a weight; none for other products, such as attention's. */
static int of_product(const LsGraph *g, LsNodeId n)
{
    int rank = ls_shape(g, ls_out(g, n, 0))->rank;
    return is_weight(g, ls_in(g, n, 1)) ? rank - 1 : is_weight(g, ls_in(g, n, 0)) ? rank - 2 : -1;
}

/* The axis of a reshape's result that is its operand's `axis`: same length, same size behind it. */
static int reshaped(const LsShape *from, int axis, const LsShape *to)
{
    int64_t before = 1, at = 1;
    for (int k = 0; k < axis; k++)
        before *= from->dim[k];
    for (int k = 0; k < to->rank; at *= to->dim[k++])
        if (at == before && to->dim[k] == from->dim[axis])
            return k;
    return -1;
}

/* For elementwise nodes, and others that leave axes in place: the axis of an operand of the same
 * rank. */
static int of_operands(const Trace *t, LsNodeId n, int left)
{
    const LsGraph *g = t->g;
    int axis = -1, rank = ls_shape(g, ls_out(g, n, 0))->rank;
    for (int k = 0; k < g->node[n.i].nin && axis < 0; k++)
        if (ls_in_shape(g, n, k)->rank == rank)
            axis = made_axis(t, ls_in(g, n, k), left - 1);
    return axis;
}

/* The axis of v that a weight makes; -1: not known. */
static int made_axis(const Trace *t, LsValueId v, int left)
{
    const LsGraph *g = t->g;
    const LsNodeId n = g->value[v.i].def;
    const LsNode *node = &g->node[n.i];
    if (n.i == 0 || left == 0 || t->seen[v.i])
        return -1;
    t->seen[v.i] = true;
    switch (node->op) {
    case LS_OP_MATMUL: return of_product(g, n);
    case LS_OP_CONV: case LS_OP_CONV_DX: return 1;
    case LS_OP_SOFTMAX: case LS_OP_LOG_SOFTMAX: return node->attr.axis.axis;
    case LS_OP_SLICE: case LS_OP_PAD: case LS_OP_CONCAT: case LS_OP_RESIZE: case LS_OP_LAYER_NORM:
    case LS_OP_MAX_POOL: case LS_OP_AVERAGE_POOL: return of_operands(t, n, left);
    case LS_OP_TRANSPOSE: case LS_OP_RESHAPE: break;
    default:
        return ls_op[node->op]->kernel == LS_K_MAP ? of_operands(t, n, left) : -1;
    }
    int axis = made_axis(t, ls_in(g, n, 0), left - 1);
    if (axis >= 0 && node->op == LS_OP_RESHAPE)
        return reshaped(ls_in_shape(g, n, 0), axis, ls_shape(g, v));
    for (int k = 0; axis >= 0 && k < ls_shape(g, v)->rank; k++)
        if (node->attr.perm.perm[k] == axis)
            return k;
    return -1;
}

int ls_class_axis(LsCtx *cx, const LsGraph *g, LsValueId y)
{
    const LsShape *s = ls_shape(g, y);
    const Trace t = {g, ls_arena_alloc(cx->arena, g->nvalue, sizeof *t.seen)};
    int usual = s->rank == 3 ? 2 : 1, made = s->rank < 3 ? usual : made_axis(&t, y, FAR);
    if (made == usual)
        return usual;
    if (made <= 0 && s->rank == 3) {
        ls_error(cx, LS_NOWHERE, LS_E_LOSS,
                 "--class-axis 1 or --class-axis 2 chooses, and so does --label-shape",
                 "output '%s' is %s, and no weight shows which axis has the classes of a "
                 "cross-entropy: %" PRId64 " classes on axis 1 (labels %s), or %" PRId64
                 " on axis 2 (labels %s)",
                 g->value[y.i].name, ls_shape_text(cx->arena, s), s->dim[1],
                 ls_shape_text(cx->arena, &(LsShape){2, {s->dim[0], s->dim[2]}}), s->dim[2],
                 ls_shape_text(cx->arena, &(LsShape){2, {s->dim[0], s->dim[1]}}));
        return 0;
    }
    int axis = made > 0 ? made : usual;
    const char *why = made > 0 ? "because a weight makes this axis"
                               : "because no weight shows which axis has the "
                                 "classes";
    LsNodeId n = g->value[y.i].def;
    ls_warn(cx, n.i != 0 ? ls_where(g, n) : LS_NOWHERE,
            "--class-axis K sets the axis and silences this "
            "warning",
            "output '%s' is %s: the cross-entropy takes axis %d for its %" PRId64 " classes, %s",
            g->value[y.i].name, ls_shape_text(cx->arena, s), axis, s->dim[axis], why);
    return axis;
}

int ls_class_axis_of_label(LsCtx *cx, const LsGraph *g, LsValueId y, const LsShape *label)
{
    const LsShape *s = ls_shape(g, y);
    int axis = 0, fit = 0;
    for (int k = 1; k < s->rank; k++) {
        const LsShape rest = ls_shape_without(s, k);
        if (!ls_shape_same(&rest, label))
            continue;
        axis = fit++ == 0 ? k : axis;
    }
    if (fit == 1)
        return axis;
    ls_error(cx, LS_NOWHERE, LS_E_LOSS,
             fit == 0 ? "the label has the output's shape without the axis of the classes"
                      : "--class-axis chooses",
             "output '%s' is %s: labels %s fit %s of its axes", g->value[y.i].name,
             ls_shape_text(cx->arena, s), ls_shape_text(cx->arena, label),
             fit == 0 ? "none" : "several");
    return 0;
}
