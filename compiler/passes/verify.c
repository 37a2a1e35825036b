/* compiler/passes/verify.c -- checks the invariants of ir.h after every pass. Changes nothing. */
#include "compiler/passes/passes.h"

#include <string.h>

static bool bad(LsCtx *cx, const LsGraph *g, uint32_t n, const char *what)
{
    return ls_error(cx, n != 0 ? ls_where(g, (LsNodeId){n}) : LS_NOWHERE, LS_E_VERIFY,
                    "this is a defect of lowerset, not of the model", "%s (IR node %u)", what, n);
}

static bool check_node(LsCtx *cx, const LsGraph *g, uint32_t i)
{
    const LsNode *n = &g->node[i];
    const LsOp *row = n->op < LS_NOPS ? ls_op[n->op] : NULL;
    if (row == NULL)
        return bad(cx, g, 0, "a node has an operator without a row");
    int nin = ls_update_operands(n);
    if (n->op != LS_OP_FUSED &&
        (nin < row->min_in || (row->max_in != 255 && nin > row->max_in) || n->nout != row->nout
         || nin * ls_updated(n) != n->nin))
        return bad(cx, g, i, "a node has a wrong number of operands or results");
    if (n->in + n->nin > g->noperand || n->out + n->nout > g->nvalue)
        return bad(cx, g, i, "operands or results lie outside their arrays");
    for (uint32_t k = 0; k < n->nin; k++) {
        LsValueId v = g->operand[n->in + k];
        if (v.i >= g->nvalue || (ls_is(v) && g->value[v.i].def.i >= i))
            return bad(cx, g, i, "an operand is made by a later node");
    }
    for (uint32_t k = 0; k < n->nout; k++)
        if (g->value[n->out + k].def.i != i || g->value[n->out + k].kind != LS_V_TEMP)
            return bad(cx, g, i, "a result does not know its node");
    if (n->fwd.i >= i)
        return bad(cx, g, i, "a gradient precedes the node it differentiates");
    return true;
}

static bool check_value(LsCtx *cx, const LsGraph *g, uint32_t i)
{
    const LsValue *v = &g->value[i];
    if (v->def.i >= g->nnode)
        return bad(cx, g, 0, "a result belongs to no node");
    bool temp = v->kind == LS_V_TEMP, live = temp && g->node[v->def.i].op != LS_OP_NOP;
    if (v->shape.rank < 0 || v->shape.rank > LS_MAX_RANK || v->type >= LS_NTYPES)
        return bad(cx, g, v->def.i, "a value has no shape or type");
    for (int k = 0; k < v->shape.rank; k++)
        if (v->shape.dim[k] < (v->kind == LS_V_CONST ? 0 : 1) && (live || !temp))
            return bad(cx, g, v->def.i, "a value has a dimension below 1");
    if (!temp && v->kind != LS_V_NONE && v->def.i != 0)
        return bad(cx, g, v->def.i, "an input, state or constant is made by a node");
    if (ls_is_16(v->type) && v->kind != LS_V_TEMP && !v->of_optimizer)
        return bad(cx, g, 0, "an input, state or constant is stored in 16 bits");
    if (v->kind == LS_V_CONST && v->data == NULL && ls_count(&v->shape) > 0)
        return bad(cx, g, 0, "a constant has no data");
    return true;
}

/* A state value is written once, by a node whose row says so, after all readers of the old
 * value. */
static bool check_writes(LsCtx *cx, const LsGraph *g)
{
    uint32_t *writer = ls_arena_alloc(cx->arena, g->nvalue, sizeof *writer);
    for (uint32_t i = 1; i < g->nnode; i++) {
        const LsNode *n = &g->node[i];
        for (uint32_t k = 0; k < n->nin; k++) {
            LsValueId v = g->operand[n->in + k];
            bool writes = ls_writes(n, (int)k);
            if (writer[v.i] != 0 && writer[v.i] != i)
                return bad(cx, g, i, "a state value is touched after its update");
            if (writes && ls_is(v) && (!ls_is_state(g, v) || !g->value[v.i].once_written))
                return bad(cx, g, i, "a node writes a value that is not marked as written state");
            writer[v.i] = writes && ls_is(v) ? i : writer[v.i];
        }
    }
    return true;
}

/* Whether the kernel finds the elements of operands and results by one layout. Others go by
 * strides, as FUSED nodes do, or are of pictures, which are channels-last as soon as ls_layout
 * ran. */
static bool shares_layout(const LsNode *n)
{
    const LsKernelId kernel = ls_op[n->op]->kernel;
    return ls_op[n->op]->layout == LS_LAY_ROW
        || (ls_op[n->op]->layout == LS_LAY_SAME && n->op != LS_OP_CONVERT
            && (kernel == LS_K_MOVE || kernel == LS_K_SOFTMAX || kernel == LS_K_RESIZE));
}

static bool check_layouts(LsCtx *cx, const LsGraph *g, uint32_t i)
{
    const LsNode *n = &g->node[i];
    bool row = false, last = false;
    for (int k = 0; shares_layout(n) && k < n->nin + n->nout; k++) {
        const LsValueId v =
            k < n->nin ? ls_in(g, (LsNodeId){i}, k) : ls_out(g, (LsNodeId){i}, k - n->nin);
        if (!ls_is(v) || ls_layout_free(ls_shape(g, v)))
            continue;
        row |= g->value[v.i].layout == LS_ROW;
        last |= g->value[v.i].layout == LS_LAST;
    }
    if (last && (row || ls_op[n->op]->layout == LS_LAY_ROW))
        return bad(cx, g, i, "operands and results do not have the layout that the kernel expects");
    return true;
}

static bool check_names(LsCtx *cx, const LsGraph *g)
{
    for (uint32_t i = 1; i < g->nvalue; i++)
        if (g->value[i].name == NULL)
            return bad(cx, g, g->value[i].def.i, "a value has no name");
    return true;
}

static bool check_list(LsCtx *cx, const LsGraph *g, const LsValueId *list, uint32_t n,
                       const char *what)
{
    for (uint32_t i = 0; i < n; i++)
        if (!ls_is(list[i]) || list[i].i >= g->nvalue)
            return bad(cx, g, 0, what);
    return true;
}

bool ls_verify(LsCtx *cx, const LsGraph *g)
{
    for (uint32_t i = 1; i < g->nnode; i++)
        if (!check_node(cx, g, i) || !check_layouts(cx, g, i))
            return false;
    for (uint32_t i = 1; i < g->nvalue; i++)
        if (!check_value(cx, g, i))
            return false;
    return check_writes(cx, g) && check_names(cx, g)
        && check_list(cx, g, g->input, g->ninput, "a graph input is no value")
        && check_list(cx, g, g->output, g->noutput, "a graph output is no value");
}
